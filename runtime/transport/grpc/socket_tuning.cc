#include "runtime/transport/grpc/socket_tuning.h"

#include <grpc/support/sync.h>
#include <grpcpp/impl/server_builder_option.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/base/proc_file.h"

// gRPC declares SetSocketMutator() publicly, but not the types that it takes.
// These four are as in gRPC's src/core/lib/iomgr/socket_mutator.h, unchanged
// since 1.36.
enum grpc_fd_usage {
  GRPC_FD_CLIENT_CONNECTION_USAGE,
  GRPC_FD_SERVER_LISTENER_USAGE,
  GRPC_FD_SERVER_CONNECTION_USAGE,
};
struct grpc_mutate_socket_info {
  int fd;
  grpc_fd_usage usage;
};
struct grpc_socket_mutator_vtable {
  bool (*mutate_fd)(int fd, grpc_socket_mutator* mutator);
  int (*compare)(grpc_socket_mutator* a, grpc_socket_mutator* b);
  void (*destroy)(grpc_socket_mutator* mutator);
  bool (*mutate_fd_2)(const grpc_mutate_socket_info* info,
                      grpc_socket_mutator* mutator);
};
struct grpc_socket_mutator {
  const grpc_socket_mutator_vtable* vtable;
  gpr_refcount refcount;
};
void grpc_socket_mutator_init(grpc_socket_mutator* mutator,
                              const grpc_socket_mutator_vtable* vtable);

namespace gossamer {
namespace {

constexpr char kAuto[] = "auto";

// Returns the buffer size to ask for, or 0 to leave the kernel's own tuning on,
// which asking would end.  Asking is worth it only if it gives more than that
// tuning.  The kernel doubles the size, and counts about as much again for its
// own structures.
int Ask(int64_t in_flight, int64_t most, int64_t tuned) {
  const int64_t ask = std::min(in_flight, most);
  return 2 * ask > tuned && tuned < 2 * in_flight ? static_cast<int>(ask) : 0;
}

struct Mutator : grpc_socket_mutator {
  explicit Mutator(ServerSockets s, OutgrownFlag o = nullptr)
      : sockets(std::move(s)), outgrown(std::move(o)) {
    grpc_socket_mutator_init(this, &kTable);
  }
  // Never returns false, which would make gRPC stop listening.  gRPC finds a
  // socket that the limiter has refused already shut down.
  static bool Mutate(const grpc_mutate_socket_info* info,
                     grpc_socket_mutator* self) {
    const Mutator& mutator = *static_cast<Mutator*>(self);
    const ServerSockets& sockets = mutator.sockets;
    switch (info->usage) {
      case GRPC_FD_CLIENT_CONNECTION_USAGE:
        ApplyTuning(info->fd, sockets.tuning);
        if (sockets.congestion != nullptr) {
          sockets.congestion->Add(info->fd, mutator.outgrown);
        }
        break;
      case GRPC_FD_SERVER_LISTENER_USAGE:
        sockets.OnListener(info->fd);
        break;
      case GRPC_FD_SERVER_CONNECTION_USAGE:
        sockets.OnAccepted(info->fd);
        break;
    }
    return true;
  }
  static int Compare(grpc_socket_mutator* a, grpc_socket_mutator* b) {
    // gRPC compares channel arguments; two mutators are never alike.
    return a < b ? -1 : a > b ? 1 : 0;
  }
  static void Destroy(grpc_socket_mutator* self) {
    delete static_cast<Mutator*>(self);
  }
  static constexpr grpc_socket_mutator_vtable kTable = {nullptr, Compare,
                                                        Destroy, Mutate};
  const ServerSockets sockets;  // of a client: the tuning and congestion alone
  const OutgrownFlag outgrown;  // of a client
};

class TuningOption final : public grpc::ServerBuilderOption {
 public:
  explicit TuningOption(ServerSockets sockets) : sockets_(std::move(sockets)) {}
  void UpdateArguments(grpc::ChannelArguments* arguments) override {
    arguments->SetSocketMutator(new Mutator(sockets_));
  }
  void UpdatePlugins(
      std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>*) override {}

 private:
  const ServerSockets sockets_;
};

}  // namespace

TcpSettings ReadTcpSettings() {
  TcpSettings s;
  s.slow_start_after_idle =
      ReadNetSysctl("ipv4/tcp_slow_start_after_idle") != "0";
  s.largest_send = LargestOfNetSysctl("ipv4/tcp_wmem");
  s.largest_receive = LargestOfNetSysctl("ipv4/tcp_rmem");
  s.max_send = LargestOfNetSysctl("core/wmem_max");
  s.max_receive = LargestOfNetSysctl("core/rmem_max");
  return s;
}

SocketTuning ChooseTuning(const TcpSettings& settings,
                          const std::string& congestion, int64_t in_flight) {
  SocketTuning tuning;
  tuning.send_buffer = Ask(in_flight, settings.max_send, settings.largest_send);
  tuning.receive_buffer =
      Ask(in_flight, settings.max_receive, settings.largest_receive);
  tuning.pauses = settings.slow_start_after_idle;
  if (congestion != kAuto) {
    tuning.congestion = congestion;
    return tuning;
  }
  // A message should leave in one burst, as with CUBIC, unless its window is
  // too small (congestion.h).
  tuning.congestion = "cubic";
  tuning.adapts = true;
  return tuning;
}

void ApplyTuning(int fd, const SocketTuning& tuning) {
  if (!tuning.congestion.empty()) {
    // A refusal is ignored: without the algorithm the socket works as before,
    // and `gossamer doctor` says what the kernel allows.
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, tuning.congestion.data(),
               static_cast<socklen_t>(tuning.congestion.size()));
  }
  const auto set_buffer = [fd](int option, int bytes) {
    if (bytes > 0) setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof(bytes));
  };
  set_buffer(SO_SNDBUF, tuning.send_buffer);
  set_buffer(SO_RCVBUF, tuning.receive_buffer);
}

void ServerSockets::OnListener(int socket) const {
  // Buffers have to be set before a socket listens: the window scale is agreed
  // in the handshake, and accepted ones inherit them.
  ApplyTuning(socket, tuning);
  limiter->Watch(socket);
}

bool ServerSockets::OnAccepted(int socket) const {
  if (!limiter->Allow(socket)) return false;
  guard->Add(socket);
  if (congestion != nullptr) congestion->Add(socket);
  return true;
}

void AddTuning(const SocketTuning& tuning,
               std::shared_ptr<SocketCongestion> congestion,
               OutgrownFlag outgrown, grpc::ChannelArguments* arguments) {
  arguments->SetSocketMutator(
      new Mutator({.tuning = tuning, .congestion = std::move(congestion)},
                  std::move(outgrown)));
}

void AddTuning(ServerSockets sockets, grpc::ServerBuilder* builder) {
  builder->SetOption(std::make_unique<TuningOption>(std::move(sockets)));
}

}  // namespace gossamer
