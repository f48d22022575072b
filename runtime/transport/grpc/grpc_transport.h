// Frames over gRPC: one long-lived bidirectional stream per edge, raw byte
// buffers in checksummed chunks, pushed as soon as they are sent.
//
// All I/O is done on the loop, between its other work.  With certificates both
// ends of a stream prove which peer of which run they are.  Without them, only
// loopback addresses are served unless the options allow others.  This header
// knows nothing of what the frames say.

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

inline constexpr int kAdaptiveLanes = 4;

struct GrpcOptions {
  PeerId self;
  std::string run_id;  // at most 128 bytes; peers of another run are refused
  // The versions that this end speaks.
  VersionRange versions = kTransportVersions;
  // "host:port", with port 0 for any free port.  Empty: this end only dials,
  // and accepts nobody.
  std::string listen_address = "127.0.0.1:0";
  // The certificates of `self` in `run_id`.  Null: nothing is encrypted and no
  // end proves who it is.
  std::shared_ptr<CertificateFolder> certificates;
  // With certificates: TLS of accepted connections ends before gRPC, which gets
  // authenticated ones alone.  Otherwise gRPC ends it.
  bool tls_gate = true;
  // Allows addresses other than loopback, in either direction, without
  // certificates.
  bool allow_insecure_remote = false;
  // Every end that has an address dials; otherwise only the smaller id of an
  // edge does.  Two connections between two peers do no harm.
  bool dial_from_both_ends = false;

  // The largest body, in bytes.  A peer that declares more is cut off.
  size_t max_body_bytes = size_t{512} << 20;
  // Bytes of the body in one message of the stream, at most 4 MiB.  The two
  // ends may differ.
  size_t chunk_bytes = size_t{512} << 10;
  // The most bytes of frames that wait to be written on one connection.  A
  // connection that needs more is closed.
  size_t max_queued_bytes = size_t{1} << 30;
  // The most bytes of all streams together: frames that wait to be written, and
  // those that are coming in.  Over it, a connection of the peer that holds the
  // most is closed.
  size_t max_bytes_in_flight = size_t{4} << 30;
  // The bytes that the other end may have in flight to this one, per stream:
  // bandwidth times round trip, and at least two messages.
  int stream_window_bytes = 16 << 20;
  // TCP's congestion control: a name that the kernel allows, empty for the
  // machine's own, or "auto", which prefers one that sends a message in one
  // burst.
  std::string congestion_control = "auto";
  // The TCP connections of an edge that this end dials, 1 to 8.  Large bodies
  // are spread over them.  They count in `max_connections`, not in
  // `max_connections_per_peer`.  0: one, and kAdaptiveLanes once it
  // loses packets again and again over a long link, or is held back by its
  // window, and cannot have BBR: the kernel does not allow it, or
  // `congestion_control` is CUBIC.
  int lanes = 1;
  int max_connections = 256;  // the most open streams, both directions
  int max_connections_per_peer = 4;
  // The most connections whose other end has not yet proved to be a neighbour,
  // half of them from one host.
  int max_unauthenticated = 128;

  // The time for the handshake, for opening a stream on a connection, and for
  // the hello of a stream.
  absl::Duration hello_timeout = absl::Seconds(10);
  // The time for a frame that has begun to come, beside its size at 4 KiB/s.  A
  // peer that does not end a frame holds bytes that all connections share.
  absl::Duration frame_slack = absl::Seconds(60);
  // The time between two checks of open connections: a certificate may expire
  // or be revoked, and a frame may not come to its end.
  absl::Duration check_again = absl::Seconds(5);
  absl::Duration keepalive_time = absl::Seconds(15);
  absl::Duration keepalive_timeout = absl::Seconds(10);
  // Attempt k after a loss waits for min(max, initial · 2^k), less up to half
  // of it by a draw keyed by `seed`.
  absl::Duration initial_backoff = absl::Milliseconds(50);
  absl::Duration max_backoff = absl::Seconds(5);
  uint64_t seed = 0;

  // Called on the loop with the reason why an attempt to connect failed or was
  // refused.  The peer is 0 if it did not say who it is.  May be empty.
  std::function<void(PeerId, const absl::Status&)> on_problem;
};

class GrpcTransport : public Transport {
 public:
  // Listens at once; accepts peers after Connect().  Returns kInvalidArgument
  // for impossible options, kUnavailable if the address is taken or not of this
  // machine.  `loop` outlives the transport, which becomes its only poller.
  // Creation happens on the loop, or before it runs.  So does destruction,
  // which waits until all I/O has ended and must not happen in a callback of
  // the transport.
  static absl::StatusOr<std::unique_ptr<GrpcTransport>> Create(
      RealLoop* loop, GrpcOptions options);

  // The port that it listens on; 0 if it does not listen.
  virtual int port() const = 0;
  // The connections that are let in however many unauthenticated ones there
  // are: as many as the limit of open files leaves.
  virtual size_t authenticated_capacity() const = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_GRPC_TRANSPORT_H_
