#include "runtime/service/access.h"

#include "absl/strings/str_cat.h"

namespace gossamer {
namespace {

// Tokens of one identity.  A peer needs five heartbeats a second while a fleet
// gathers, and up to a hundred in tests.  A peer that restarts again and again
// pays the higher price of Register.
constexpr double kTokens = 400;
constexpr double kTokensPerSecond = 200;
constexpr double kTokensOfRegister = 40;

absl::Status Denied(const Identity& caller, absl::string_view what) {
  return absl::PermissionDeniedError(
      absl::StrCat(Describe(caller), " may not ", what));
}

absl::Status CheckRight(const Identity& caller, const AccessRequest& request) {
  switch (request.call) {
    case Call::kRegister:
    case Call::kHeartbeat:
      if (caller.role != Role::kPeer) return Denied(caller, "be a peer");
      // A peer that could speak for another could take its id over, or have it
      // stop.
      if (caller.peer != request.claimed) {
        return Denied(caller,
                      absl::StrCat("speak for peer ", request.claimed.value,
                                   "; its --id is that of its certificate"));
      }
      if (request.run_id != caller.run) {
        return Denied(caller, "join another run than its certificate's");
      }
      return absl::OkStatus();
    case Call::kStop:
      // A peer that waits, has left or was evicted keeps its certificate, and
      // must not steer the fleet by it.
      if (caller.role == Role::kPeer && !request.member) {
        return Denied(caller, "stop a fleet of which it is no member");
      }
      return absl::OkStatus();
    case Call::kMeasure:
      if (caller.role == Role::kPeer && !request.member) {
        return Denied(caller, "have ways measured between others");
      }
      return absl::OkStatus();
    // The status changes nothing, and everybody of the run may see it.
    case Call::kGetStatus:
      return absl::OkStatus();
  }
  return Denied(caller, "do this");
}

}  // namespace

absl::Status AccessPolicy::Check(const Identity& caller,
                                 const AccessRequest& request, absl::Time now) {
  // The key is the proved identity, never an id that a request names: the map
  // cannot grow by claims.
  TokenBucket& allowance =
      allowances_.try_emplace(ToUri(caller), kTokens, kTokensPerSecond, now)
          .first->second;
  // The price is paid before the rights are looked at: calls that are refused
  // cost time, too.
  const double price =
      request.call == Call::kRegister ? kTokensOfRegister : 1.0;
  if (!allowance.Take(price, now)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(Describe(caller), " calls too often"));
  }
  return CheckRight(caller, request);
}

}  // namespace gossamer
