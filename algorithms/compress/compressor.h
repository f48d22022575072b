// A compressor: what may travel instead of floats on the edges of a fleet, in a
// collective operation, or in both.
//
// A compressor is one file of this folder, which the registry finds.  An edge
// and a collective ask different things of one (codec.h: a correction of two
// payloads, with a replica and γ; gradient_compressor.h: a mean over ranks,
// with a residual and a leader), so a compressor has a maker for each of its
// uses and shares all below them.  This header knows nothing of configurations
// or networks.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_COMPRESSOR_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_COMPRESSOR_H_

#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/base/parameter_layout.h"
#include "algorithms/compress/codec.h"
#include "algorithms/compress/gradient_compressor.h"
#include "algorithms/compress/options.h"
#include "algorithms/compress/value_coder.h"
#include "algorithms/kernels/device_queue.h"
#include "algorithms/kernels/kernels.h"

namespace gossamer {

using MadeCodec = absl::StatusOr<std::shared_ptr<const Codec>>;
using MadeGradients = absl::StatusOr<std::unique_ptr<GradientCompressor>>;

// The description of a compressor that `gossamer methods` prints.
struct CompressorHelp {
  std::string_view summary = {};   // one line
  std::string_view property = {};  // what is known of it
  std::string_view bits = {};      // a parameter on the wire
  std::string_view state = {};     // floats a parameter, by peer or edge
  std::string_view needs = {};     // empty: nothing
  std::string_view gamma = {};     // consensus step size; "–": none
  std::string_view source = {};    // the paper, or what stands for one
  std::string_view page = {};      // of algorithms/method, without .md
};

struct Compressor {
  std::string_view name = {};
  CompressorHelp help = {};
  // Reads the options behind the name, checks them and makes it.  An empty
  // layout is enough to ask whether a text is right.  Null: not for edges.
  MadeCodec (*edges)(const CompressorText& text, const ParameterLayout& layout,
                     const DeviceQueue& queue) = nullptr;
  // The same of gradients; null: not for gradients.  Those that learn an
  // autoencoder get it from `coders`.
  MadeGradients (*gradients)(const CompressorText& text,
                             const ParameterLayout& layout,
                             const Kernels& kernels,
                             const ValueCoderMaker& coders) = nullptr;
  // How many first steps have dense gradients unless option `full` says
  // otherwise; -1: there is no such option.
  int warmup_steps = 0;
  // Of innovations: δ of ‖C(v) − v‖² ≤ (1 − δ)‖v‖² on normal values.  A coarse
  // one lags behind what it follows, which some methods do not bear.
  double contraction = 1;
  // Of a codec that some methods alone may use (Method::own_codec): the reason,
  // and the codec that other methods take.
  std::string_view owned_because = {};
};

// Defines the compressor of a file: GOSSAMER_COMPRESSOR(dyna) = {...}; in
// dyna.cc.
#define GOSSAMER_COMPRESSOR(file) \
  namespace compressors {         \
  extern const Compressor file;   \
  }                               \
  constinit const Compressor compressors::file

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_COMPRESSOR_H_
