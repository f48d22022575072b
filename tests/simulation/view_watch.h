// Checks the views that one peer takes: each is newer than the one before, and
// living peers have the same view by the same number.
//
// This header knows nothing of what a view says of its members.

#ifndef GOSSAMER_TESTS_SIMULATION_VIEW_WATCH_H_
#define GOSSAMER_TESTS_SIMULATION_VIEW_WATCH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "topology/view.h"

namespace gossamer::simulation {

// The views of living peers, by generation and epoch.  A service whose clock is
// wrong may number its views as an earlier one did, if neither its old disk nor
// any living peer knows of those: therefore the pointers are weak.
using KnownViews =
    std::map<std::pair<uint64_t, uint64_t>, std::weak_ptr<const View>>;

class ViewWatch {
 public:
  // `known`, of all peers, outlives it.
  ViewWatch(KnownViews& known,
            std::function<void(const std::string& what)> violation)
      : known_(known), violation_(std::move(violation)) {}

  // Another incarnation begins, which has no view yet.
  void BeginIncarnation();
  enum class Taken { kNone, kFirst, kLater };
  // Looks at the peer's view, and returns which one of the incarnation it has
  // taken since the last look.  `adopted`: as TopologyClient's.
  Taken Check(const View& view, bool adopted);

 private:
  KnownViews& known_;
  const std::function<void(const std::string&)> violation_;
  View seen_;
  // All since the incarnation began.
  std::vector<std::shared_ptr<const View>> views_;
};

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_VIEW_WATCH_H_
