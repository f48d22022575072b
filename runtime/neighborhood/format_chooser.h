// The wire format that an end of an edge asks the other for: the widest that
// the link carries while peers compute.
//
// Latency does not count, as overlap hides it, nor does a slow neighbour.  Too
// wide a format fills the link's queue until it drops packets, which on a long
// link costs seconds; too narrow a one costs a few bits.  So it widens late,
// and later still after each time that it had to go back.  This header knows
// nothing of edges or time.

#ifndef GOSSAMER_RUNTIME_NEIGHBORHOOD_FORMAT_CHOOSER_H_
#define GOSSAMER_RUNTIME_NEIGHBORHOOD_FORMAT_CHOOSER_H_

#include <optional>

#include "absl/time/time.h"
#include "algorithms/compress/codec.h"
#include "runtime/base/recent_values.h"
#include "runtime/transport/transport.h"

namespace gossamer {

class FormatChooser {
 public:
  FormatChooser();

  // Bytes below which a payload says nothing of the link's rate: they fit
  // into buffers on the way.
  static constexpr size_t kMinBytes = 16 << 10;
  // Payloads whose rates count: after a change of the link those of three
  // quarters of them must be new until it widens, and it is to be settled
  // within twenty rounds.
  static constexpr size_t kRates = 24;

  // The transit of a payload that came in.
  void Record(const Transit& transit);

  // One of the codec's choices; nullopt if it leaves none, or before enough is
  // known.  `busy`: a round of the slowest peer, without its waiting.
  std::optional<WireFormat> Choose(const Codec& codec, absl::Duration busy);

 private:
  RecentValues bytes_per_second_{kRates};
  absl::Duration last_, before_last_;  // transits with the present format
  std::optional<WireFormat> chosen_;
  size_t recorded_ = 0;   // since the last change
  size_t hold_payloads_;  // payloads before it widens
  bool widened_ = false;  // by the last change
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_NEIGHBORHOOD_FORMAT_CHOOSER_H_
