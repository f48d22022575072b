// Compresses the gradients that ranks average by all-reduce: one object per
// rank, with the residual of what it has left out (error feedback).
//
// A method is given each step's gradient and says what the all-reduce of that
// step carries: floats that may be summed on the way, or a payload; and, if one
// rank chooses for all, that rank's message.  Values that are not sent stay in
// the residual m and are tried again.  Same means at all ranks, whatever the
// timing.  This header knows nothing of connections, time or threads.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_GRADIENT_COMPRESSOR_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_GRADIENT_COMPRESSOR_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "algorithms/base/parameter_layout.h"
#include "algorithms/base/shared_bytes.h"
#include "algorithms/base/state.h"
#include "algorithms/collective/all_reduce_form.h"
#include "algorithms/compress/value_coder.h"
#include "algorithms/kernels/kernels.h"

namespace gossamer {

// One operation as one of its ranks sees it.
struct ReduceContext {
  uint64_t step = 0;  // from 0, one more with each operation
  int rank = 0;
  int size = 1;
};

class GradientCompressor {
 public:
  // A name of Names(), and its options: "scalecom:rate=100,beta=0.1".  All but
  // the dense one have `full`, the number of first steps with dense gradients.
  // kInvalidArgument names the known ones and what they may be.  An empty
  // layout is enough to ask whether a name is right.  Methods that learn an
  // autoencoder get it from `coders`.
  static absl::StatusOr<std::unique_ptr<GradientCompressor>> Create(
      std::string_view name, const ParameterLayout& layout,
      const Kernels& kernels = HostKernels(),
      const ValueCoderMaker& coders = nullptr);
  static std::vector<std::string_view> Names();
  // The one that sends all floats as they are: dense gradients.
  static constexpr std::string_view kDense = "dense-f32";

  virtual ~GradientCompressor() = default;

  // Contributions may be summed on the way.  False: every rank's payload goes
  // to all others, which needs all-gather.
  virtual bool summable() const = 0;
  // It keeps what it does not send (error feedback): every step must have the
  // gradient of every parameter.
  virtual bool has_residual() const = 0;
  // It goes astray unless the first steps have dense gradients, and they have
  // not.
  virtual bool needs_warmup() const { return false; }
  // False if a value is not finite or beyond ±kMaxMagnitude: what is left of it
  // in a residual would spoil the steps after.  Floats that travel as they are
  // may be anything; their mean shows it.
  virtual bool Accepts(std::span<const float> gradient) const;
  // The form of a step's all-reduce, the same at all ranks; known before the
  // step before has ended.  May be called, and what it returns used, while the
  // others below run.
  virtual AllReduceForm Form(uint64_t step, int size) const = 0;

  // One step, in this order.
  //
  // This rank's gradient: all floats of the layout, which the method accepts,
  // and as they are until Finish; or none: the rank contributes zeros, and its
  // residual stays as it was.
  virtual void Begin(const ReduceContext& context,
                     std::span<const float> gradient) = 0;
  // The message of this rank, which leads the step: what it has chosen for all.
  virtual SharedBytes MakeLeaderMessage() { return {}; }
  // Writes what is to be averaged to `vector` (Form's floats), or returns the
  // payload instead.  `leader_message` is the leader's, checked; empty if
  // nobody leads.
  virtual SharedBytes Contribute(const SharedBytes& leader_message,
                                 std::span<float> vector) = 0;
  // The mean gradient (all floats of the layout), from the mean of what was
  // contributed; valid until the next step.  The residual is that of the next
  // step from here on.
  virtual std::span<const float> Finish(std::span<const float> mean) = 0;

  // After Finish: the message of the rank that leads the step after `context`,
  // if the method can say it before that step's gradient is known; else empty.
  // Asked or not, that step has the same one.
  virtual SharedBytes MakeNextLeaderMessage(const ReduceContext& context) {
    return {};
  }

  // The residual and all else that the next step needs.
  virtual void VisitState(StateVisitor& visitor) = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_GRADIENT_COMPRESSOR_H_
