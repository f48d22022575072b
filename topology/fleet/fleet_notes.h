// Lines for people about what a fleet decided and its record does not show.
//
// This header knows nothing of logs: the owner of the fleet takes the lines and
// writes them.

#ifndef GOSSAMER_TOPOLOGY_FLEET_FLEET_NOTES_H_
#define GOSSAMER_TOPOLOGY_FLEET_FLEET_NOTES_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/ids.h"

namespace gossamer {

class FleetNotes {
 public:
  // A line is dropped if a thousand wait to be taken.
  void Add(const std::string& line) {
    constexpr size_t kMaxNotes = 1000;
    if (lines_.size() < kMaxNotes) lines_.push_back(line);
  }
  // The lines since the last call.
  std::vector<std::string> Take() { return std::exchange(lines_, {}); }

 private:
  std::vector<std::string> lines_;
};

// "peer 3", "peers 3, 4".
inline std::string PeersText(const std::vector<PeerId>& ids) {
  return absl::StrCat(ids.size() == 1 ? "peer " : "peers ",
                      absl::StrJoin(ids, ", ", [](std::string* out, PeerId id) {
                        absl::StrAppend(out, id.value);
                      }));
}

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_FLEET_NOTES_H_
