// The loop's side of a gRPC transport: the streams of every peer, who dials and
// when again, and the events for the listener.
//
// Internal to transport/grpc; loop only.  This header knows nothing of bytes.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_CONNECTOR_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_CONNECTOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "runtime/base/real_loop.h"
#include "runtime/transport/grpc/connection.h"
#include "runtime/transport/grpc/grpc_io.h"
#include "runtime/transport/grpc/grpc_stream.h"
#include "runtime/transport/grpc/grpc_transport.h"
#include "runtime/transport/transport.h"

namespace gossamer {

// Callbacks on the loop share ownership of it.  They may run, or be destroyed,
// after Shutdown(), and then do nothing.
class Connector final : public GrpcStreamOwner,
                        public std::enable_shared_from_this<Connector> {
 public:
  Connector(RealLoop* loop, GrpcOptions options);

  absl::Status Start();
  void Shutdown();
  int port() const { return io_.port(); }
  size_t authenticated_capacity() const { return io_.authenticated_capacity(); }

  // See Transport.
  void SetListener(TransportListener* listener) { listener_ = listener; }
  void Connect(PeerId peer, const std::string& address);
  void Disconnect(PeerId peer);
  bool Send(PeerId peer, Channel channel, Frame frame);
  bool IsWritable(PeerId peer) const;
  void Close(PeerId peer, ConnectionId connection, const absl::Status& why);
  TransportCounters counters() const;

  void OnAccepted(GrpcStreamPtr stream) override;
  void OnHello(GrpcStreamPtr stream, TransportHello hello) override;
  void OnFrame(GrpcStreamPtr stream, ReceivedFrame frame) override;
  void OnChunk(const GrpcStreamPtr& stream) override;
  bool OnFull(const GrpcStreamPtr& stream, size_t bytes) override;
  void OnAcceptEnded() override {}
  void OnEnd(GrpcStreamPtr stream, absl::Status why) override;

 private:
  struct Peer {
    std::string address;
    std::map<ConnectionId, Connection> up;
    GrpcStreamPtr dialling;  // until its hello or its end
    EventLoop::TimerId redial{0};
    uint64_t attempt = 0;
    int failures = 0;
    absl::Time last_up = absl::InfinitePast();
  };
  struct Stream {
    PeerId peer;          // 0 before its hello
    ConnectionId id = 0;  // 0 before OnUp of its connection
    size_t lane = 0;
    bool reported = false;  // the reason of its end is reported
    OutgrownFlag outgrown;  // set if its connection may get lanes later
    EventLoop::TimerId hello_timer{0};
  };

  template <typename F>
  void Post(F fn);
  Stream& Track(const GrpcStreamPtr& stream, PeerId peer);
  void Dial(PeerId peer);
  // Dials the lanes 1 to `lanes` - 1 of a connection that has none.
  void DialLanes(PeerId peer, ConnectionId id, int lanes);
  void DialLanesWhereOutgrown();
  void DialLater(PeerId peer);
  absl::Status Judge(const GrpcStream& stream, const Stream& state,
                     const TransportHello& hello) const;
  // Checks that the other end has proved to be `peer`, and still may be it.
  absl::Status CheckIdentity(const GrpcStream& stream, PeerId peer) const;
  // Checks that an open connection may stay open.
  absl::Status CheckOpen(PeerId peer, const Connection& connection) const;
  void CheckAgain();
  void PollSockets();
  void Up(const GrpcStreamPtr& stream, const TransportHello& hello);
  // Opens a further lane of a connection of this peer, dialled or accepted.
  absl::Status OpenLane(const GrpcStreamPtr& stream, Stream* state,
                        const TransportHello& hello);
  // Makes room when connection `asking` of `peer` needs `bytes` more than all
  // streams together may hold.  It ends a connection of the peer that holds the
  // most, not of the peer that happens to ask.  Connection `asking` itself is
  // never ended.  Returns true if a connection has ended and given back its
  // bytes.
  bool MakeRoom(PeerId peer, ConnectionId asking, size_t bytes);
  // Takes all streams of an open connection out of the tables, and ends them.
  void Drop(Peer* peer, ConnectionId id, const absl::Status& why);
  // Ends an open connection from this end.
  void CloseStream(PeerId peer, ConnectionId id, const absl::Status& why);
  void Report(PeerId peer, const absl::Status& why);

  RealLoop* const loop_;
  const GrpcOptions options_;
  TransportListener* listener_ = nullptr;
  bool alive_ = true;
  bool polled_ = false;
  EventLoop::TimerId check_timer_{0}, socket_timer_{0};
  ConnectionId last_id_ = 0;
  TransportCounters counters_;
  std::map<PeerId, Peer> peers_;
  std::map<GrpcStreamPtr, Stream> streams_;
  GrpcIo io_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_CONNECTOR_H_
