#include "runtime/identity/identity.h"

#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/run_name.h"

namespace gossamer {
namespace {

constexpr absl::string_view kScheme = "gossamer://";
constexpr absl::string_view kTopologyName = "topology";
constexpr absl::string_view kOperatorName = "operator";
constexpr absl::string_view kAuthorityName = "authority";
constexpr size_t kMaxShownBytes = 200;  // of a text that is no identity

}  // namespace

std::string ToUri(const Identity& identity) {
  switch (identity.role) {
    case Role::kTopology:
      return absl::StrCat(kScheme, identity.run, "/", kTopologyName);
    case Role::kOperator:
      return absl::StrCat(kScheme, identity.run, "/", kOperatorName);
    case Role::kAuthority:
      return absl::StrCat(kScheme, identity.run, "/", kAuthorityName);
    case Role::kPeer:
      break;
  }
  return absl::StrCat(kScheme, identity.run, "/", identity.peer.value);
}

std::string Describe(const Identity& identity) {
  switch (identity.role) {
    case Role::kTopology:
      return "the topology service";
    case Role::kOperator:
      return "an operator";
    case Role::kAuthority:
      return "the authority";
    case Role::kPeer:
      break;
  }
  return absl::StrCat("peer ", identity.peer.value);
}

absl::StatusOr<Identity> ParseIdentity(absl::string_view uri) {
  const absl::Status refusal = absl::InvalidArgumentError(
      absl::StrCat("\"", absl::CEscape(uri.substr(0, kMaxShownBytes)),
                   "\" is no identity; one is gossamer://RUN/3, "
                   "gossamer://RUN/topology or gossamer://RUN/operator"));
  // Each step refuses with the same words: what is wrong with a foreign URI is
  // not worth a sentence each.
  absl::string_view rest = uri;
  if (!absl::ConsumePrefix(&rest, kScheme)) return refusal;
  const size_t slash = rest.find('/');
  if (slash == rest.npos || !IsRunName(rest.substr(0, slash))) return refusal;
  Identity identity{.run = std::string(rest.substr(0, slash)), .peer = {}};
  const absl::string_view who = rest.substr(slash + 1);
  if (who == kTopologyName) {
    identity.role = Role::kTopology;
  } else if (who == kOperatorName) {
    identity.role = Role::kOperator;
  } else if (who == kAuthorityName) {
    identity.role = Role::kAuthority;
  } else if (!absl::SimpleAtoi(who, &identity.peer.value) ||
             identity.peer == PeerId{}) {
    return refusal;
  }
  // "+3", "03" and the like would be a second name of the same peer.
  if (ToUri(identity) != uri) return refusal;
  return identity;
}

}  // namespace gossamer
