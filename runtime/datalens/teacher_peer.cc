#include "runtime/datalens/teacher_peer.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "runtime/datalens/student_peer.h"

namespace gossamer {
namespace {

constexpr absl::Duration kRefusalGoesOut = absl::Seconds(1);

}  // namespace

TeacherPeer::TeacherPeer(EventLoop* loop, Transport* transport,
                         TeacherGroup* teachers, TeacherOptions options,
                         std::function<void(absl::Status)> done)
    : loop_(loop),
      transport_(transport),
      teachers_(teachers),
      options_(std::move(options)),
      fingerprint_(FingerprintOf(options_.settings)),
      done_(std::move(done)) {}

void TeacherPeer::VisitState(StateVisitor& visitor) {
  visitor.Counter("answered", answered_);
  visitor.Bytes("answer", last_);
  PrefixedVisitor own(visitor, "teachers.");
  teachers_->VisitState(own);
}

absl::Status TeacherPeer::Restore() {
  if (options_.kept == nullptr) return absl::OkStatus();
  const std::set<uint64_t>& steps = options_.kept->steps();
  return steps.empty() ? Keep() : GoTo(*steps.rbegin());
}

absl::Status TeacherPeer::GoTo(uint64_t step) {
  return options_.kept->GoTo(step, [this](StateVisitor& v) { VisitState(v); });
}

absl::Status TeacherPeer::Keep() {
  if (options_.kept == nullptr || options_.kept->steps().contains(answered_)) {
    return absl::OkStatus();
  }
  return options_.kept->Save(answered_,
                             [this](StateVisitor& v) { VisitState(v); });
}

void TeacherPeer::Start() {
  transport_->Connect(kStudentId, options_.student);
  SetTimer();
}

void TeacherPeer::Stop() {
  if (!refused_) KeepAndFinish(absl::OkStatus());
}

void TeacherPeer::OnUp(PeerId, ConnectionId) {
  std::set<uint64_t> steps = {answered_};
  if (answered_ > 0) steps.insert(answered_ - 1);  // its answer is at hand
  if (options_.kept != nullptr) {
    steps.merge(std::set(options_.kept->steps()));
  }
  Send(VoteHead::Kind::kReady,
       EncodeSteps(std::vector(steps.begin(), steps.end())));
}

void TeacherPeer::OnFrame(PeerId peer, ConnectionId connection, Channel channel,
                          Frame frame) {
  if (!done_ || refused_ || channel != Channel::kCollective) return;
  const absl::StatusOr<VoteHead> head = DecodeVoteHead(frame.head.bytes());
  const absl::Status read = head.ok() ? Read(*head, frame) : head.status();
  if (read.ok()) return;
  if (absl::IsDataLoss(read)) {
    transport_->Close(peer, connection, read);
    return;
  }
  Send(VoteHead::Kind::kRefusal, EncodeText(std::string(read.message())));
  // The refusal goes out before the end.
  refused_ = true;
  if (timer_ != EventLoop::TimerId{}) loop_->Cancel(timer_);
  timer_ = loop_->RunAt(loop_->Now() + kRefusalGoesOut, [this, read] {
    timer_ = {};
    Finish(read);
  });
}

absl::Status TeacherPeer::Read(const VoteHead& head, const Frame& frame) {
  if (head.fingerprint != fingerprint_) {
    return absl::FailedPreconditionError(
        "student and teachers have different settings or seeds; give all the "
        "same options");
  }
  switch (head.kind) {
    case VoteHead::Kind::kEnd:
      KeepAndFinish(absl::OkStatus());
      return absl::OkStatus();
    case VoteHead::Kind::kRefusal:
      KeepAndFinish(absl::FailedPreconditionError(
          absl::StrCat("the student ended: ", TextOf(frame.body.bytes()))));
      return absl::OkStatus();
    case VoteHead::Kind::kQuestion: {
      const absl::Status answered = Answer(head, frame);
      SetTimer();  // a vote takes as long as it takes
      return answered;
    }
    default:
      return absl::DataLossError("a message that no student sends");
  }
}

absl::Status TeacherPeer::Answer(const VoteHead& head, const Frame& frame) {
  if (head.keep && options_.kept == nullptr) {
    return absl::FailedPreconditionError(
        "asked to keep its state, and was started without --checkpoints");
  }
  if (head.step == 0) return absl::DataLossError("a question of step 0");
  if (head.step != answered_) {
    GOSSAMER_ASSIGN_OR_RETURN(
        const ImageBatch batch,
        DecodeImages(frame.body.bytes(), options_.settings.batch,
                     options_.dimensions, options_.classes));
    if (head.step != answered_ + 1) {
      GOSSAMER_RETURN_IF_ERROR(GoBackTo(head.step - 1));
    }
    auto votes = teachers_->Vote(head.step, batch);
    if (!votes.ok()) return OwnError(votes.status());
    SayWhoAbstains(head.step);
    last_ = EncodeVotes(*votes);
    answered_ = head.step;
  }
  // The group can go on from every state that the student counts on.
  if (head.keep) {
    GOSSAMER_RETURN_IF_ERROR(OwnError(Keep()));
  }
  Send(VoteHead::Kind::kVotes, last_);
  return absl::OkStatus();
}

void TeacherPeer::SayWhoAbstains(uint64_t step) {
  const int abstain = teachers_->NotFinite();
  if (abstain == 0 || said_ || !options_.on_problem) return;
  said_ = true;
  options_.on_problem(absl::StrCat(
      "from step ", step, " on ", abstain, " of teachers ", teachers_->first(),
      " to ", teachers_->first() + teachers_->count() - 1,
      " abstain, as their gradients are not finite; the budget is spent all "
      "the same. Try a smaller --teacher-rate"));
}

absl::Status TeacherPeer::GoBackTo(uint64_t step) {
  if (options_.kept != nullptr && options_.kept->steps().contains(step)) {
    return OwnError(GoTo(step));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "asked for step ", step + 1, " after step ", answered_,
      ": this group or its student has been started anew; start all again"));
}

void TeacherPeer::Send(VoteHead::Kind kind, std::vector<std::byte> body) {
  // A lost answer is asked for again.
  (void)transport_->Send(
      kStudentId, Channel::kCollective,
      {.head = Payload::FromVector(
           Encode({.kind = kind,
                   .fingerprint = fingerprint_,
                   .step = answered_,
                   .first = static_cast<uint32_t>(teachers_->first()),
                   .count = static_cast<uint32_t>(teachers_->count()),
                   .keep = options_.kept != nullptr})),
       .body = Payload::FromVector(std::move(body))});
}

void TeacherPeer::SetTimer() {
  if (timer_ != EventLoop::TimerId{}) loop_->Cancel(timer_);
  // The student waits for other groups, up to its patience, and then learns.
  const absl::Duration limit = 2 * options_.patience;
  timer_ = loop_->RunAt(loop_->Now() + limit, [this, limit] {
    timer_ = {};
    KeepAndFinish(absl::DeadlineExceededError(absl::StrCat(
        "no question from the student within ", absl::FormatDuration(limit),
        " after step ", answered_, "; is it running, and reachable at ",
        options_.student, "?")));
  });
}

void TeacherPeer::KeepAndFinish(const absl::Status& status) {
  const absl::Status kept = Keep();
  Finish(status.ok() ? kept : status);
}

void TeacherPeer::Finish(absl::Status status) {
  if (timer_ != EventLoop::TimerId{}) loop_->Cancel(timer_);
  timer_ = {};
  if (done_) std::exchange(done_, nullptr)(std::move(status));
}

}  // namespace gossamer
