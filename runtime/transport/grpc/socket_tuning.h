// What a TCP socket can be told without privileges so that it suits a long fat
// link, and how gRPC's sockets are told.
//
// Internal to transport/grpc.  Knows nothing of streams.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_SOCKET_TUNING_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_SOCKET_TUNING_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/transport/grpc/stranger_gate.h"

namespace gossamer {

// What the kernel says of TCP in this process's network.
struct TcpSettings {
  bool slow_start_after_idle = true;
  int64_t largest_send = 0;  // what its own tuning goes up to
  int64_t largest_receive = 0;
  int64_t most_send = 0;  // what SO_SNDBUF may ask for
  int64_t most_receive = 0;
};
TcpSettings ReadTcpSettings();

// What to set; empty and 0 leave the kernel's own.
struct SocketTuning {
  std::string congestion;
  int send_buffer = 0;
  int receive_buffer = 0;
};

// `congestion` is a name, empty for the kernel's own, or "auto"; `in_flight` is
// what should fit into a buffer.
SocketTuning ChooseTuning(const TcpSettings& settings,
                          const std::string& congestion, int64_t in_flight);

// Best effort: a socket that refuses an option works without it.
void ApplyTuning(int fd, const SocketTuning& tuning);

// Applies `tuning` to every socket of a channel; of a server, which accepts
// only whom `gate` admits.
void AddTuning(const SocketTuning& tuning, grpc::ChannelArguments* arguments);
void AddTuning(const SocketTuning& tuning, std::shared_ptr<StrangerGate> gate,
               grpc::ServerBuilder* builder);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_SOCKET_TUNING_H_
