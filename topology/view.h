// The members and how they mix, from one round on.
//
// A plain value, handed out by the topology service, adopted by every peer at
// the same round.  This header knows nothing of how it travels.

#ifndef GOSSAMER_TOPOLOGY_VIEW_H_
#define GOSSAMER_TOPOLOGY_VIEW_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "algorithms/base/ids.h"
#include "topology/mixing_schedule.h"

namespace gossamer {

// A peer of a view, and where its neighbours reach it.
struct Member {
  PeerId id;
  std::string address;  // host:port that its neighbours dial
  // The device that its parameters are on, in words of the transport that can
  // reach devices; empty: host memory.
  std::string device = {};
  friend bool operator==(const Member&, const Member&) = default;
};

// A peer that leaves in good order: it takes part in rounds below `round`.
struct Departure {
  PeerId id;
  uint64_t round = 0;
  std::string address;
  friend bool operator==(const Departure&, const Departure&) = default;
};

// The most rounds that an exchange may hide behind.
inline constexpr int kMaxOverlap = 8;
// In a configuration: the service chooses.
inline constexpr int kAutoOverlap = -1;

// Whether generation `a` is later than `b`.  Generations are serial numbers
// (RFC 1982), of which none is the last, so a made-up one cannot exhaust them.
// Of two that are half of all apart, which the RFC leaves open, the larger
// number is the later.
inline bool LaterGeneration(uint64_t a, uint64_t b) {
  constexpr uint64_t kHalf = uint64_t{1} << 63;
  return a - b < kHalf ? a != b : a - b == kHalf && a > b;
}

// The membership and the mixing of a fleet from one round on.  (generation,
// epoch) name it; views of one name differ in their resume round at most.
struct View {
  std::string run_id;
  uint64_t generation = 0;  // of the service's store
  uint64_t epoch = 0;       // 0: no view yet
  // Adopted at this round's boundary; a peer without a view adopts at once.
  uint64_t from_round = 1;
  std::vector<Member> members;  // by rank, which is the order of ids
  // Not members, but not gone yet.  A peer in neither list is gone: what was
  // under way with it is given up.
  std::vector<Departure> departures;
  ScheduleSpec schedule;
  uint64_t seed = 0;
  double gamma = 1;
  int overlap_steps = 0;  // h, at most kMaxOverlap
  uint64_t configuration_hash = 0;
  // The checkpoint round from which the receiving peer starts, if it has not
  // trained yet; 0: initial parameters.  The same for all members when a fleet
  // begins; for a peer that returns to a running fleet, its own newest.
  uint64_t resume_round = 0;

  std::optional<int> RankOf(PeerId id) const {
    const auto at = std::ranges::lower_bound(members, id, {}, &Member::id);
    if (at == members.end() || at->id != id) return std::nullopt;
    return static_cast<int>(at - members.begin());
  }
  std::optional<uint64_t> DepartureOf(PeerId id) const {
    for (const Departure& d : departures) {
      if (d.id == id) return d.round;
    }
    return std::nullopt;
  }
  absl::StatusOr<std::unique_ptr<MixingSchedule>> MakeSchedule() const {
    std::vector<PeerId> ids;
    for (const Member& m : members) ids.push_back(m.id);
    return gossamer::MakeSchedule(schedule, ids, seed);
  }
  // Any view is newer than none.
  bool NewerThan(const View& other) const {
    if (epoch == 0 || other.epoch == 0) return epoch > other.epoch;
    return generation != other.generation
               ? LaterGeneration(generation, other.generation)
               : epoch > other.epoch;
  }
};

// The schedule of a view, which peers of one process may share.
using ScheduleMaker =
    std::function<absl::StatusOr<std::shared_ptr<const MixingSchedule>>(
        const View& view)>;
// As `make` makes it, or anew if that is null.
inline absl::StatusOr<std::shared_ptr<const MixingSchedule>> ScheduleOf(
    const ScheduleMaker& make, const View& view) {
  if (make) return make(view);
  return view.MakeSchedule();
}

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_VIEW_H_
