// What both ends of the control plane hold each other to.
//
// Numbers only; knows nothing of messages.

#ifndef GOSSAMER_RUNTIME_MEMBERSHIP_PROTOCOL_H_
#define GOSSAMER_RUNTIME_MEMBERSHIP_PROTOCOL_H_

#include <cstddef>
#include <cstdint>

#include "runtime/base/version_range.h"

namespace gossamer {

// Raised when the meaning of a control message changes.
inline constexpr VersionRange kControlVersions = {4, 4};

// Requests to the service; its answers (a view of kMaxPeers with long names).
inline constexpr int kMaxRequestBytes = 64 << 10;
inline constexpr int kMaxAnswerBytes = 1 << 20;

inline constexpr size_t kMaxAddressBytes = 255;
inline constexpr size_t kMaxCheckpointRounds = 64;
// Neighbours that one heartbeat may suspect, members that a joining peer gets
// parameters from, and joining peers that a member serves.
inline constexpr int kMaxSuspected = 64;
inline constexpr int kMaxDonors = 3;
inline constexpr int kMaxJoiners = 4;
// Far above any run, far below the overflow of an exchange id.
inline constexpr uint64_t kMaxRound = uint64_t{1} << 48;

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_MEMBERSHIP_PROTOCOL_H_
