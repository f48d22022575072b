#include "algorithms/compress/learning_phases.h"

#include <span>

namespace gossamer {
namespace {

constexpr double kMemory = 0.9;  // of the moving average
// Codes begin with an error of so much of the worst, so that noise does not
// end them at once.
constexpr double kMargin = 0.9;

}  // namespace

LearningPhase LearningPhases::At(uint64_t step) const {
  const uint64_t change = change_;
  const bool past = step >= change >> 1;
  return past == ((change & 1) != 0) ? LearningPhase::kCoded
                                     : LearningPhase::kLearning;
}

void LearningPhases::Note(uint64_t step, double error) {
  if (step < change_ >> 1) return;  // the change is decided
  if ((change_ & 1) != 0) {
    if (!(error <= plan_.worst)) ChangeTo(false, step + 2);
    return;
  }
  ++learned_;
  error_ = static_cast<float>(kMemory * error_ +
                              (1 - kMemory) * (error <= 1 ? error : 1));
  if (learned_ >= plan_.learn && error_ <= kMargin * plan_.worst) {
    ChangeTo(true, step + 2);
  }
}

void LearningPhases::ChangeTo(bool coded, uint64_t from) {
  change_ = from << 1 | (coded ? 1 : 0);
  learned_ = 0;
  error_ = 1;
}

void LearningPhases::VisitState(StateVisitor& visitor) {
  uint64_t change = change_;
  visitor.Counter("change", change);
  change_ = change;
  visitor.Counter("learned", learned_);
  visitor.Floats("error", std::span(&error_, 1));
}

}  // namespace gossamer
