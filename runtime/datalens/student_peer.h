// The student's side of a DataLens run: asks every group of teachers about a
// batch of images, blurs the sum of their votes, learns from it, and stops
// when the budget is spent.
//
// Holds no private example.  Knows nothing of networks or of what carries the
// frames.

#ifndef GOSSAMER_RUNTIME_DATALENS_STUDENT_PEER_H_
#define GOSSAMER_RUNTIME_DATALENS_STUDENT_PEER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "algorithms/privacy/rdp_accountant.h"
#include "algorithms/privacy/roles.h"
#include "algorithms/privacy/settings.h"
#include "runtime/base/event_loop.h"
#include "runtime/base/ids.h"
#include "runtime/base/rng.h"
#include "runtime/transport/transport.h"

namespace gossamer {

inline constexpr PeerId kStudentId = {1};
// Of group 0 .. groups - 1.
inline PeerId TeacherGroupId(int group) {
  return {2 + static_cast<uint64_t>(group)};
}
// The first teacher of a group; of group `groups`, one past the last.
inline int FirstTeacher(int teachers, int group, int groups) {
  return static_cast<int>(int64_t{teachers} * group / groups);
}

struct StudentProgress {
  uint64_t step = 0;
  uint64_t queries = 0;  // images that votes were released on
  double epsilon = 0;    // spent, at the budget's delta
};

struct StudentOptions {
  DataLensSettings settings;  // checked
  int dimensions = 0;
  int classes = 0;
  int groups = 1;
  // Whoever knows it can take the noise off again.
  RngKey noise = RngKey(0);
  uint64_t most_steps = 0;  // 0: until the budget is spent
  // For a group's answer.
  absl::Duration patience = absl::Seconds(60);
  std::function<void(const StudentProgress&)> on_step = {};  // may be empty
};

// All calls on the loop, but the constructor's.
class StudentPeer : public TransportListener {
 public:
  // All outlive it.  `done` is called once, at the end: OK when the budget is
  // spent or the steps are made; kDeadlineExceeded names the groups that did
  // not answer; what a group refused with, kFailedPrecondition.
  StudentPeer(EventLoop* loop, Transport* transport, Student* student,
              StudentOptions options, std::function<void(absl::Status)> done);

  void Start();
  const StudentProgress& progress() const { return progress_; }
  // The run ended because one more batch would have cost too much.
  bool budget_spent() const { return budget_spent_; }

  void OnUp(PeerId peer, ConnectionId connection) override;
  void OnFrame(PeerId peer, ConnectionId connection, Channel channel,
               Frame frame) override;
  void OnDown(PeerId peer, ConnectionId connection,
              const absl::Status& why) override;

 private:
  void NextStep();
  absl::Status EndStep();
  void SendQuestion(PeerId peer);
  absl::Status Count(PeerId peer, const VoteHead& head, const Frame& frame);
  void SetTimer(absl::Duration after);
  void End(absl::Status status);
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
  std::set<PeerId> up_;
  std::set<PeerId> waiting_;  // for their votes on the step
  Payload question_;
  std::vector<int32_t> sums_;
  EventLoop::TimerId timer_{};
  bool ended_ = false;
  absl::Status status_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DATALENS_STUDENT_PEER_H_
