// Credentials for gRPC from a folder of certificates: TLS 1.3, certificates at
// both ends, files that are read again when they change.
//
// This header knows nothing of streams or services.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_TLS_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_TLS_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_provider.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/identity/certificate_folder.h"

namespace gossamer {

// Credentials of one process.  Without a folder there is no encryption and no
// identity.
class TlsCredentials {
 public:
  explicit TlsCredentials(std::shared_ptr<CertificateFolder> folder);

  // Asks for a certificate of the run's authority, unless a TlsGate does.
  std::shared_ptr<grpc::ServerCredentials> Server() const;
  // Refuses a server that is not `role` in the run.
  std::shared_ptr<grpc::ChannelCredentials> Channel(Role role) const;

 private:
  const std::shared_ptr<CertificateFolder> folder_;
  // Checks the files once a second.
  std::shared_ptr<grpc::experimental::FileWatcherCertificateProvider> provider_;
};

// Returns the certificate (PEM) that the other end of a call has shown to gRPC,
// which the run's authority had issued.  Returns kUnauthenticated if it has
// shown none.
absl::StatusOr<std::string> CertificateOf(const grpc::AuthContext& caller);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_TLS_H_
