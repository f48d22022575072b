// Decisions that wait a little, so that one is made for several members.
//
// This header knows nothing of what is decided.

#ifndef GOSSAMER_TOPOLOGY_FLEET_BATCH_WINDOW_H_
#define GOSSAMER_TOPOLOGY_FLEET_BATCH_WINDOW_H_

#include "absl/time/time.h"

namespace gossamer {

// Every view costs each member its edges to new neighbours, so peers that fail
// or come together are put into one: a decision that can be made waits for
// others like it, but never longer than all peers need to report.
class BatchWindow {
 public:
  explicit BatchWindow(absl::Duration heartbeat) : longest_(1.5 * heartbeat) {}

  // A decision can be made now.  Returns true if it is to wait, because
  // `others` like it are to come.
  bool Waits(bool others, absl::Time now) {
    if (since_ == absl::InfiniteFuture()) since_ = now;
    return others && now - since_ < longest_;
  }
  // The decision has been made, or nothing is left to decide.
  void End() { since_ = absl::InfiniteFuture(); }
  bool begun() const { return since_ != absl::InfiniteFuture(); }

 private:
  const absl::Duration longest_;
  absl::Time since_ = absl::InfiniteFuture();
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_BATCH_WINDOW_H_
