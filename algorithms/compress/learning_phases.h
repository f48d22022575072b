// Which phase of LGC a step is in: chosen values while the autoencoder learns,
// or codes; and back to chosen values while codes are bad.
//
// Follows from the step and from what all ranks have after an exchange, so it
// is the same at all.  What a step shows counts from the step after the next
// on, whose messages nobody can have begun.  Source: Abrahamyan et al., Learned
// Gradient Compression, IEEE TNNLS 2021; the way back is ours.  Knows nothing
// of gradients or coders.

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

  // Of the step after the last noted and of the one after that; may be called
  // meanwhile.
  LearningPhase At(uint64_t step) const;

  // What was lost of the values of `step`, which is the next: squared, over
  // their squares.  NaN, of values that are not finite, is bad.
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
