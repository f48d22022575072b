// The wire format that an end of an edge asks the other for: the widest that
// the link carries while peers compute.
//
// Latency does not count, as overlap hides it, nor does a slow neighbour.
// Knows nothing of edges or time.

#ifndef GOSSAMER_RUNTIME_PEER_FORMAT_CHOOSER_H_
#define GOSSAMER_RUNTIME_PEER_FORMAT_CHOOSER_H_

#include <optional>

#include "absl/time/time.h"
#include "algorithms/codec/codec.h"
#include "runtime/peer/recent.h"
#include "runtime/transport/transport.h"

namespace gossamer {

class FormatChooser {
 public:
  // How a payload came in.
  void Record(const Transit& transit);

  // One of the codec's choices; nullopt if it leaves none, or before enough is
  // known.  `busy`: a round of the slowest peer, without its waiting.
  std::optional<WireFormat> Choose(const Codec& codec, absl::Duration busy);

 private:
  Recent bytes_per_second_;
  std::optional<WireFormat> chosen_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_FORMAT_CHOOSER_H_
