#include "algorithms/kernels/kernels.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "algorithms/kernels/reference_kernels.h"

// SSSE3 and AVX3_DL would add nothing.  The scalable targets have vectors of a
// length that is known only at run time, and NormSums and BlockSums hold arrays
// of vectors.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS                                                   \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | \
   HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "algorithms/kernels/kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// foreach_target.h includes this file once for each target; the parts below are
// compiled again each time, so they come after it.
#include "algorithms/kernels/apply-inl.h"
#include "algorithms/kernels/chunks-inl.h"
#include "algorithms/kernels/elementwise-inl.h"
#include "algorithms/kernels/encode-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gossamer {
namespace HWY_NAMESPACE {

// The members are named, so that a kernel that is added to the struct and
// forgotten here is a null pointer that kernels_test calls at once.
const Kernels& Table() {
  static const Kernels table = {
      .name = hwy::TargetName(HWY_TARGET),
      .add = Add,
      .scale = Scale,
      .axpy = Axpy,
      .compensated_axpy = CompensatedAxpy,
      .ema = Ema,
      .optimistic = Optimistic,
      .adam = Adam,
      .oadam = OAdam,
      .all_within = AllWithin,
      .squared_norm = SquaredNorm,
      .sketch = ReferenceKernels().sketch,
      .transposed_product = TransposedProduct,
      .product = Product,
      .add_outer = AddOuter,
      .argmax_abs = ArgmaxAbs,
      .indices_at_least = IndicesAtLeast,
      .encode = Encode,
      .apply = Apply,
      .valid_within = ValidWithin,
  };
  return table;
}

}  // namespace HWY_NAMESPACE
}  // namespace gossamer
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gossamer {

HWY_EXPORT(Table);

// Chosen once: the machine does not change, and callers keep the reference.
const Kernels& HostKernels() {
  static const Kernels& best = HWY_DYNAMIC_DISPATCH(Table)();
  return best;
}

std::vector<const Kernels*> AvailableKernels() {
  // Bit i of the mask belongs to entry i of the dispatch table; entry 0 is the
  // function that chooses.
  const int64_t supported = HWY_CHOSEN_TARGET_SHIFT(hwy::SupportedTargets()) |
                            HWY_CHOSEN_TARGET_MASK_SCALAR;
  std::vector<const Kernels*> tables;
  for (size_t i = 1; i < HWY_MAX_DYNAMIC_TARGETS + 2; ++i) {
    const auto table = HWY_DISPATCH_TABLE(Table)[i];
    if ((supported >> i & 1) != 0 && table != nullptr) {
      tables.push_back(&table());
    }
  }
  tables.push_back(&ReferenceKernels());
  return tables;
}

}  // namespace gossamer
#endif  // HWY_ONCE
