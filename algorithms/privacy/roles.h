// The two sides of a DataLens run, as the runtime sees them; networks are
// behind this border.
//
// Knows nothing of transports or budgets.

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

// Its samples are finite: kInternal if it cannot be.
class Student {
 public:
  virtual ~Student() = default;
  // The images of a step, from 1 on.
  virtual absl::StatusOr<ImageBatch> Ask(uint64_t step) = 0;
  // Moves them along `direction`, [labels, dimensions] of -1, 0, 1.  After an
  // error it must not be used.
  virtual absl::Status Learn(std::span<const int8_t> direction) = 0;
  // `count` images of classes 0, 1, ... in turn, by the averaged parameters.
  virtual absl::StatusOr<ImageBatch> Sample(int count, uint64_t seed) = 0;
  // All that steps change and that lasts from one to the next.
  virtual void VisitState(StateVisitor& visitor) = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_PRIVACY_ROLES_H_
