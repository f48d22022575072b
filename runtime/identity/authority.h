// The authority of a run: makes itself, issues certificates, revokes them.
//
// EC P-256 and SHA-256 for connections, Ed25519 for what is only signed.  Texts
// in, texts out: knows nothing of files.

#ifndef GOSSAMER_RUNTIME_IDENTITY_AUTHORITY_H_
#define GOSSAMER_RUNTIME_IDENTITY_AUTHORITY_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/identity/certificate.h"
#include "runtime/identity/identity.h"

namespace gossamer {

// The largest difference between the clocks of two machines that certificates
// allow for.
inline constexpr absl::Duration kClockSkew = absl::Hours(1);

// Returns whether a certificate that ends at `until` has ended on all machines:
// one whose clock is behind may believe it for kClockSkew longer.
inline bool HasEndedEverywhere(absl::Time until, absl::Time now) {
  return until + kClockSkew <= now;
}

// Both PEM.
struct KeyPair {
  std::string certificate;
  std::string key;
};

// A certificate and its validity: from kClockSkew before `now` until `valid`
// after it.
absl::StatusOr<KeyPair> MakeAuthority(const std::string& run, absl::Time now,
                                      absl::Duration valid);

// A new key and its certificate, which ends with the authority at the latest.
// `names` are hosts and addresses that it also stands for.  kInvalidArgument
// for a name that is neither; kFailedPrecondition if the authority has expired.
absl::StatusOr<KeyPair> Issue(const KeyPair& authority,
                              const Identity& identity,
                              const std::vector<std::string>& names,
                              absl::Time now, absl::Duration valid);

// The same for a key that only signs (Ed25519): no connection believes it.
absl::StatusOr<KeyPair> IssueSigner(const KeyPair& authority,
                                    const Identity& identity, absl::Time now,
                                    absl::Duration valid);

// A certificate (PEM) for `key`, a public key that was made elsewhere
// (signing_request.h): to sign with if it is Ed25519, else for connections.
// Errors are Issue's, and kInvalidArgument for what is no key.
absl::StatusOr<std::string> IssueFor(const KeyPair& authority,
                                     absl::string_view key,
                                     const Identity& identity,
                                     const std::vector<std::string>& names,
                                     absl::Time now, absl::Duration valid);

// The list `crl` (PEM; empty: a first one) with the serial numbers `revoked` in
// addition.  kInvalidArgument for a serial number that is none.
absl::StatusOr<std::string> Revoke(const KeyPair& authority,
                                   absl::string_view crl,
                                   std::set<std::string> revoked,
                                   absl::Time now);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_IDENTITY_AUTHORITY_H_
