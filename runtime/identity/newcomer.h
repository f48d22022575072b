// The folder of certificates (certificate_folder.h) of a machine that is on its
// way to its first one: a key, then the rest.

#ifndef GOSSAMER_RUNTIME_IDENTITY_NEWCOMER_H_
#define GOSSAMER_RUNTIME_IDENTITY_NEWCOMER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/identity/certificate.h"

namespace gossamer {

// The private key in `folder` (PEM), made if there is none.  kInvalidArgument
// if there is a certificate already, or the key is open to others.
absl::StatusOr<std::string> KeyForNewcomer(const std::string& folder);

// All PEM.
struct FirstCertificate {
  std::string authority;
  std::string certificate;
  std::string crl;
};
// Fills `folder`.  kUnauthenticated unless the authority issued it, for the key
// that is there, it is valid at `now`, and the authority's list is with it.
absl::StatusOr<Certificate> AcceptCertificate(const std::string& folder,
                                              const FirstCertificate& first,
                                              absl::Time now);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_IDENTITY_NEWCOMER_H_
