// The limits of frames between peers, of one and of all that wait: they follow
// from the size of the model, so that no other peer can make this one hold more
// than its part of a run ever needs.
//
// This header knows nothing of transports, codecs or collectives.

#ifndef GOSSAMER_RUNTIME_NEIGHBORHOOD_FRAME_LIMITS_H_
#define GOSSAMER_RUNTIME_NEIGHBORHOOD_FRAME_LIMITS_H_

#include <cstddef>

namespace gossamer {

struct FrameLimits {
  size_t body = 0;       // of one frame
  size_t queued = 0;     // of one connection's queue out
  size_t in_flight = 0;  // of all connections, in both directions
};

// Of a run of `parameters` floats among `peers`.
//
// A body is at most an index and a float for every parameter; beside these the
// slack has room for what does not grow with them: a probe's load of 2 MiB,
// chunks of a state, the weights of an autoencoder, an all-reduce's trial.
// A queue holds a window of payloads, and an all-reduce's messages of the
// operation before, this one and the next, sent again on a new connection.
constexpr FrameLimits FrameLimitsOf(size_t parameters, size_t peers) {
  constexpr size_t kMaxBytesPerParameter = 8;
  constexpr size_t kSlack = size_t{4} << 20;
  constexpr size_t kQueued = 16;
  const size_t body = kMaxBytesPerParameter * parameters + kSlack;
  return {.body = body,
          .queued = kQueued * body,
          .in_flight = (2 * kQueued + peers) * body};
}

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_NEIGHBORHOOD_FRAME_LIMITS_H_
