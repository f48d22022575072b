// The content of the messages of one all-reduce.
//
// Floats, of which sums may travel on; or payloads, each all that one rank
// contributes.  Before either, one rank may have a message that the others need
// to know what to contribute.  This header knows nothing of who sends what
// when.

#ifndef GOSSAMER_ALGORITHMS_COLLECTIVE_ALL_REDUCE_FORM_H_
#define GOSSAMER_ALGORITHMS_COLLECTIVE_ALL_REDUCE_FORM_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/base/shared_bytes.h"

namespace gossamer {

// The form in which ranks send compressed gradients instead of floats.
// Immutable.
class PayloadFormat {
 public:
  virtual ~PayloadFormat() = default;
  // The payload that came as `bytes`, for Add.  kDataLoss unless it is one that
  // an encoder of these options can have written.  Needs no more memory than
  // the largest payload, whatever comes.
  virtual absl::StatusOr<SharedBytes> Accept(SharedBytes bytes) const = 0;
  // sum += what `payload`, which has been accepted, stands for.
  virtual void Add(std::span<const std::byte> payload,
                   std::span<float> sum) const = 0;
};

// The content of an operation, the same at all of its ranks.
struct AllReduceForm {
  size_t floats = 0;  // of the vector whose mean is formed
  // Null: they travel as they are.
  std::shared_ptr<const PayloadFormat> payloads = nullptr;
  // The rank that speaks first; none: -1.
  int leader = -1;
  // kDataLoss unless the leader can have said this.
  std::function<absl::Status(std::span<const std::byte>)> check_leader_message =
      nullptr;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COLLECTIVE_ALL_REDUCE_FORM_H_
