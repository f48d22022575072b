// The counts of the events that a peer's process has reported, by kind.

#ifndef GOSSAMER_TOPOLOGY_FLEET_EVENT_TALLY_H_
#define GOSSAMER_TOPOLOGY_FLEET_EVENT_TALLY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include "topology/fleet/event_kind.h"

namespace gossamer {

// A count for each kind of event.  A peer counts its own, and the service keeps
// the counts that each peer has reported last.
class EventTally {
 public:
  void Add(EventKind kind, uint64_t times) {
    counts_[static_cast<size_t>(&kind.info() - kEventKinds)] += times;
  }
  // Adds the counts, by name, of the kinds that ask for an action and have been
  // reported.
  template <typename Map>
  void CopyTo(Map& counts) const {
    for (size_t i = 0; i < counts_.size(); ++i) {
      if (kEventKinds[i].action.empty() || counts_[i] == 0) continue;
      counts[std::string(kEventKinds[i].name)] = counts_[i];
    }
  }
  // Takes the counts of another program.  Names that are not in the catalogue
  // here are passed over, so that it cannot make this object grow.
  template <typename Map>
  void CopyFrom(const Map& counts) {
    for (size_t i = 0; i < counts_.size(); ++i) {
      const auto told = counts.find(std::string(kEventKinds[i].name));
      counts_[i] = told == counts.end() ? 0 : told->second;
    }
  }

 private:
  std::array<uint64_t, std::size(kEventKinds)> counts_ = {};
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_EVENT_TALLY_H_
