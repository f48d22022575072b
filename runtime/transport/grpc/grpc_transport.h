// Frames over gRPC: one long-lived bidirectional stream per edge, raw byte
// buffers in checksummed chunks, pushed as soon as they are sent.
//
// The I/O is done on the loop, between what else it runs.  With certificates
// both ends of a stream prove which peer of which run they are; without, only
// addresses of this machine are served unless the options allow others.  Knows
// nothing of what the frames say.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_GRPC_TRANSPORT_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_GRPC_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "runtime/base/real_loop.h"
#include "runtime/identity/certificate_folder.h"
#include "runtime/transport/grpc/hello.h"
#include "runtime/transport/transport.h"

namespace gossamer {

struct GrpcOptions {
  PeerId self;
  std::string run_id;  // at most 128 bytes; peers of another run are refused
  VersionRange versions = kTransportVersions;  // that this end speaks
  // "host:port", port 0 for any free one; empty: only dials, accepts nobody.
  std::string listen_address = "127.0.0.1:0";
  // Of `self` in `run_id`; null: nothing is encrypted and nobody proves who it
  // is.
  std::shared_ptr<const CertificateFolder> certificates;
  // Addresses other than loopback, in either direction, without certificates.
  bool allow_insecure_remote = false;
  // Who dials: the end with the smaller id, or every end that has an address.
  // Two connections between two peers are one too many, but do no harm.
  bool dial_from_both_ends = false;

  // Per frame; a peer that declares more is cut off.
  size_t max_body_bytes = size_t{512} << 20;
  // Of the body, per message of the stream.  Both ends may differ up to 4 MiB.
  size_t chunk_bytes = size_t{512} << 10;
  // Frames of one connection that wait to be written; over it the connection is
  // closed.
  size_t max_queued_bytes = size_t{1} << 30;
  // Of all streams: frames that wait to be written, and those that are coming
  // in.  Over it a connection is closed of the peer that holds the most.
  size_t max_bytes_in_flight = size_t{4} << 30;
  // What the other end may have in flight to us, per stream: bandwidth times
  // round trip, and at least two messages (section 9 of the design).
  int stream_window_bytes = 16 << 20;
  // Of TCP: a name that the kernel allows, empty for the machine's own, or
  // "auto", which sends a message in one burst if that is to be had.
  std::string congestion_control = "auto";
  // Of an edge that this end dials, 1 to 8: large bodies are spread over them.
  // They count in `max_connections`, not in `max_connections_per_peer`.
  int lanes = 1;
  int max_connections = 256;  // open streams, both directions
  int max_connections_per_peer = 4;
  // Connections, half of them from one host, of which nobody has proved yet to
  // be a neighbour.
  int max_strangers = 128;

  // Of the handshake, of a connection without a stream, of a stream without a
  // hello.
  absl::Duration hello_timeout = absl::Seconds(10);
  // Of a frame that has begun to come, beside its size at 4 KiB/s: a peer that
  // does not end one holds what all connections share.
  absl::Duration frame_slack = absl::Seconds(60);
  // Between two looks at open connections: a certificate may expire or be
  // revoked, a frame may not come to its end.
  absl::Duration check_again = absl::Seconds(5);
  absl::Duration keepalive_time = absl::Seconds(15);
  absl::Duration keepalive_timeout = absl::Seconds(10);
  // Attempt k after a loss waits for min(max, initial · 2^k), less up to half
  // of it by a draw keyed by `seed`.
  absl::Duration initial_backoff = absl::Milliseconds(50);
  absl::Duration max_backoff = absl::Seconds(5);
  uint64_t seed = 0;

  // Told on the loop why an attempt to connect failed or was refused; the
  // peer is 0 where it did not say who it is.  May be empty.
  std::function<void(PeerId, const absl::Status&)> on_problem;
};

class GrpcTransport : public Transport {
 public:
  // `loop` outlives the transport, which becomes its poller: one per loop.
  // Listens at once; accepts peers after Connect().  kInvalidArgument for
  // options that cannot be, kUnavailable if the address is taken or not of this
  // machine.  On the loop, or before it runs; the same for destruction, which
  // waits until all I/O has ended and must not happen in a callback of the
  // transport's own.
  static absl::StatusOr<std::unique_ptr<GrpcTransport>> Create(
      RealLoop* loop, GrpcOptions options);

  // Where it listens; 0 if it does not.
  virtual int port() const = 0;
  // Connections that are let in however many strangers there are: as many as
  // the limit of open files leaves.
  virtual size_t room() const = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_GRPC_TRANSPORT_H_
