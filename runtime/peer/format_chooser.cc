#include "runtime/peer/format_chooser.h"

#include <span>

namespace gossamer {
namespace {

// The part of the busy time that a payload may take on its way, by what it
// would change.
constexpr double kShareToStay = 0.9, kShareToNarrow = 0.8, kShareToWiden = 0.7;
constexpr size_t kTransitsToChoose = 8;

}  // namespace

void FormatChooser::Record(const Transit& transit) {
  if (transit.took <= absl::ZeroDuration()) return;
  bytes_per_second_.Add(static_cast<double>(transit.bytes) /
                        absl::ToDoubleSeconds(transit.took));
}

std::optional<WireFormat> FormatChooser::Choose(const Codec& codec,
                                                absl::Duration busy) {
  const std::span<const WireFormat> choices = codec.choices();
  if (choices.empty() || busy <= absl::ZeroDuration() ||
      bytes_per_second_.size() < kTransitsToChoose) {
    return std::nullopt;
  }
  const double bytes =
      absl::ToDoubleSeconds(busy) * bytes_per_second_.Quantile(0.5);
  const size_t before = codec.EncodedSize(chosen_.value_or(codec.format()));
  chosen_ = choices.back();
  for (const WireFormat f : choices) {
    const size_t size = codec.EncodedSize(f);
    const double share = size == before  ? kShareToStay
                         : size > before ? kShareToWiden
                                         : kShareToNarrow;
    if (static_cast<double>(size) > share * bytes) continue;
    chosen_ = f;
    break;
  }
  return chosen_;
}

}  // namespace gossamer
