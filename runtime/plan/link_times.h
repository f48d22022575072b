// What the network does to a message, from each rank to each other.
//
// A plain table in seconds; knows nothing of where it came from: a scenario, a
// matrix that somebody typed, or a measurement.

#ifndef GOSSAMER_RUNTIME_PLAN_LINK_TIMES_H_
#define GOSSAMER_RUNTIME_PLAN_LINK_TIMES_H_

#include <cstddef>
#include <vector>

namespace gossamer {

struct LinkTimes {
  struct Link {
    double latency = 0;           // one way, in seconds
    double seconds_per_byte = 0;  // of the message; 0: no limit
  };

  explicit LinkTimes(int size)
      : size(size), links(static_cast<size_t>(size) * size) {}

  Link& operator()(int from, int to) {
    return links[static_cast<size_t>(from) * size + to];
  }
  const Link& operator()(int from, int to) const {
    return links[static_cast<size_t>(from) * size + to];
  }
  // From the first byte's departure to the last one's arrival.
  double Transfer(int from, int to, double bytes) const {
    const Link& link = (*this)(from, to);
    return link.latency + bytes * link.seconds_per_byte;
  }

  int size;
  std::vector<Link> links;  // row-major; the diagonal means nothing
};

// Of a link's rate, what is payload: a packet of 1500 bytes carries 1448 of TCP
// (40 bytes of IPv4 and TCP headers, 12 of timestamps).  The lab and most
// providers count whole packets.
inline constexpr double kPayloadShare = 1448.0 / 1500.0;

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PLAN_LINK_TIMES_H_
