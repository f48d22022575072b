#include "runtime/peer/evaluation.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/kernels/host_copy.h"

namespace gossamer {

Evaluation::Evaluation(const PeerSpec& spec, ComputeEngine* compute,
                       ComputeEngine* scores, Evaluator* evaluator,
                       const TrainingState* state, Reporter* reporter)
    : spec_(spec),
      engine_(scores != nullptr ? scores : compute),
      waits_(scores == nullptr),
      evaluator_(evaluator),
      state_(state),
      reporter_(reporter) {}

void Evaluation::Reserve() {
  if (spec_.evaluates && evaluator_ != nullptr && !waits_) {
    spare_.resize(state_->generator().size);
  }
}

bool Evaluation::Due(bool last) const {
  const bool due = last || (spec_.evaluate_every != 0 &&
                            state_->round() % spec_.evaluate_every == 0);
  return spec_.evaluates && evaluator_ != nullptr && due;
}

Task<bool> Evaluation::Run(bool last) {
  const bool ends = last || state_->round() == spec_.rounds;
  if (Due(ends)) Begin(ends);
  if (waiting_ > 0 && waits_) co_await AllOver();
  co_return TakeScores(state_->round());
}

Task<bool> Evaluation::Finish() {
  if (waiting_ > 0) co_await AllOver();
  // The later line of a round counts, and has what the earlier one had.
  const bool came = TakeScores(reporter_->metrics().round);
  if (came) reporter_->RepeatRound();
  co_return came;
}

bool Evaluation::TakeScores(uint64_t round) {
  RoundMetrics& metrics = reporter_->metrics();
  metrics.scores = std::exchange(came_, {});
  metrics.score.reset();
  metrics.score_name.clear();
  if (metrics.scores.empty()) return false;
  metrics.score_name = evaluator_->score_name();
  const RoundScore& newest = metrics.scores.back();
  if (newest.round == round) metrics.score = newest.value;
  return true;
}

Pending<bool> Evaluation::AllOver() {
  over_ = Pending<bool>();
  return over_;
}

void Evaluation::Begin(bool last) {
  // The last round's own score is never left out for those before.
  if (waiting_ >= kMaxWaiting && !last) {
    const uint64_t times = skips_.Due(++skipped_);
    if (times == 0) return;
    reporter_->Report(
        "score_skipped",
        absl::StrCat("round ", state_->round(), " has no score: those of ",
                     waiting_, " rounds before are still computed (", skipped_,
                     " skipped so far); raise evaluation.every"),
        times);
    return;
  }
  const auto job = std::make_shared<Job>();
  job->round = state_->round();
  const HostCopy<float> generator(state_->queue(), state_->generator());
  // The values of a device that has failed are zeros.
  if (!state_->queue().status().ok()) return;
  job->generator = std::exchange(spare_, {});
  job->generator.assign(generator.span().begin(), generator.span().end());
  ++waiting_;
  engine_->Run(
      [evaluator = evaluator_, job, folder = spec_.samples_folder,
       seed = spec_.seed] {
        // The same latents every time, so that scores and pictures compare.
        const RngKey key = RngKey(seed).Fold("evaluation");
        job->score = evaluator->Score(job->generator, key);
        if (folder.empty()) return;
        job->drawn = evaluator->WriteSamples(
            job->generator, key,
            absl::StrCat(folder, "/round-", job->round, ".png"));
      },
      [this, alive = std::weak_ptr<bool>(alive_), job] {
        if (alive.expired()) return;
        spare_ = std::move(job->generator);
        End(*job);
      });
}

void Evaluation::End(const Job& job) {
  --waiting_;
  if (job.score.ok()) {
    came_.push_back({job.round, *job.score});
  } else {
    // Training does not depend on a score or a picture: a failure is reported.
    reporter_->Report("score_failed",
                      std::string(job.score.status().message()));
  }
  if (!job.drawn.ok() && !absl::IsUnimplemented(job.drawn)) {
    reporter_->Report("samples_failed", std::string(job.drawn.message()));
  }
  // It may resume the round loop, so it comes last.
  if (waiting_ == 0 && !over_.ready()) over_.Set(true);
}

}  // namespace gossamer
