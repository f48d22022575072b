// A fleet in one process whose members never change, for tests and benchmarks
// that need no service.
//
// It agrees on a last round as the topology service does, but at once.  This
// header knows nothing of networks.

#ifndef GOSSAMER_TESTS_TESTING_STATIC_MEMBERSHIP_H_
#define GOSSAMER_TESTS_TESTING_STATIC_MEMBERSHIP_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/mutex.h"
#include "runtime/base/event_loop.h"
#include "topology/fleet/change_observers.h"
#include "topology/fleet/membership.h"

namespace gossamer {

// The state that the members of one fleet share.  It outlives them; any thread
// may call it.
class StaticFleet {
 public:
  // `view.epoch` of 0 becomes 1.  A stop is proposed `stop_slack` rounds after
  // the furthest peer.
  explicit StaticFleet(View view, uint64_t stop_slack = 8);
  ~StaticFleet();
  StaticFleet(const StaticFleet&) = delete;
  StaticFleet& operator=(const StaticFleet&) = delete;

  // Returns the membership of peer `id`, to be used on `loop`, which outlives
  // it.  An id has one member at a time; a destroyed member is not waited for
  // when the fleet stops.
  std::unique_ptr<Membership> Join(PeerId id, EventLoop* loop);

  const View& view() const { return view_; }
  void RequestStop() ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the latest report of every member that has made one.
  std::map<PeerId, PeerReport> reports() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  class Peer;
  struct Host {
    EventLoop* loop = nullptr;  // null: the member has left
    std::weak_ptr<ChangeObservers> observers;
    PeerReport report;
    bool reported = false;
    uint64_t begun = 0;
    uint64_t acknowledged = 0;
  };

  // Returns the members' rounds, the largest first.
  std::vector<uint64_t> Rounds() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint64_t MaxRound() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NotifyAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const View view_;
  const uint64_t stop_slack_;
  mutable Mutex mu_;
  std::map<PeerId, Host> hosts_ ABSL_GUARDED_BY(mu_);
  StopState stop_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_TESTING_STATIC_MEMBERSHIP_H_
