// Whether values that a codec sends modulo a range lie so far apart at two
// peers that their differences wrap around (Moniqua: peers within θ of each
// other).
//
// What has wrapped looks like any other difference; but of values that are not
// within θ many come out near it, as differences modulo 2θ fill all of the
// range.  Knows nothing of rounds or of who is told.

#ifndef GOSSAMER_RUNTIME_NEIGHBORHOOD_WRAP_WATCH_H_
#define GOSSAMER_RUNTIME_NEIGHBORHOOD_WRAP_WATCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/base/parameter_layout.h"
#include "algorithms/compress/codec.h"
#include "algorithms/compress/moniqua.h"
#include "algorithms/edge/codec_side.h"

namespace gossamer {

// Of all edges of a peer.
class WrapWatch final : public CorrectionObserver {
 public:
  // Looks at the first correction, then at one of so many.
  static constexpr uint64_t kEvery = 64;
  // Of quantized values, at |d| ≥ 0.9 θ: a tenth are there if differences fill
  // the range, 1 in 100 if they are normal with a standard deviation of 0.35 θ,
  // of which 1 in 250 wraps.
  static constexpr double kNear = 0.9;
  static constexpr double kMostNear = 0.01;

  // Null for a codec without a range.  `tell` says what is wrong and what to
  // do, at the first correction for which it is so, the second, the fourth and
  // so on.
  static std::unique_ptr<WrapWatch> Create(
      std::shared_ptr<const Codec> codec, const ParameterLayout& layout,
      std::function<void(const std::string&)> tell);

  void OnCorrection(ExchangeId id, const EdgeMessage& mine,
                    const EdgeMessage& theirs, float c,
                    std::span<const float> difference) override;

 private:
  WrapWatch(const ModuloOptions& options, std::shared_ptr<const Codec> codec,
            const ParameterLayout& layout,
            std::function<void(const std::string&)> tell);
  // Of the quantized values of an exchange.
  double ShareNear(const Encoded& mine, const Encoded& theirs) const;

  const double theta_;
  const std::shared_ptr<const Codec> codec_;
  const std::function<void(const std::string&)> tell_;
  std::vector<Extent> quantized_;
  size_t values_ = 0;  // of these
  uint64_t corrections_ = 0;
  uint64_t wrapped_ = 0, told_ = 0;  // of those looked at
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_NEIGHBORHOOD_WRAP_WATCH_H_
