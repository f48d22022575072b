// An identity in a run, as a certificate shows it: a URI among its names.
//
//   gossamer://RUN/3          peer 3
//   gossamer://RUN/topology   the topology service
//   gossamer://RUN/operator   people
//   gossamer://RUN/authority  the issuer of certificates; calls nobody
//
// Text only; knows nothing of certificates.

#ifndef GOSSAMER_RUNTIME_IDENTITY_IDENTITY_H_
#define GOSSAMER_RUNTIME_IDENTITY_IDENTITY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "algorithms/base/ids.h"

namespace gossamer {

enum class Role { kPeer, kTopology, kOperator, kAuthority };

struct Identity {
  std::string run;
  Role role = Role::kPeer;
  PeerId peer;  // of kPeer only; never 0 then
  friend bool operator==(const Identity&, const Identity&) = default;
};

std::string ToUri(const Identity& identity);
// Returns the identity in people's words: "peer 3", "the topology service", "an
// operator".
std::string Describe(const Identity& identity);

// kInvalidArgument if it is not exactly what ToUri() writes.
absl::StatusOr<Identity> ParseIdentity(absl::string_view uri);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_IDENTITY_IDENTITY_H_
