// A client of TLS by OpenSSL alone, which does what gRPC's does not.

#ifndef GOSSAMER_TESTS_RUNTIME_TRANSPORT_TLS_CLIENT_H_
#define GOSSAMER_TESTS_RUNTIME_TRANSPORT_TLS_CLIENT_H_

#include <openssl/ssl.h>

#include <csignal>
#include <memory>
#include <string>

#include "tests/runtime/transport/raw_socket.h"

namespace gossamer {

// A client of TLS with the certificate in `folder`, or none, that speaks
// `protocol` by `version` of TLS.
class TlsClient {
 public:
  TlsClient(int port, const std::string& folder,
            const std::string& protocol = "h2", int version = TLS1_3_VERSION)
      : socket(port) {
    SSL_CTX* const c = context_.get();
    SSL_CTX_clear_options(c, SSL_OP_NO_TLSv1_2);
    SSL_CTX_set_min_proto_version(c, version);
    SSL_CTX_set_max_proto_version(c, version);
    if (!folder.empty()) {
      SSL_CTX_use_certificate_chain_file(c, (folder + "/cert.pem").c_str());
      SSL_CTX_use_PrivateKey_file(c, (folder + "/key.pem").c_str(),
                                  SSL_FILETYPE_PEM);
    }
    const std::string offer =
        std::string(1, static_cast<char>(protocol.size())) + protocol;
    SSL_CTX_set_alpn_protos(
        c, reinterpret_cast<const unsigned char*>(offer.data()),
        static_cast<unsigned>(offer.size()));
    // OpenSSL writes to connections that have been reset.
    std::signal(SIGPIPE, SIG_IGN);
    tls_.reset(SSL_new(c));
    SSL_set_fd(tls_.get(), socket.fd());
  }

  // Shakes hands, and returns the agreed version; empty if there is none.  With
  // TLS 1.3 the other end's verdict comes with the first bytes, which are
  // gRPC's settings.
  std::string Agree() {
    char byte = 0;
    const bool agreed =
        SSL_connect(tls_.get()) == 1 && SSL_read(tls_.get(), &byte, 1) == 1;
    return agreed ? SSL_get_version(tls_.get()) : "";
  }
  bool GetsIn() { return !Agree().empty(); }
  // Begins `count` new keys, or fewer if the other end closes.
  int Renew(int count) {
    int begun = 0;
    while (begun < count &&
           SSL_key_update(tls_.get(), SSL_KEY_UPDATE_REQUESTED) == 1 &&
           SSL_do_handshake(tls_.get()) == 1) {
      ++begun;
    }
    return begun;
  }

  RawSocket socket;

 private:
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_{
      SSL_CTX_new(TLS_client_method()), SSL_CTX_free};
  std::unique_ptr<SSL, void (*)(SSL*)> tls_{nullptr, SSL_free};
};

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_RUNTIME_TRANSPORT_TLS_CLIENT_H_
