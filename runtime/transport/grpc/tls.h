// Credentials for gRPC from a folder of certificates: TLS 1.3, certificates at
// both ends, files read again when they change.
//
// Knows nothing of streams or services.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_TLS_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_TLS_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_provider.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/identity/authority.h"
#include "runtime/identity/certificate_folder.h"

namespace gossamer {

// Without a folder: no encryption and no identities.
class TlsCredentials {
 public:
  explicit TlsCredentials(std::shared_ptr<const CertificateFolder> folder);

  // Asks for a certificate of the run's authority; who it names is for
  // CheckCaller().
  std::shared_ptr<grpc::ServerCredentials> Server() const;
  // Refuses a server that is not `role` in the run.
  std::shared_ptr<grpc::ChannelCredentials> Channel(Role role) const;

 private:
  const std::shared_ptr<const CertificateFolder> folder_;
  // Looks at the files once a second.
  std::shared_ptr<grpc::experimental::FileWatcherCertificateProvider> provider_;
};

// Where newcomers call who have no certificate yet: `desk` is
// AuthorityFolder::MakeDesk's.
std::shared_ptr<grpc::ServerCredentials> DeskCredentials(const KeyPair& desk);
// Refuses a server that is not the desk of the authority with `fingerprint`.
std::shared_ptr<grpc::ChannelCredentials> NewcomerCredentials(
    const std::string& fingerprint);

// What the other end of a call shows, whether or not it is to be believed now:
// in the handshake the run's authority had issued it.  kUnauthenticated if it
// shows none, kInvalidArgument if that says nothing.
absl::StatusOr<Certificate> ShownBy(const grpc::AuthContext& caller);
// Who is at the other end of a call, by `folder`.  kUnauthenticated if it shows
// no certificate or one not to be believed.
absl::StatusOr<Certificate> CheckCaller(const CertificateFolder& folder,
                                        const grpc::AuthContext& caller);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_TLS_H_
