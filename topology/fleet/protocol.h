// The limits that both ends of the control plane hold each other to.
//
// Numbers only; knows nothing of messages.

#ifndef GOSSAMER_TOPOLOGY_FLEET_PROTOCOL_H_
#define GOSSAMER_TOPOLOGY_FLEET_PROTOCOL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "algorithms/base/version_range.h"

namespace gossamer {

// Raised when the meaning of a control message changes.
inline constexpr VersionRange kControlVersions = {4, 5};

// Sizes of a request to the service in a small fleet, and of its answer in the
// largest one.
inline constexpr int kRequestBytes = 64 << 10;
inline constexpr int kMaxAnswerBytes = 16 << 20;
// The text of a layout that a registration takes along.
inline constexpr size_t kMaxLayoutBytes = kRequestBytes / 2;
// And that of a configuration.
inline constexpr size_t kMaxConfigurationBytes = kRequestBytes / 4;
// The size of an answer in a fleet that may grow to so many peers: a view or a
// status of all, with the longest addresses, and a list of all edges that they
// can have.
constexpr int MaxAnswerBytes(int peers) {
  const int64_t n = peers;
  return static_cast<int>(
      std::clamp<int64_t>(600 * n + 5 * n * n, kRequestBytes, kMaxAnswerBytes));
}
// A fleet that was configured for so few may grow by that factor while its
// peers listen.
inline constexpr int kMaxGrowth = 8;
// The size of a request in a fleet that was configured for so many: a
// registration may hand back a view of all that it has grown to.  A member of a
// view takes about 64 bytes; the limit bounds what strangers make a service
// hold.
constexpr int MaxRequestBytes(int peers) {
  return static_cast<int>(std::clamp<int64_t>(int64_t{64} * kMaxGrowth * peers,
                                              kRequestBytes, 1 << 20));
}

// The interval of heartbeats where something waits for the next answer.
inline constexpr absl::Duration kEagerInterval = absl::Milliseconds(200);
// Members whose overlap is chosen send heartbeats in it for the first rounds of
// a run and of each overlap, if these are shorter than a heartbeat, so that
// choices follow one another within them.
inline constexpr uint64_t kEagerRounds = 20;

inline constexpr size_t kMaxAddressBytes = 255;
inline constexpr size_t kMaxDeviceBytes = 127;
inline constexpr size_t kMaxCheckpointRounds = 64;
// Neighbours that one heartbeat may suspect, members that a joining peer gets
// parameters from, and joining peers that a member serves.
inline constexpr int kMaxSuspected = 64;
inline constexpr int kMaxDonors = 3;
inline constexpr int kMaxJoiners = 4;
// Far above any run, far below the overflow of an exchange id.
inline constexpr uint64_t kMaxRound = uint64_t{1} << 48;

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_PROTOCOL_H_
