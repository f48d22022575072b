// The options of a TCP socket that suit a long fat link and need no privileges,
// and their way into gRPC's sockets.
//
// Internal to transport/grpc.  This header knows nothing of streams.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_SOCKET_TUNING_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_SOCKET_TUNING_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/transport/grpc/congestion.h"
#include "runtime/transport/grpc/connection_limiter.h"
#include "runtime/transport/grpc/flood_guard.h"

namespace gossamer {

// The kernel's settings of TCP in this process's network namespace.  Bytes.
struct TcpSettings {
  bool slow_start_after_idle = true;
  int64_t largest_send = 0;  // the most that its own tuning reaches
  int64_t largest_receive = 0;
  int64_t max_send = 0;  // the most that SO_SNDBUF may ask for
  int64_t max_receive = 0;
};
TcpSettings ReadTcpSettings();

// The options to set; empty and 0 leave the kernel's own.
struct SocketTuning {
  std::string congestion;
  bool adapts = false;  // SocketCongestion goes on choosing
  bool pauses = false;  // it minds pauses, and not losses alone
  int send_buffer = 0;
  int receive_buffer = 0;
};

// `congestion` is a name, empty for the kernel's own, or "auto".  `in_flight`
// is the number of bytes that a buffer should hold.
SocketTuning ChooseTuning(const TcpSettings& settings,
                          const std::string& congestion, int64_t in_flight);

// Sets the options, as far as the socket takes them: it works without them.
void ApplyTuning(int fd, const SocketTuning& tuning);

// The parts that look after the sockets of a server.
struct ServerSockets {
  SocketTuning tuning = {};
  std::shared_ptr<ConnectionLimiter> limiter = nullptr;
  std::shared_ptr<FloodGuard> guard = nullptr;
  std::shared_ptr<SocketCongestion> congestion = nullptr;  // tuning stays

  // Before the socket listens.
  void OnListener(int socket) const;
  // Before a byte is read.  Returns false for a socket that was one too many:
  // it has been shut down.
  bool OnAccepted(int socket) const;
};

// Applies `tuning` to every socket of a channel.  `congestion`, unless it is
// null, gets the sockets, with `outgrown`.
void AddTuning(const SocketTuning& tuning,
               std::shared_ptr<SocketCongestion> congestion,
               OutgrownFlag outgrown, grpc::ChannelArguments* arguments);
// Has gRPC call `sockets` for those that it listens on and accepts.
void AddTuning(ServerSockets sockets, grpc::ServerBuilder* builder);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_SOCKET_TUNING_H_
