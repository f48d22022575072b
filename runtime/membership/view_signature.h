// Signatures of views, which prove what the topology service said, whoever
// passes it on.
//
// The key is that of the service's certificate, so that there is one key to
// keep, to renew and to revoke.  This header knows nothing of connections.

#ifndef GOSSAMER_RUNTIME_MEMBERSHIP_VIEW_SIGNATURE_H_
#define GOSSAMER_RUNTIME_MEMBERSHIP_VIEW_SIGNATURE_H_

#include "absl/status/status.h"
#include "proto/topology.pb.h"
#include "runtime/identity/certificate_folder.h"

namespace gossamer {

// Signs `view`.  Returns the errors of CertificateFolder::Sign.
absl::Status Sign(CertificateFolder& service, wire::ViewMessage& view);

// Returns kUnauthenticated unless the topology service of this run signed
// `view` as it is.
absl::Status CheckView(CertificateFolder& own, const wire::ViewMessage& view);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_MEMBERSHIP_VIEW_SIGNATURE_H_
