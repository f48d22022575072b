// The phase of LGC that a step is in: chosen values while the autoencoder
// learns, or codes; and back to chosen values while codes are bad.
//
// Follows from the step and from what all ranks have after an exchange, so it
// is the same at all.  The outcome of a step takes effect in the step after the
// next, whose messages no rank can have begun.  Source: Abrahamyan et al.,
// Learned Gradient Compression, IEEE TNNLS 2021; the way back is ours.  This
// header knows nothing of gradients or coders.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_LEARNING_PHASES_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_LEARNING_PHASES_H_

#include <atomic>
#include <cstdint>

#include "algorithms/base/state.h"

namespace gossamer {

enum class LearningPhase : uint8_t { kLearning, kCoded };

struct LearningPlan {
  uint64_t learn = 300;  // the fewest steps of learning, also when it is back
  double worst = 0.75;   // the largest error of codes
};

class LearningPhases {
 public:
  explicit LearningPhases(const LearningPlan& plan) : plan_(plan) {}

  // The phase of `step`, one of the two after the last noted; may be called
  // while Note runs.
  LearningPhase At(uint64_t step) const;

  // Takes the error of `step`, which is the next: the square of the loss over
  // that of the values.  NaN, which values that are not finite give, counts as
  // bad.
  void Note(uint64_t step, double error);

  void VisitState(StateVisitor& visitor);

 private:
  void ChangeTo(bool coded, uint64_t from);

  const LearningPlan plan_;
  // The step from which codes travel, or do not any more, << 1 | which.
  std::atomic<uint64_t> change_ = 0;
  uint64_t learned_ = 0;  // steps since the last change
  float error_ = 1;       // moving average, since the last change
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_LEARNING_PHASES_H_
