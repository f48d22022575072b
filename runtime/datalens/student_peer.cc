#include "runtime/datalens/student_peer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/privacy/topagg.h"
#include "runtime/base/status_macros.h"

namespace gossamer {
namespace {

// For groups to hear of the end before the transport goes.
constexpr absl::Duration kFarewell = absl::Seconds(2);

}  // namespace

StudentPeer::StudentPeer(EventLoop* loop, Transport* transport,
                         Student* student, StudentOptions options,
                         std::function<void(absl::Status)> done)
    : loop_(loop),
      transport_(transport),
      student_(student),
      options_(std::move(options)),
      fingerprint_(FingerprintOf(options_.settings)),
      done_(std::move(done)),
      accountant_(*RdpAccountant::Create(VoteSensitivity(options_.settings),
                                         options_.settings.sigma)) {}

void StudentPeer::Start() {
  for (int g = 0; g < options_.groups; ++g) {
    transport_->Connect(TeacherGroupId(g), "");  // groups dial
  }
  NextStep();
}

void StudentPeer::NextStep() {
  if (ended_) return;
  const DataLensSettings& s = options_.settings;
  budget_spent_ =
      accountant_.Epsilon(s.budget.delta, s.batch) > s.budget.epsilon;
  if (budget_spent_ ||
      (options_.most_steps > 0 && progress_.step == options_.most_steps)) {
    End(absl::OkStatus());
    return;
  }
  absl::StatusOr<ImageBatch> batch = student_->Ask(progress_.step + 1);
  if (!batch.ok()) {
    End(batch.status());
    return;
  }
  ++progress_.step;
  question_ = Payload::FromVector(EncodeImages(*batch));
  sums_.assign(batch->images.size(), 0);
  for (int g = 0; g < options_.groups; ++g) waiting_.insert(TeacherGroupId(g));
  SetTimer(options_.patience);
  for (const PeerId peer : waiting_) SendQuestion(peer);
}

void StudentPeer::SendQuestion(PeerId peer) {
  if (!up_.contains(peer)) return;  // asked when it is up
  // One that does not get through is asked again on the next connection.
  (void)transport_->Send(
      peer, Channel::kCollective,
      {.head = Payload::FromVector(Encode(
           VoteHead{.fingerprint = fingerprint_, .step = progress_.step})),
       .body = question_});
}

void StudentPeer::OnUp(PeerId peer, ConnectionId) {
  up_.insert(peer);
  if (!ended_ && waiting_.contains(peer)) SendQuestion(peer);
}

void StudentPeer::OnDown(PeerId peer, ConnectionId, const absl::Status&) {
  up_.erase(peer);
  if (ended_ && up_.empty()) Finish();
}

void StudentPeer::OnFrame(PeerId peer, ConnectionId connection, Channel channel,
                          Frame frame) {
  if (ended_ || channel != Channel::kCollective) return;
  const absl::StatusOr<VoteHead> head = DecodeVoteHead(frame.head.bytes());
  const absl::Status counted =
      head.ok() ? Count(peer, *head, frame) : head.status();
  if (absl::IsDataLoss(counted)) {
    transport_->Close(peer, connection, counted);
  } else if (!counted.ok()) {
    End(counted);
  }
}

absl::Status StudentPeer::Count(PeerId peer, const VoteHead& head,
                                const Frame& frame) {
  const int group = static_cast<int>(peer.value - TeacherGroupId(0).value);
  if (head.kind == VoteHead::Kind::kRefusal) {
    const auto text = frame.body.bytes().first(
        std::min(frame.body.size(), kMostRefusalBytes));
    return absl::FailedPreconditionError(absl::StrCat(
        "teachers of group ", group, " refuse: ",
        absl::string_view(reinterpret_cast<const char*>(text.data()),
                          text.size())));
  }
  const DataLensSettings& s = options_.settings;
  const int first = FirstTeacher(s.teachers, group, options_.groups);
  const int count =
      FirstTeacher(s.teachers, group + 1, options_.groups) - first;
  if (head.kind != VoteHead::Kind::kVotes || head.fingerprint != fingerprint_ ||
      head.first != static_cast<uint32_t>(first) ||
      head.count != static_cast<uint32_t>(count)) {
    return absl::DataLossError(absl::StrFormat(
        "group %d sent votes of teachers %d to %d of another run, not of %d "
        "to %d",
        group, head.first, int64_t{head.first} + head.count - 1, first,
        first + count - 1));
  }
  // A repeated answer, after a reconnect.
  if (head.step != progress_.step || !waiting_.contains(peer)) {
    return absl::OkStatus();
  }
  GOSSAMER_RETURN_IF_ERROR(AddVotes(frame.body.bytes(), count, sums_));
  waiting_.erase(peer);
  return waiting_.empty() ? EndStep() : absl::OkStatus();
}

absl::Status StudentPeer::EndStep() {
  const DataLensSettings& s = options_.settings;
  // First the price, then what it buys.
  accountant_.Spend(static_cast<uint64_t>(s.batch));
  progress_.queries = accountant_.spent();
  progress_.epsilon = accountant_.Epsilon(s.budget.delta);
  std::vector<int8_t> direction(sums_.size());
  Release(sums_, s.sigma, s.threshold * s.teachers,
          options_.noise.Fold(progress_.step), direction);
  GOSSAMER_RETURN_IF_ERROR(student_->Learn(direction));
  if (options_.on_step) options_.on_step(progress_);
  loop_->Post([this] { NextStep(); });
  return absl::OkStatus();
}

void StudentPeer::SetTimer(absl::Duration after) {
  if (timer_ != EventLoop::TimerId{}) loop_->Cancel(timer_);
  timer_ = loop_->RunAt(loop_->Now() + after, [this] {
    timer_ = {};
    if (ended_) {
      Finish();
      return;
    }
    std::string missing;
    for (const PeerId peer : waiting_) {
      absl::StrAppend(&missing, missing.empty() ? "" : ", ",
                      peer.value - TeacherGroupId(0).value,
                      up_.contains(peer) ? "" : " (not connected)");
    }
    End(absl::DeadlineExceededError(absl::StrCat(
        "no votes within ", absl::FormatDuration(options_.patience),
        " on step ", progress_.step, " from group ", missing,
        "; teachers keep their networks in memory, so start the run again")));
  });
}

void StudentPeer::End(absl::Status status) {
  ended_ = true;
  status_ = std::move(status);
  if (up_.empty()) {
    Finish();
    return;
  }
  for (const PeerId peer : up_) {
    (void)transport_->Send(peer, Channel::kCollective,
                           {.head = Payload::FromVector(
                                Encode(VoteHead{.kind = VoteHead::Kind::kEnd,
                                                .fingerprint = fingerprint_,
                                                .step = progress_.step})),
                            .body = {}});
  }
  SetTimer(kFarewell);
}

void StudentPeer::Finish() {
  if (timer_ != EventLoop::TimerId{}) loop_->Cancel(timer_);
  timer_ = {};
  if (done_) std::exchange(done_, nullptr)(status_);
}

}  // namespace gossamer
