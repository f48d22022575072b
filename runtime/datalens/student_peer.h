// The student's side of a DataLens run.  It asks every group of teachers about
// a batch of images, adds noise to the sum of their votes, learns from it, and
// stops when the budget is spent.  With kept states, all sides go on from the
// newest step that all of them have.
//
// Holds no private example.  Knows nothing of networks or of what carries the
// frames.

#ifndef GOSSAMER_RUNTIME_DATALENS_STUDENT_PEER_H_
#define GOSSAMER_RUNTIME_DATALENS_STUDENT_PEER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/payload.h"
#include "algorithms/base/rng.h"
#include "algorithms/privacy/rdp_accountant.h"
#include "algorithms/privacy/roles.h"
#include "algorithms/privacy/settings.h"
#include "runtime/base/event_loop.h"
#include "runtime/datalens/kept_state.h"
#include "runtime/transport/transport.h"

namespace gossamer {

inline constexpr PeerId kStudentId = {1};
// Returns the id of group 0 .. groups - 1.
inline PeerId TeacherGroupId(int group) {
  return {2 + static_cast<uint64_t>(group)};
}
// Returns the first teacher of a group; for group `groups`, one past the last.
inline int FirstTeacher(int teachers, int group, int groups) {
  return static_cast<int>(int64_t{teachers} * group / groups);
}

// Marks an error of this side, whatever its code.  No frame is its cause, so it
// ends the run and not a connection.
inline absl::Status OwnError(const absl::Status& status) {
  return status.ok() ? status : absl::InternalError(status.message());
}

struct StudentProgress {
  uint64_t step = 0;
  uint64_t queries = 0;  // images that votes may have been released on
  double epsilon = 0;    // spent, at the budget's delta
};

struct StudentOptions {
  DataLensSettings settings;  // checked
  int dimensions = 0;
  int classes = 0;
  int groups = 1;
  // A reader who knows it can remove the noise.
  RngKey noise = RngKey(0);
  // The noise is the same after a restart.  A repeated step then releases the
  // same votes, and costs nothing.
  bool noise_repeats = false;
  uint64_t most_steps = 0;  // over all restarts; 0: until the budget is spent
  // Both are set or neither.
  KeptState* kept = nullptr;
  PrivacyLedger* ledger = nullptr;
  uint64_t keep_every = 0;  // steps; 0: only when stopped and at the end
  // The time for a group's answer.
  absl::Duration patience = absl::Seconds(60);
  std::function<void(const StudentProgress&)> on_step = {};  // may be empty
};

// All calls are made on the loop, except the constructor and Restore().
class StudentPeer : public TransportListener {
 public:
  // All arguments outlive it.  `done` is called once, at the end: OK when the
  // budget is spent, all steps are made or Stop() was called; kDeadlineExceeded
  // names the groups that did not answer; kFailedPrecondition has a group's
  // refusal, or says that no step is common to all.
  StudentPeer(EventLoop* loop, Transport* transport, Student* student,
              StudentOptions options, std::function<void(absl::Status)> done);

  // Restores the newest kept state, before Start().  Returns kDataLoss if more
  // was spent than the ledger says, or if the state does not fit.
  absl::Status Restore();
  void Start();
  // Ends the run after the step under way, or at once if a group that it waits
  // for is gone.
  void Stop();
  const StudentProgress& progress() const { return progress_; }
  // Returns whether the run ended because one more batch would have cost too
  // much.
  bool budget_spent() const { return budget_spent_; }
  // Returns whether it ended because of Stop().
  bool stopped() const { return stopped_; }

  void OnUp(PeerId peer, ConnectionId connection) override;
  void OnFrame(PeerId peer, ConnectionId connection, Channel channel,
               Frame frame) override;
  void OnDown(PeerId peer, ConnectionId connection,
              const absl::Status& why) override;

 private:
  // A group that is connected.
  struct Link {
    std::set<ConnectionId> open;
    // Steps that it can go on after; empty: not reported yet.
    std::vector<uint64_t> steps;
    ConnectionId said_on = 0;
  };

  absl::Status GoTo(uint64_t step);
  void Charge();
  absl::Status Keep();
  bool KeepsAfter(uint64_t step) const;
  void VisitState(StateVisitor& visitor);
  // Returns whether no further step may begin, and notes why.
  bool AtTheEnd();
  void StopUnlessUnderWay();
  void NextStep();
  absl::Status EndStep();
  absl::Status Unfit(const absl::Status& why) const;
  void SendQuestion(PeerId peer);
  absl::Status Read(PeerId peer, ConnectionId connection, const VoteHead& head,
                    const Frame& frame);
  absl::Status Welcome(PeerId peer, const VoteHead& head, const Frame& frame);
  absl::Status Begin();
  absl::StatusOr<uint64_t> CommonStep() const;
  absl::Status Count(PeerId peer, const VoteHead& head, const Frame& frame);
  absl::Status Missing() const;
  void CancelTimer();
  void SetTimer(absl::Duration after);
  void End(absl::Status status);
  void SendEnd(PeerId peer);
  void FinishIfAllAreGone();
  void Finish();

  EventLoop* const loop_;
  Transport* const transport_;
  Student* const student_;
  const StudentOptions options_;
  const uint64_t fingerprint_;
  std::function<void(absl::Status)> done_;
  RdpAccountant accountant_;
  StudentProgress progress_;
  bool budget_spent_ = false;
  bool stopping_ = false, stopped_ = false;
  bool begun_ = false;  // all sides are after the same step
  bool whole_ = true;   // the state is one between two steps
  std::map<PeerId, Link> links_;
  std::set<PeerId> waiting_;  // groups that owe their steps, then their votes
  Payload question_;
  std::vector<int32_t> sums_;
  EventLoop::TimerId timer_{};
  bool ended_ = false;
  std::set<PeerId> told_;  // groups that have heard of the end
  absl::Status status_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DATALENS_STUDENT_PEER_H_
