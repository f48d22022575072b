// The payload of a rank beside the leader's code: the code's share in the
// rank's values, and the values that differ most from it.
//
// A payload is a choice among the leader's values (chunk_choice.h), three
// floats, the values chosen, and the small segments.  Summed payloads are the
// same floats, values at their indices.  Source: the innovation of LGC's
// parameter-server form (Abrahamyan et al., IEEE TNNLS 2021).  This header
// knows nothing of codes.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_NOVEL_VALUES_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_NOVEL_VALUES_H_

#include <cstddef>
#include <span>

#include "absl/status/statusor.h"
#include "algorithms/collective/all_reduce_form.h"
#include "algorithms/compress/chunk_choice.h"

namespace gossamer {

class NovelValues final : public PayloadFormat {
 public:
  // Payloads carry one of every `rate` of `values` values, and `small` floats.
  NovelValues(size_t values, size_t rate, size_t small, const Kernels& kernels);

  // The floats of summed payloads: kHead floats, the values, the small
  // segments.
  static constexpr size_t kHead = 3;
  size_t floats() const { return kHead + values_ + small_; }

  // The payload of `head`, of the largest of `rest` and of `small`; takes what
  // it sends out of `rest`.
  SharedBytes Write(std::span<const float> head, std::span<float> rest,
                    std::span<const float> small) const;

  absl::StatusOr<SharedBytes> Accept(SharedBytes bytes) const override;
  void Add(std::span<const std::byte> payload,
           std::span<float> sum) const override;

 private:
  size_t sent() const { return kHead + choice_.chosen() + small_; }

  const size_t values_, small_;
  const ChunkChoice choice_;
  const Kernels& kernels_;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_NOVEL_VALUES_H_
