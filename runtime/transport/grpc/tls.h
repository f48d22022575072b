// Credentials for gRPC from a folder of certificates: TLS 1.3, certificates at
// both ends, files that are read again when they change.
//
// Knows nothing of streams or services.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_TLS_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_TLS_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_provider.h>

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/identity/certificate_folder.h"

namespace gossamer {

// Credentials of one process.  Without a folder there is no encryption and no
// identity.
class TlsCredentials {
 public:
  explicit TlsCredentials(std::shared_ptr<CertificateFolder> folder);

  // Asks for a certificate of the run's authority.  CheckCaller() checks whom
  // it names.
  std::shared_ptr<grpc::ServerCredentials> Server() const;
  // Refuses a server that is not `role` in the run.
  std::shared_ptr<grpc::ChannelCredentials> Channel(Role role) const;

 private:
  const std::shared_ptr<CertificateFolder> folder_;
  // Checks the files once a second.
  std::shared_ptr<grpc::experimental::FileWatcherCertificateProvider> provider_;
};

// Returns the certificate that the other end of a call shows, which the run's
// authority had issued, whether or not it is still valid.  Returns
// kUnauthenticated if it shows none, kInvalidArgument if it cannot be read.
absl::StatusOr<Certificate> ShownBy(const grpc::AuthContext& caller);
// Returns the certificate of the other end of a call, checked by `folder`.
// Returns kUnauthenticated if it shows none or one that is not valid.
absl::StatusOr<Certificate> CheckCaller(CertificateFolder& folder,
                                        const grpc::AuthContext& caller);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_TLS_H_
