// The options of a TCP socket that suit a long fat link and need no privileges,
// and their way into gRPC's sockets.
//
// Internal to transport/grpc.  Knows nothing of streams.

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

// Applies `tuning` to every socket of a channel, or of a server that accepts
// only the connections that `limiter` allows, and has `guard` poll them.
// `congestion` gets the sockets if the tuning adapts; null: none does.
void AddTuning(const SocketTuning& tuning,
               std::shared_ptr<SocketCongestion> congestion,
               grpc::ChannelArguments* arguments);
void AddTuning(const SocketTuning& tuning,
               std::shared_ptr<ConnectionLimiter> limiter,
               std::shared_ptr<FloodGuard> guard,
               std::shared_ptr<SocketCongestion> congestion,
               grpc::ServerBuilder* builder);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_SOCKET_TUNING_H_
