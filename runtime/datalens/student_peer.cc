#include "runtime/datalens/student_peer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/privacy/topagg.h"

namespace gossamer {
namespace {

// The time for groups to hear of the end before the transport goes.
constexpr absl::Duration kFarewell = absl::Seconds(2);

int GroupNumber(PeerId peer) {
  return static_cast<int>(peer.value - TeacherGroupId(0).value);
}

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
    waiting_.insert(TeacherGroupId(g));
    transport_->Connect(TeacherGroupId(g), "");  // groups dial
  }
  if (AtTheEnd()) {
    End(absl::OkStatus());
  } else {
    SetTimer(options_.patience);
  }
}

void StudentPeer::Stop() {
  stopping_ = true;
  StopUnlessUnderWay();
}

// A step whose votes cannot all come is abandoned: it has released nothing.
void StudentPeer::StopUnlessUnderWay() {
  const bool under_way =
      begun_ && std::all_of(waiting_.begin(), waiting_.end(),
                            [this](PeerId g) { return links_.contains(g); });
  if (!stopping_ || ended_ || under_way) return;
  AtTheEnd();
  End(absl::OkStatus());
}

bool StudentPeer::AtTheEnd() {
  const DataLensSettings& s = options_.settings;
  budget_spent_ =
      accountant_.Epsilon(s.budget.delta, s.batch) > s.budget.epsilon;
  const bool steps_made =
      options_.most_steps > 0 && progress_.step >= options_.most_steps;
  stopped_ = stopping_ && !budget_spent_ && !steps_made;
  return stopped_ || budget_spent_ || steps_made;
}

void StudentPeer::NextStep() {
  if (ended_) return;
  if (AtTheEnd()) {
    End(absl::OkStatus());
    return;
  }
  absl::StatusOr<ImageBatch> batch = student_->Ask(progress_.step + 1);
  if (!batch.ok()) {
    End(Unfit(batch.status()));
    return;
  }
  question_ = Payload::FromVector(EncodeImages(*batch));
  sums_.assign(batch->images.size(), 0);
  for (int g = 0; g < options_.groups; ++g) waiting_.insert(TeacherGroupId(g));
  SetTimer(options_.patience);
  for (const PeerId peer : waiting_) SendQuestion(peer);
}

// The student cannot go on.  The released votes are paid for in any case.
absl::Status StudentPeer::Unfit(const absl::Status& why) const {
  return absl::InternalError(absl::StrFormat(
      "step %d: %s. Epsilon %.4g of %g is spent and stays spent",
      progress_.step + 1, std::string(why.message()), progress_.epsilon,
      options_.settings.budget.epsilon));
}

bool StudentPeer::KeepsAfter(uint64_t step) const {
  return options_.kept != nullptr && options_.keep_every > 0 &&
         step % options_.keep_every == 0;
}

void StudentPeer::SendQuestion(PeerId peer) {
  const auto link = links_.find(peer);
  if (link == links_.end() || link->second.steps.empty()) {
    return;  // asked once it has reported its steps
  }
  const uint64_t step = progress_.step + 1;
  // A lost question is asked again on the next connection.
  (void)transport_->Send(
      peer, Channel::kCollective,
      {.head = Payload::FromVector(Encode(VoteHead{.fingerprint = fingerprint_,
                                                   .step = step,
                                                   .keep = KeepsAfter(step)})),
       .body = question_});
}

void StudentPeer::OnUp(PeerId peer, ConnectionId connection) {
  links_[peer].open.insert(connection);
  if (ended_) SendEnd(peer);
}

void StudentPeer::OnDown(PeerId peer, ConnectionId connection,
                         const absl::Status&) {
  const auto link = links_.find(peer);
  if (link == links_.end()) return;
  link->second.open.erase(connection);
  if (!link->second.open.empty()) {
    // The question may have been lost with the connection.
    if (!ended_ && begun_ && waiting_.contains(peer)) SendQuestion(peer);
    return;
  }
  links_.erase(link);
  if (!begun_) waiting_.insert(peer);
  StopUnlessUnderWay();
  if (ended_) FinishIfAllAreGone();
}

void StudentPeer::OnFrame(PeerId peer, ConnectionId connection, Channel channel,
                          Frame frame) {
  if (ended_ || channel != Channel::kCollective) return;
  const absl::StatusOr<VoteHead> head = DecodeVoteHead(frame.head.bytes());
  const absl::Status read =
      head.ok() ? Read(peer, connection, *head, frame) : head.status();
  if (absl::IsDataLoss(read)) {
    transport_->Close(peer, connection, read);
  } else if (!read.ok()) {
    End(read);
  }
}

absl::Status StudentPeer::Read(PeerId peer, ConnectionId connection,
                               const VoteHead& head, const Frame& frame) {
  const int group = GroupNumber(peer);
  if (head.kind == VoteHead::Kind::kRefusal) {
    return absl::FailedPreconditionError(absl::StrCat(
        "teachers of group ", group, " refuse: ", TextOf(frame.body.bytes())));
  }
  if (head.fingerprint != fingerprint_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the student and group ", group,
        " have different settings or seeds; give all the same options"));
  }
  const int teachers = options_.settings.teachers;
  const int first = FirstTeacher(teachers, group, options_.groups);
  const int count = FirstTeacher(teachers, group + 1, options_.groups) - first;
  if (head.first != static_cast<uint32_t>(first) ||
      head.count != static_cast<uint32_t>(count)) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "group %d has teachers %d to %d, not %d to %d; give all the same "
        "--groups",
        group, head.first, int64_t{head.first} + head.count - 1, first,
        first + count - 1));
  }
  switch (head.kind) {
    case VoteHead::Kind::kReady: {
      ConnectionId& said_on = links_[peer].said_on;
      // An answer of an earlier incarnation.
      if (connection < said_on) return absl::OkStatus();
      said_on = connection;
      return Welcome(peer, head, frame);
    }
    case VoteHead::Kind::kVotes:
      return Count(peer, head, frame);
    default:
      return absl::DataLossError("a message that no group sends");
  }
}

absl::Status StudentPeer::Welcome(PeerId peer, const VoteHead& head,
                                  const Frame& frame) {
  Link& link = links_[peer];
  GOSSAMER_ASSIGN_OR_RETURN(link.steps, DecodeSteps(frame.body.bytes()));
  if (options_.kept != nullptr && !head.keep) {
    return absl::FailedPreconditionError(
        absl::StrCat("group ", GroupNumber(peer),
                     " keeps no state, and the student does: start its "
                     "teachers with --checkpoints, too"));
  }
  if (!begun_) {
    waiting_.erase(peer);
    return waiting_.empty() ? Begin() : absl::OkStatus();
  }
  if (!std::ranges::binary_search(link.steps, progress_.step)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "group ", GroupNumber(peer), " came back after step ",
        link.steps.back(), ", and the student is after step ", progress_.step,
        options_.kept != nullptr
            ? ": start again what has ended, and all go on from the newest "
              "step that they share"
            : ": start all again"));
  }
  if (waiting_.contains(peer)) SendQuestion(peer);
  return absl::OkStatus();
}

// Every step needs every group.  So no group has a state of another course than
// the student's under a number that both have.
absl::StatusOr<uint64_t> StudentPeer::CommonStep() const {
  std::set<uint64_t> own = {progress_.step};
  if (options_.kept != nullptr) own.merge(std::set(options_.kept->steps()));
  for (auto step = own.rbegin(); step != own.rend(); ++step) {
    if (std::ranges::all_of(links_, [&](const auto& link) {
          return std::ranges::binary_search(link.second.steps, *step);
        })) {
      return *step;
    }
  }
  std::string who = absl::StrCat("the student can go on after step ",
                                 absl::StrJoin(own, ", "));
  for (const auto& [peer, link] : links_) {
    absl::StrAppend(&who, "; group ", GroupNumber(peer), " after step ",
                    absl::StrJoin(link.steps, ", "));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "no step is common to all: ", who,
      ". Give each the folder of --checkpoints that it had, or start all again "
      "without one; what was spent on the same data stays spent"));
}

absl::Status StudentPeer::Begin() {
  GOSSAMER_ASSIGN_OR_RETURN(const uint64_t step, CommonStep());
  if (step != progress_.step) {
    GOSSAMER_RETURN_IF_ERROR(OwnError(GoTo(step)));
  }
  GOSSAMER_RETURN_IF_ERROR(OwnError(Keep()));
  begun_ = true;
  NextStep();
  return absl::OkStatus();
}

absl::Status StudentPeer::Count(PeerId peer, const VoteHead& head,
                                const Frame& frame) {
  // A repeated answer, after a reconnect, is ignored.
  if (!begun_ || head.step != progress_.step + 1 || !waiting_.contains(peer)) {
    return absl::OkStatus();
  }
  GOSSAMER_RETURN_IF_ERROR(
      AddVotes(frame.body.bytes(), static_cast<int>(head.count), sums_));
  waiting_.erase(peer);
  return waiting_.empty() ? OwnError(EndStep()) : absl::OkStatus();
}

absl::Status StudentPeer::EndStep() {
  CancelTimer();  // all have answered; only this end has work left
  const DataLensSettings& s = options_.settings;
  const auto batch = static_cast<uint64_t>(s.batch);
  // The price is on disk before the votes that it pays for are released.  A
  // student that dies between the two has paid for nothing, and no vote is out
  // that is not paid for.
  if (options_.ledger != nullptr) {
    GOSSAMER_RETURN_IF_ERROR(options_.ledger->Spend(progress_.queries + batch));
  }
  accountant_.Spend(batch);
  progress_.queries = accountant_.spent();
  progress_.epsilon = accountant_.Epsilon(s.budget.delta);
  const uint64_t step = progress_.step + 1;
  std::vector<int8_t> direction(sums_.size());
  Release(sums_, s.sigma, s.threshold * s.teachers, options_.noise.Fold(step),
          direction);
  whole_ = false;
  const absl::Status learnt = student_->Learn(direction);
  if (!learnt.ok()) return Unfit(learnt);
  progress_.step = step;
  whole_ = true;
  if (KeepsAfter(step)) {
    GOSSAMER_RETURN_IF_ERROR(Keep());
  }
  if (options_.on_step) options_.on_step(progress_);
  loop_->Post([this] { NextStep(); });
  return absl::OkStatus();
}

void StudentPeer::CancelTimer() {
  if (timer_ != EventLoop::TimerId{}) loop_->Cancel(timer_);
  timer_ = {};
}

void StudentPeer::SetTimer(absl::Duration after) {
  CancelTimer();
  timer_ = loop_->RunAt(loop_->Now() + after, [this] {
    timer_ = {};
    if (ended_) {
      Finish();
    } else {
      End(Missing());
    }
  });
}

absl::Status StudentPeer::Missing() const {
  std::string missing;
  for (const PeerId peer : waiting_) {
    absl::StrAppend(&missing, missing.empty() ? "" : ", ", GroupNumber(peer),
                    links_.contains(peer) ? "" : " (not connected)");
  }
  return absl::DeadlineExceededError(absl::StrCat(
      "no ",
      begun_ ? absl::StrCat("votes on step ", progress_.step + 1) : "sign",
      " within ", absl::FormatDuration(options_.patience), " from group ",
      missing,
      options_.kept != nullptr
          ? "; start again what has ended: all go on from the newest step that "
            "they share"
          : "; teachers keep their networks in memory, so start the run again "
            "(with --checkpoints it could go on)"));
}

void StudentPeer::End(absl::Status status) {
  ended_ = true;
  const absl::Status kept = Keep();
  status_ = status.ok() ? kept : std::move(status);
  for (const auto& [peer, link] : links_) SendEnd(peer);
  // Groups that are reconnecting should hear of the end too.
  SetTimer(kFarewell);
  FinishIfAllAreGone();
}

void StudentPeer::SendEnd(PeerId peer) {
  told_.insert(peer);
  (void)transport_->Send(
      peer, Channel::kCollective,
      {.head = Payload::FromVector(
           Encode(VoteHead{.kind = status_.ok() ? VoteHead::Kind::kEnd
                                                : VoteHead::Kind::kRefusal,
                           .fingerprint = fingerprint_,
                           .step = progress_.step})),
       .body =
           Payload::FromVector(EncodeText(std::string(status_.message())))});
}

void StudentPeer::FinishIfAllAreGone() {
  if (links_.empty() &&
      (begun_ || told_.size() == static_cast<size_t>(options_.groups))) {
    Finish();
  }
}

void StudentPeer::Finish() {
  CancelTimer();
  if (done_) std::exchange(done_, nullptr)(status_);
}

}  // namespace gossamer
