#include "runtime/neighborhood/wrap_watch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "algorithms/compress/moniqua.h"
#include "algorithms/compress/wire_layout.h"

namespace gossamer {

std::unique_ptr<WrapWatch> WrapWatch::Create(
    std::shared_ptr<const Codec> codec, const ParameterLayout& layout,
    std::function<void(const std::string&)> tell) {
  const auto options = ModuloOptionsOf(codec->name());
  if (!options) return nullptr;
  return std::unique_ptr<WrapWatch>(
      new WrapWatch(*options, std::move(codec), layout, std::move(tell)));
}

WrapWatch::WrapWatch(const ModuloOptions& options,
                     std::shared_ptr<const Codec> codec,
                     const ParameterLayout& layout,
                     std::function<void(const std::string&)> tell)
    : theta_(options.theta), codec_(std::move(codec)), tell_(std::move(tell)) {
  for (const Piece& piece : SplitIntoPieces(layout, options.least)) {
    if (!piece.quantized) continue;
    quantized_.push_back(piece.extent);
    values_ += piece.extent.size;
  }
}

void WrapWatch::OnCorrection(ExchangeId id, const EdgeMessage& mine,
                             const EdgeMessage& theirs, float c,
                             std::span<const float> difference) {
  if (corrections_++ % kEvery != 0 || values_ == 0) return;
  const double share = ShareNear(mine.encoded(id), theirs.encoded(id));
  if (share <= kMostNear || ++wrapped_ < 2 * told_) return;
  told_ = wrapped_;
  tell_(absl::StrFormat(
      "%.1f %% of the values differ from a neighbour's by %.2g or more as far "
      "as %s can tell, so that some are beyond its theta = %g and wrap around, "
      "which drives peers apart; set mixing.codec to moniqua with a larger "
      "theta, moniqua:theta=%g, or take diff-int8",
      100 * share, kNear * theta_, std::string(codec_->name()), theta_,
      10 * theta_));
}

double WrapWatch::ShareNear(const Encoded& mine, const Encoded& theirs) const {
  std::vector<float> differences(codec_->extent().size);
  codec_->Complete(&mine, &theirs, 1, {}, differences);
  size_t near = 0;
  for (const auto& [offset, size] : quantized_) {
    near += static_cast<size_t>(std::ranges::count_if(
        std::span(differences).subspan(offset, size),
        [bound = kNear * theta_](float d) { return std::abs(d) >= bound; }));
  }
  return static_cast<double>(near) / static_cast<double>(values_);
}

}  // namespace gossamer
