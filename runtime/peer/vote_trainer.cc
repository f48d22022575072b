#include "runtime/peer/vote_trainer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/privacy/roles.h"
#include "algorithms/privacy/topagg.h"

namespace gossamer {
namespace {

// How long the end waits for members that are not connected: without a group's
// last votes the student would end with nothing.
constexpr absl::Duration kVoteDrainLimit = absl::Minutes(2);

}  // namespace

VoteTrainer::VoteTrainer(const PeerSpec& spec, Parts parts)
    : spec_(spec),
      parts_(std::move(parts)),
      budget_(spec.votes, parts_.voting.ledger, parts_.voting.noise_repeats),
      exchange_(spec.votes, parts_.role, parts_.transport) {
  if (parts_.role.student == nullptr) return;
  parts_.state->AddState(
      "votes.", [this](StateVisitor& visitor) { budget_.VisitState(visitor); });
}

absl::Duration VoteTrainer::DrainLimit() const { return kVoteDrainLimit; }

// Ids say which teachers a peer has; two peers with the same ones would double
// an example's part of a sum.
absl::Status VoteTrainer::OnView(bool /*first*/, const SavedEdges& /*saved*/) {
  std::vector<PeerId> ids;
  const std::vector<Member>& members = parts_.views->view().members;
  // Teachers are shared out by the configuration's number of peers: with fewer
  // groups some teachers would be missing from every sum.
  if (spec_.peers != 0 && members.size() != static_cast<size_t>(spec_.peers)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the view has ", members.size(), " peers, and the configuration ",
        spec_.peers, ": give the topology service the same configuration"));
  }
  for (const Member& m : members) {
    ids.push_back(m.id);
    if (m.id.value == ids.size()) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "peer ", m.id.value, " is member ", ids.size(),
        " of the view; with this algorithm the ", members.size(),
        " peers must be 1 to ", members.size(),
        ", the student and its groups of teachers: give each its --id"));
  }
  GOSSAMER_RETURN_IF_ERROR(budget_.Resume());
  exchange_.SetMembers(ids, parts_.state->steps());
  const bool student = parts_.role.student != nullptr;
  for (const Member& m : members) {
    const bool other = student ? m.id != spec_.self : m.id == ids.front();
    if (other) parts_.transport->Connect(m.id, m.address);
  }
  return absl::OkStatus();
}

Task<absl::Status> VoteTrainer::Round() {
  Task<absl::Status> step =
      parts_.role.student != nullptr ? AskTeachers() : AnswerStudent();
  GOSSAMER_CO_RETURN_IF_ERROR(co_await step.result());
  if (parts_.lifecycle->over()) co_return absl::OkStatus();
  parts_.state->set_steps(parts_.state->steps() + 1);
  parts_.state->UpdateAverage();
  co_return absl::OkStatus();
}

Task<absl::Status> VoteTrainer::AskTeachers() {
  if (!budget_.Affords()) co_return EndSpent();
  const absl::Time started = parts_.loop->Now();
  absl::StatusOr<ImageBatch> batch = ImageBatch();
  co_await parts_.runner->Run([this, &batch] {
    batch = parts_.role.student->Ask(parts_.state->steps() + 1);
  });
  if (!batch.ok()) co_return CannotGoOn(batch.status());
  const absl::Time asked = parts_.loop->Now();
  exchange_.Ask(*batch);
  Task<absl::Status> wait = Await([this] { return exchange_.answered(); });
  GOSSAMER_CO_RETURN_IF_ERROR(co_await wait.result());
  if (parts_.lifecycle->over()) co_return absl::OkStatus();
  const absl::Time received = parts_.loop->Now();
  absl::Status learnt;
  co_await parts_.runner->Run([this, &learnt] { learnt = Learn(); });
  if (!learnt.ok()) co_return CannotGoOn(learnt);
  RoundMetrics& metrics = parts_.reporter->metrics();
  metrics.epsilon = budget_.epsilon();
  metrics.seconds_waiting = absl::ToDoubleSeconds(received - asked);
  metrics.seconds_computing =
      absl::ToDoubleSeconds(parts_.loop->Now() - started - (received - asked));
  co_return absl::OkStatus();
}

absl::Status VoteTrainer::Learn() {
  GOSSAMER_RETURN_IF_ERROR(budget_.Pay());
  const DataLensSettings& s = spec_.votes;
  std::vector<int8_t> direction(exchange_.sums().size());
  Release(exchange_.sums(), s.sigma, s.threshold * s.teachers,
          parts_.voting.noise.Fold(parts_.state->steps() + 1), direction);
  return parts_.role.student->Learn(direction);
}

Task<absl::Status> VoteTrainer::AnswerStudent() {
  const absl::Time started = parts_.loop->Now();
  Task<absl::Status> wait =
      Await([this] { return exchange_.question().has_value(); });
  GOSSAMER_CO_RETURN_IF_ERROR(co_await wait.result());
  if (parts_.lifecycle->over()) co_return absl::OkStatus();
  const absl::Time received = parts_.loop->Now();
  absl::StatusOr<std::vector<int16_t>> votes = std::vector<int16_t>();
  co_await parts_.runner->Run([this, &votes] {
    votes = parts_.role.teachers->Vote(parts_.state->steps() + 1,
                                       *exchange_.question());
  });
  GOSSAMER_CO_RETURN_IF_ERROR(votes.status());
  NoteAbstaining();
  exchange_.Answer(*votes);
  RoundMetrics& metrics = parts_.reporter->metrics();
  metrics.seconds_waiting = absl::ToDoubleSeconds(received - started);
  metrics.seconds_computing =
      absl::ToDoubleSeconds(parts_.loop->Now() - received);
  co_return absl::OkStatus();
}

Task<absl::Status> VoteTrainer::Await(std::function<bool()> here) {
  const bool ended = co_await parts_.waiter->Until(
      [this, here] {
        return here() || parts_.stop->EndedBehind() ||
               parts_.lifecycle->out_of_time();
      },
      parts_.loop->Now() + spec_.liveness_limit);
  if (here()) co_return absl::OkStatus();
  if (ended) co_return Stop();
  co_return absl::DeadlineExceededError(absl::StrCat(
      "round ", parts_.state->round(), ": no ",
      parts_.role.student != nullptr ? "votes" : "question", " of ",
      exchange_.Awaited(), " within ",
      absl::FormatDuration(spec_.liveness_limit),
      " (mixing.liveness_limit); a peer is gone, and votes need every peer: "
      "start all again with --resume"));
}

bool VoteTrainer::IsLast() const {
  return parts_.role.student != nullptr && !budget_.Affords();
}

// The others stand before this round, or this peer's time is over.
absl::Status VoteTrainer::Stop() {
  if (!parts_.stop->EndedBehind()) {
    return parts_.lifecycle->EndRounds(Lifecycle::Outcome::kLeft);
  }
  parts_.decisions->NoteStop(parts_.state->round());
  return parts_.lifecycle->EndRounds(Lifecycle::Outcome::kStopped);
}

absl::Status VoteTrainer::EndSpent() {
  parts_.reporter->Report(
      "budget_spent",
      absl::StrCat(budget_.Spent(), ", and does not pay for round ",
                   parts_.state->round()));
  parts_.decisions->NoteStop(parts_.state->round());
  return parts_.lifecycle->EndRounds(Lifecycle::Outcome::kStopped);
}

// The released votes are paid for in any case.
absl::Status VoteTrainer::CannotGoOn(const absl::Status& why) const {
  return absl::Status(
      why.code(),
      absl::StrCat("round ", parts_.state->round(), ": ", why.message(), ". ",
                   budget_.Spent(), " and stays spent"));
}

// An end of the run for it, or an event, which the service counts, would say
// something of one shard that no noise covers.
void VoteTrainer::NoteAbstaining() {
  const TeacherGroup& teachers = *parts_.role.teachers;
  const int abstain = teachers.NotFinite();
  if (abstain == 0 || noted_ || !parts_.voting.note) return;
  noted_ = true;
  parts_.voting.note(absl::StrCat(
      "from round ", parts_.state->round(), " on ", abstain, " of teachers ",
      teachers.first(), " to ", teachers.first() + teachers.count() - 1,
      " abstain, as their gradients are not finite; the budget is spent all "
      "the same. Try a smaller game.datalens.teacher_rate"));
}

}  // namespace gossamer
