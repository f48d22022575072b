// The authority of a run: makes itself, issues certificates, revokes them.
//
// EC P-256 and SHA-256 for connections: not every TLS library that gRPC is
// built with takes Ed25519 there.  Ed25519 for what is only signed.  Texts in,
// texts out: knows nothing of files.

#ifndef GOSSAMER_RUNTIME_IDENTITY_AUTHORITY_H_
#define GOSSAMER_RUNTIME_IDENTITY_AUTHORITY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/identity/identity.h"

namespace gossamer {

// Clocks are thought to differ by less.
inline constexpr absl::Duration kClockSkew = absl::Hours(1);

// Both PEM.
struct KeyPair {
  std::string certificate;
  std::string key;
};

// Valid from kClockSkew before `now`, for `life` from now.
absl::StatusOr<KeyPair> MakeAuthority(const std::string& run, absl::Time now,
                                      absl::Duration life);

// A new key and its certificate.  `names` are hosts and addresses that it also
// stands for.  Ends with the authority at the latest.  kInvalidArgument for a
// name that is none.
absl::StatusOr<KeyPair> Issue(const KeyPair& authority,
                              const Identity& identity,
                              const std::vector<std::string>& names,
                              absl::Time now, absl::Duration life);

// The same for a key that only signs (Ed25519): no connection believes it.
absl::StatusOr<KeyPair> IssueSigner(const KeyPair& authority,
                                    const Identity& identity, absl::Time now,
                                    absl::Duration life);

// kInvalidArgument unless each is a host name or an address.
absl::Status CheckNames(const std::vector<std::string>& names);

// A machine's wish for a certificate: who asks proves to have the key.
struct SigningRequest {
  std::string der;  // PKCS #10
  std::string key;  // PEM; stays where it was made
};
// For a new key, or for `key` (PEM) if it is not empty.
absl::StatusOr<SigningRequest> MakeSigningRequest(const std::string& key = "");

// SHA-256 of the public key that `der` asks a certificate for.
// kInvalidArgument unless it is a request, signed by its own key, which must be
// one that this program makes.
absl::StatusOr<std::string> CheckSigningRequest(absl::string_view der);

// A certificate for the key of `request` (DER); nothing else of it counts.
// Returns PEM.  Errors: CheckSigningRequest's and Issue's.
absl::StatusOr<std::string> IssueFor(const KeyPair& authority,
                                     absl::string_view request,
                                     const Identity& identity,
                                     const std::vector<std::string>& names,
                                     absl::Time now, absl::Duration life);

// The list `crl` (PEM; empty: a first one) with the serial numbers
// (hexadecimal) in addition.
absl::StatusOr<std::string> Revoke(const KeyPair& authority,
                                   absl::string_view crl,
                                   const std::vector<std::string>& serials,
                                   absl::Time now);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_IDENTITY_AUTHORITY_H_
