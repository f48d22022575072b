#include "runtime/datalens/teacher_peer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
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

void TeacherPeer::Start() {
  transport_->Connect(kStudentId, options_.student);
  SetTimer();
}

void TeacherPeer::OnFrame(PeerId peer, ConnectionId connection, Channel channel,
                          Frame frame) {
  if (!done_ || refused_ || channel != Channel::kCollective) return;
  const absl::StatusOr<VoteHead> head = DecodeVoteHead(frame.head.bytes());
  const absl::Status answered =
      head.ok() ? Answer(*head, frame) : head.status();
  if (answered.ok()) return;
  if (absl::IsDataLoss(answered)) {
    transport_->Close(peer, connection, answered);
    return;
  }
  std::string why(answered.message());
  why.resize(std::min(why.size(), kMostRefusalBytes));
  std::vector<std::byte> text(why.size());
  std::memcpy(text.data(), why.data(), why.size());
  Send(VoteHead::Kind::kRefusal, Payload::FromVector(std::move(text)));
  // It goes out first.
  refused_ = true;
  if (timer_ != EventLoop::TimerId{}) loop_->Cancel(timer_);
  timer_ = loop_->RunAt(loop_->Now() + kRefusalGoesOut, [this, answered] {
    timer_ = {};
    Finish(answered);
  });
}

absl::Status TeacherPeer::Answer(const VoteHead& head, const Frame& frame) {
  if (head.fingerprint != fingerprint_) {
    return absl::FailedPreconditionError(
        "student and teachers have different settings or seeds; give all the "
        "same options");
  }
  if (head.kind == VoteHead::Kind::kEnd) {
    Finish(absl::OkStatus());
    return absl::OkStatus();
  }
  if (head.kind != VoteHead::Kind::kQuestion) {
    return absl::DataLossError("a message that no student sends");
  }
  SetTimer();
  if (answered_ > 0 && head.step == answered_) {
    Send(VoteHead::Kind::kVotes, last_);
    return absl::OkStatus();
  }
  if (head.step != answered_ + 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        "asked for step ", head.step, " after step ", answered_,
        ": this group or its student has been started anew; start all again"));
  }
  GOSSAMER_ASSIGN_OR_RETURN(
      const ImageBatch batch,
      DecodeImages(frame.body.bytes(), options_.settings.batch,
                   options_.dimensions, options_.classes));
  auto votes = teachers_->Vote(head.step, batch);
  if (!votes.ok()) {
    return absl::InternalError(votes.status().message());
  }
  last_ = Payload::FromVector(EncodeVotes(*votes));
  answered_ = head.step;
  Send(VoteHead::Kind::kVotes, last_);
  return absl::OkStatus();
}

void TeacherPeer::Send(VoteHead::Kind kind, const Payload& body) {
  // What does not get through is asked for again.
  (void)transport_->Send(
      kStudentId, Channel::kCollective,
      {.head = Payload::FromVector(
           Encode({.kind = kind,
                   .fingerprint = fingerprint_,
                   .step = answered_,
                   .first = static_cast<uint32_t>(teachers_->first()),
                   .count = static_cast<uint32_t>(teachers_->count())})),
       .body = body});
}

void TeacherPeer::SetTimer() {
  if (timer_ != EventLoop::TimerId{}) loop_->Cancel(timer_);
  timer_ = loop_->RunAt(loop_->Now() + options_.patience, [this] {
    timer_ = {};
    Finish(absl::DeadlineExceededError(absl::StrCat(
        "no question from the student within ",
        absl::FormatDuration(options_.patience), " after step ", answered_,
        "; is it running, and reachable at ", options_.student, "?")));
  });
}

void TeacherPeer::Finish(absl::Status status) {
  if (timer_ != EventLoop::TimerId{}) loop_->Cancel(timer_);
  timer_ = {};
  if (done_) std::exchange(done_, nullptr)(std::move(status));
}

}  // namespace gossamer
