#include "runtime/neighborhood/format_chooser.h"

#include <algorithm>
#include <span>
#include <utility>

#include "topology/view.h"

namespace gossamer {
namespace {

// The parts of the busy time that a payload may take on its way.  The part is
// largest for the present format and smallest for a wider one, so that a rate
// between two formats does not swing between them.  A line that is nearly full
// builds a queue of its own at every loss: at 0.9 an uplink of 100 Mbit/s that
// loses a packet in ten thousand held 3.7 s of payloads, at 0.7 it holds 0.7 s.
constexpr double kShareToStay = 0.7, kShareToNarrow = 0.6, kShareToWiden = 0.5;
// Payloads whose rates are known before a first choice.
constexpr size_t kTransitsToChoose = 8;
// Payloads before a wider format is tried; twice as many after each time that
// it had to be taken back.
constexpr size_t kTransitsToWiden = 16, kMaxTransitsToWiden = 1024;
// Before that, two payloads in a row of which each took twice a round are
// enough to narrow: more of them would take minutes, or the overlap would be
// chosen, after five rounds, for a format that does not stay.  The first two
// must also take longer than the start of a connection explains.
constexpr absl::Duration kSlowStart = absl::Milliseconds(1500);
constexpr size_t kBehindStart = 3;
// The quantile of the rates seen that counts.  A receiver that is late to look
// takes what has queued up meanwhile for a fast link, so the upper ones are
// worth little.
constexpr double kQuantile = 0.25;
// Behind a lost packet all payloads under way come at once, and most of them
// seem fast.  So a wider format must also fit into the mean of the newest
// rates, of more payloads than can be under way: the one that waited counts.
constexpr size_t kOfMean = 16;
static_assert(kOfMean > kMaxOverlap + 1 &&
              kOfMean <= 3 * FormatChooser::kRates / 4);

}  // namespace

FormatChooser::FormatChooser() : hold_payloads_(kTransitsToWiden) {}

void FormatChooser::Record(const Transit& transit) {
  if (transit.took <= absl::ZeroDuration() || transit.bytes < kMinBytes) {
    return;
  }
  // A payload that fits into the buffers on the way would seem infinitely fast.
  ++recorded_;
  before_last_ = std::exchange(last_, transit.took);
  bytes_per_second_.Add(static_cast<double>(transit.bytes) /
                        absl::ToDoubleSeconds(transit.took));
}

std::optional<WireFormat> FormatChooser::Choose(const Codec& codec,
                                                absl::Duration busy) {
  const std::span<const WireFormat> choices = codec.choices();
  if (choices.empty() || busy <= absl::ZeroDuration()) return std::nullopt;
  const absl::Duration explained =
      recorded_ < kBehindStart ? kSlowStart : absl::ZeroDuration();
  const bool hopeless =
      std::min(last_, before_last_) > std::max(2 * busy, explained);
  if (bytes_per_second_.size() < kTransitsToChoose && !hopeless) return chosen_;
  const double seconds = absl::ToDoubleSeconds(busy);
  const double slow = seconds * bytes_per_second_.Quantile(kQuantile);
  const double mean = seconds * bytes_per_second_.HarmonicMean(kOfMean);
  const WireFormat before = chosen_.value_or(codec.format());
  const size_t size_before = codec.EncodedSize(before);
  // The choices go from wide to narrow; the narrowest is taken even if the link
  // does not carry it.
  WireFormat fits = choices.back();
  for (const WireFormat f : choices) {
    const size_t size = codec.EncodedSize(f);
    const double share = size == size_before  ? kShareToStay
                         : size > size_before ? kShareToWiden
                                              : kShareToNarrow;
    const double bytes = size > size_before ? std::min(slow, mean) : slow;
    if (static_cast<double>(size) > share * bytes) continue;
    fits = f;
    break;
  }
  const bool widens = codec.EncodedSize(fits) > size_before;
  if (widens && recorded_ < hold_payloads_) fits = before;
  if (fits != before) {
    if (!widens && std::exchange(widened_, false)) {
      hold_payloads_ = std::min(2 * hold_payloads_, kMaxTransitsToWiden);
    }
    widened_ = widens;
    // Rates that were measured with another size say little about this one.
    recorded_ = 0;
    last_ = before_last_ = absl::ZeroDuration();
    bytes_per_second_.Clear();
  }
  chosen_ = fits;
  return chosen_;
}

}  // namespace gossamer
