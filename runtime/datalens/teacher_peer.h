// The teachers' side of a DataLens run: a group that answers the student's
// questions with the sum of its votes, each question once.  With kept states
// the group follows the student: asked about step n, it goes to its state after
// step n - 1.
//
// Knows nothing of networks or of what carries the frames.

#ifndef GOSSAMER_RUNTIME_DATALENS_TEACHER_PEER_H_
#define GOSSAMER_RUNTIME_DATALENS_TEACHER_PEER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "algorithms/base/state.h"
#include "algorithms/privacy/roles.h"
#include "algorithms/privacy/settings.h"
#include "runtime/base/event_loop.h"
#include "runtime/datalens/kept_state.h"
#include "runtime/transport/transport.h"

namespace gossamer {

struct TeacherOptions {
  DataLensSettings settings;  // checked
  int dimensions = 0;
  int classes = 0;
  std::string student;  // host:port
  // The time for the next question.
  absl::Duration patience = absl::Minutes(5);
  KeptState* kept = nullptr;  // may be null
  // Called once, for the first teachers that abstain because a value is not
  // finite; may be empty.
  std::function<void(const std::string&)> on_problem = {};
};

// All calls are made on the loop, except the constructor and Restore().
class TeacherPeer : public TransportListener {
 public:
  // All arguments outlive it.  `done` is called once, at the end: OK when the
  // student ends the run; kDeadlineExceeded if it falls silent;
  // kFailedPrecondition if it failed, belongs to another run, or asks for a
  // step that this group can no longer answer.
  TeacherPeer(EventLoop* loop, Transport* transport, TeacherGroup* teachers,
              TeacherOptions options, std::function<void(absl::Status)> done);

  // Restores the newest kept state, or keeps the first one, before Start().
  absl::Status Restore();
  void Start();
  // Keeps the state and ends; the student may wait for the group's return.
  void Stop();
  uint64_t answered() const { return answered_; }  // steps

  void OnUp(PeerId peer, ConnectionId connection) override;
  void OnFrame(PeerId peer, ConnectionId connection, Channel channel,
               Frame frame) override;
  void OnDown(PeerId peer, ConnectionId connection,
              const absl::Status& why) override {}

 private:
  // Returns kDataLoss for a damaged message; other errors end the run.
  absl::Status Read(const VoteHead& head, const Frame& frame);
  absl::Status Answer(const VoteHead& head, const Frame& frame);
  absl::Status GoTo(uint64_t step);
  void SayWhoAbstains(uint64_t step);
  absl::Status GoBackTo(uint64_t step);
  absl::Status Keep();
  void VisitState(StateVisitor& visitor);
  void Send(VoteHead::Kind kind, std::vector<std::byte> body);
  void SetTimer();
  void KeepAndFinish(const absl::Status& status);
  void Finish(absl::Status status);

  EventLoop* const loop_;
  Transport* const transport_;
  TeacherGroup* const teachers_;
  const TeacherOptions options_;
  const uint64_t fingerprint_;
  std::function<void(absl::Status)> done_;
  uint64_t answered_ = 0;
  // The last answer, for a student that did not receive it.
  std::vector<std::byte> last_;
  bool refused_ = false;
  bool said_ = false;  // the abstaining teachers have been reported
  EventLoop::TimerId timer_{};
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DATALENS_TEACHER_PEER_H_
