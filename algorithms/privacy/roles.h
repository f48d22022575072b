// The two sides of a DataLens run, as the runtime sees them; networks are
// behind this border.
//
// This header knows nothing of transports or budgets.

#ifndef GOSSAMER_ALGORITHMS_PRIVACY_ROLES_H_
#define GOSSAMER_ALGORITHMS_PRIVACY_ROLES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/base/state.h"
#include "algorithms/privacy/vote_message.h"

namespace gossamer {

// Teacher discriminators `first` to `first + count - 1` of a run, each on a
// shard of its own.
class TeacherGroup {
 public:
  virtual ~TeacherGroup() = default;
  virtual int first() const = 0;
  virtual int count() const = 0;
  // A step of every teacher against `batch`, then the sum of their votes on it,
  // [labels, dimensions].  A function of the seed and the questions so far:
  // how teachers are spread over groups does not change their votes.
  virtual absl::StatusOr<std::vector<int16_t>> Vote(
      uint64_t step, const ImageBatch& batch) = 0;
  // Teachers that abstained from the last question because what they learnt, or
  // would have voted with, is not finite.
  virtual int NotFinite() const = 0;
  // All that Vote changes.
  virtual void VisitState(StateVisitor& visitor) = 0;
};

class Student {
 public:
  virtual ~Student() = default;
  // Its network's, flat, at an address that stays.
  virtual std::span<float> parameters() = 0;
  // The images of a step, from 1 on.  They are finite: kInternal if they cannot
  // be.
  virtual absl::StatusOr<ImageBatch> Ask(uint64_t step) = 0;
  // Moves them along `direction`, [labels, dimensions] of -1, 0, 1.  kInternal
  // if its parameters are not finite then; it must not be used any longer.
  virtual absl::Status Learn(std::span<const int8_t> direction) = 0;
  // All that steps change and that lasts from one to the next, but the
  // parameters.
  virtual void VisitState(StateVisitor& visitor) = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_PRIVACY_ROLES_H_
