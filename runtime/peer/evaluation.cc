#include "runtime/peer/evaluation.h"

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "algorithms/kernels/host_copy.h"
#include "runtime/peer/compute.h"

namespace gossamer {

bool Evaluation::Due(bool last) const {
  const uint64_t round = state_->round();
  const bool due =
      last || round == spec_.rounds ||
      (spec_.evaluate_every != 0 && round % spec_.evaluate_every == 0);
  return spec_.evaluates && evaluator_ != nullptr && due;
}

Task<bool> Evaluation::Run(bool last) {
  RoundMetrics& metrics = reporter_->metrics();
  // A score belongs to the round that it was taken in.
  metrics.score.reset();
  metrics.score_name.clear();
  if (!Due(last)) co_return false;
  absl::StatusOr<double> score = 0.0;
  absl::Status drawn;
  co_await Compute(compute_, [&] {
    // The same latents every time, so that scores and pictures compare.
    const RngKey key = RngKey(spec_.seed).Fold("evaluation");
    const HostCopy<float> generator(state_->queue(), state_->generator());
    score = evaluator_->Score(generator.span(), key);
    if (spec_.samples_folder.empty()) return;
    drawn = evaluator_->WriteSamples(
        generator.span(), key,
        absl::StrCat(spec_.samples_folder, "/round-", state_->round(), ".png"));
  });
  if (score.ok()) {
    metrics.score = *score;
    metrics.score_name = evaluator_->score_name();
  } else {
    // Training does not depend on a score or a picture: a failure is reported.
    reporter_->Report("score_failed", std::string(score.status().message()));
  }
  if (!drawn.ok() && !absl::IsUnimplemented(drawn)) {
    reporter_->Report("samples_failed", std::string(drawn.message()));
  }
  co_return true;
}

}  // namespace gossamer
