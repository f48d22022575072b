// Measures what the lab's links really do: round trips and rates, by UDP
// between sockets on its hosts.
//
// This header knows nothing of what the links should do.

#ifndef GOSSAMER_RUNTIME_LAB_LINK_METER_H_
#define GOSSAMER_RUNTIME_LAB_LINK_METER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/lab/lab.h"
#include "runtime/lab/namespaces.h"

namespace gossamer {

struct RoundTrips {
  int sent = 0;
  int answered = 0;
  // Over the answered packets, in milliseconds.
  double min_ms = 0;
  double median_ms = 0;
  double max_ms = 0;
};

// Measures on the calling thread, one link at a time.
class LinkMeter {
 public:
  // `lab` outlives this; nothing else uses its links meanwhile.
  static absl::StatusOr<LinkMeter> Make(const Lab& lab);

  // Sends `count` small packets there and back, some milliseconds apart.  Waits
  // for answers until `limit` after the last one was sent.
  RoundTrips MeasureRoundTrips(size_t from, size_t to, int count,
                               absl::Duration limit);

  // Sends about `bytes_per_second` for `how_long`, and returns the bytes a
  // second that arrive, IP headers included.  Zero if nothing arrives within
  // `limit` after that.
  double MeasureRate(size_t from, size_t to, double bytes_per_second,
                     absl::Duration how_long, absl::Duration limit);

 private:
  LinkMeter() = default;
  // Takes all datagrams that have come and returns their number.
  int64_t Drain(int socket) const;

  std::vector<FileDescriptor> sockets_;  // by rank
  std::vector<uint32_t> addresses_;      // in network byte order
  uint64_t next_ping_ = 1;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_LAB_LINK_METER_H_
