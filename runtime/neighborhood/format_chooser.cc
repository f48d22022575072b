#include "runtime/neighborhood/format_chooser.h"

#include <algorithm>
#include <span>
#include <utility>

namespace gossamer {
namespace {

// The part of the busy time that a payload may take on its way, by what it
// would change.
constexpr double kShareToStay = 0.9, kShareToNarrow = 0.8, kShareToWiden = 0.7;
constexpr size_t kTransitsToChoose = 8;
constexpr size_t kTransitsToWiden = 16, kMostTransitsToWiden = 1024;
// Of the rates seen, the one that counts.  A receiver that is late to look
// takes what has queued up meanwhile for a fast link.
constexpr double kQuantile = 0.25;

}  // namespace

FormatChooser::FormatChooser() : patience_(kTransitsToWiden) {}

void FormatChooser::Record(const Transit& transit) {
  if (transit.took <= absl::ZeroDuration() || transit.bytes < kLeastBytes) {
    return;
  }
  ++recorded_;
  bytes_per_second_.Add(static_cast<double>(transit.bytes) /
                        absl::ToDoubleSeconds(transit.took));
}

std::optional<WireFormat> FormatChooser::Choose(const Codec& codec,
                                                absl::Duration busy) {
  const std::span<const WireFormat> choices = codec.choices();
  if (choices.empty() || busy <= absl::ZeroDuration()) return std::nullopt;
  if (bytes_per_second_.size() < kTransitsToChoose) return chosen_;
  const double bytes =
      absl::ToDoubleSeconds(busy) * bytes_per_second_.Quantile(kQuantile);
  const WireFormat before = chosen_.value_or(codec.format());
  const size_t size_before = codec.EncodedSize(before);
  WireFormat fits = choices.back();
  for (const WireFormat f : choices) {
    const size_t size = codec.EncodedSize(f);
    const double share = size == size_before  ? kShareToStay
                         : size > size_before ? kShareToWiden
                                              : kShareToNarrow;
    if (static_cast<double>(size) > share * bytes) continue;
    fits = f;
    break;
  }
  const bool widens = codec.EncodedSize(fits) > size_before;
  if (widens && recorded_ < patience_) fits = before;
  if (fits != before) {
    if (!widens && std::exchange(widened_, false)) {
      patience_ = std::min(2 * patience_, kMostTransitsToWiden);
    }
    widened_ = widens;
    recorded_ = 0;
    bytes_per_second_.Clear();
  }
  chosen_ = fits;
  return chosen_;
}

}  // namespace gossamer
