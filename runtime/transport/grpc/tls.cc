#include "runtime/transport/grpc/tls.h"

#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/conf.h>
#include <openssl/ssl.h>

#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace gossamer {
namespace {

namespace tls = ::grpc::experimental;

// A certificate that was issued again, or a revocation, takes effect within
// this time.
constexpr unsigned kRefreshSeconds = 1;

// gRPC 1.51 has no option for TLS 1.3 alone.  OpenSSL has settings for all
// connections of a process, which the smallest version that gRPC sets does not
// undo.
constexpr char kOpenSslSettings[] =
    "openssl_conf = init\n"
    "[init]\nssl_conf = ssl\n"
    "[ssl]\nsystem_default = tls\n"
    "[tls]\nProtocol = -ALL, TLSv1.3\n";

void RequireTls13() {
  // The settings are the process's, and OpenSSL reads them once.
  static std::once_flag once;
  std::call_once(once, [] {
    OPENSSL_init_ssl(0, nullptr);
    CONF* const settings = NCONF_new(nullptr);
    BIO* const text = BIO_new_mem_buf(kOpenSslSettings, -1);
    long line = 0;
    if (NCONF_load_bio(settings, text, &line) == 1) {
      // Without the settings gRPC's own minimum, TLS 1.2, would hold.
      CONF_modules_load(settings, nullptr, 0);
    }
    BIO_free(text);
    NCONF_free(settings);
  });
}

// gRPC 1.51 knows one provider of all certificates, newer releases one of the
// authorities and one of this end's own, and they call the former deprecated.
template <typename Options, typename Provider>
void Watch(const Provider& provider, Options* options) {
  if constexpr (requires {
                  options->set_root_certificate_provider(provider);
                }) {
    options->set_root_certificate_provider(provider);
    options->set_identity_certificate_provider(provider);
  } else {
    options->set_certificate_provider(provider);
    options->watch_root_certs();
    options->watch_identity_key_cert_pairs();
  }
}

template <typename Options, typename Provider>
Options ServerOptions(const Provider& provider) {
  if constexpr (requires { Options::Create(provider); }) {
    return *Options::Create(provider);  // which refuses null alone
  } else {
    return Options(provider);
  }
}

// Checks the server's role at the end of a handshake, on a thread of gRPC.
class RoleVerifier final : public tls::ExternalCertificateVerifier {
 public:
  RoleVerifier(std::shared_ptr<CertificateFolder> folder, Role role)
      : folder_(std::move(folder)), role_(role) {}

  // gRPC has checked the chain by then; here the identity, the dates and the
  // revocations are checked.
  bool Verify(tls::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)>,
              grpc::Status* status) override {
    const grpc::string_ref pem = request->peer_cert();
    const absl::StatusOr<Certificate> server =
        folder_->Check({pem.data(), pem.size()});
    if (!server.ok()) {
      *status = grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                             std::string(server.status().message()));
    } else if (server->identity.role != role_) {
      *status = grpc::Status(
          grpc::StatusCode::UNAUTHENTICATED,
          absl::StrCat("what answers is ", Describe(server->identity),
                       "; check the address"));
    }
    // The check is synchronous.
    return true;
  }
  void Cancel(tls::TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::shared_ptr<CertificateFolder> folder_;
  const Role role_;
};

}  // namespace

TlsCredentials::TlsCredentials(std::shared_ptr<CertificateFolder> folder)
    : folder_(std::move(folder)) {
  if (folder_ == nullptr) return;
  RequireTls13();
  provider_ = std::make_shared<tls::FileWatcherCertificateProvider>(
      folder_->key_path(), folder_->certificate_path(),
      folder_->authority_path(), kRefreshSeconds);
}

std::shared_ptr<grpc::ServerCredentials> TlsCredentials::Server() const {
  if (folder_ == nullptr) return grpc::InsecureServerCredentials();
  auto options = ServerOptions<tls::TlsServerCredentialsOptions>(provider_);
  Watch(provider_, &options);
  options.set_cert_request_type(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return tls::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> TlsCredentials::Channel(
    Role role) const {
  if (folder_ == nullptr) return grpc::InsecureChannelCredentials();
  tls::TlsChannelCredentialsOptions options;
  Watch(provider_, &options);
  options.set_verify_server_certs(true);
  // The identity in the certificate counts, not the name of the host.
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<RoleVerifier>(folder_, role));
  return tls::TlsCredentials(options);
}

absl::StatusOr<std::string> CertificateOf(const grpc::AuthContext& caller) {
  const std::vector<grpc::string_ref> pem =
      caller.FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  // The property alone proves nothing: the handshake has to have verified it.
  if (!caller.IsPeerAuthenticated() || pem.size() != 1) {
    return absl::UnauthenticatedError("no certificate was shown");
  }
  return std::string(pem[0].data(), pem[0].size());
}

}  // namespace gossamer
