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
  Mutator(SocketTuning t, std::shared_ptr<ConnectionLimiter> l,
          std::shared_ptr<FloodGuard> f, std::shared_ptr<SocketCongestion> c)
      : tuning(std::move(t)),
        limiter(std::move(l)),
        guard(std::move(f)),
        congestion(std::move(c)) {
    grpc_socket_mutator_init(this, &kTable);
  }
  // Never returns false, which would make gRPC stop listening.  gRPC finds a
  // socket that the limiter has refused already shut down.
  static bool Mutate(const grpc_mutate_socket_info* info,
                     grpc_socket_mutator* self) {
    const auto* own = static_cast<Mutator*>(self);
    if (info->usage != GRPC_FD_SERVER_CONNECTION_USAGE) {
      // Buffers have to be set before a socket connects or listens: the window
      // scale is agreed in the handshake.
      ApplyTuning(info->fd, own->tuning);  // accepted ones inherit it
      if (info->usage == GRPC_FD_SERVER_LISTENER_USAGE &&
          own->limiter != nullptr) {
        own->limiter->Watch(info->fd);
      }
    } else if (own->limiter != nullptr && own->limiter->Allow(info->fd)) {
      own->guard->Add(info->fd);
    }
    if (info->usage != GRPC_FD_SERVER_LISTENER_USAGE &&
        own->congestion != nullptr) {
      own->congestion->Add(info->fd);
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
  const SocketTuning tuning;
  const std::shared_ptr<ConnectionLimiter> limiter;
  const std::shared_ptr<FloodGuard> guard;
  const std::shared_ptr<SocketCongestion> congestion;
};

class TuningOption final : public grpc::ServerBuilderOption {
 public:
  TuningOption(SocketTuning tuning, std::shared_ptr<ConnectionLimiter> limiter,
               std::shared_ptr<FloodGuard> guard,
               std::shared_ptr<SocketCongestion> congestion)
      : tuning_(std::move(tuning)),
        limiter_(std::move(limiter)),
        guard_(std::move(guard)),
        congestion_(std::move(congestion)) {}
  void UpdateArguments(grpc::ChannelArguments* arguments) override {
    arguments->SetSocketMutator(
        new Mutator(tuning_, limiter_, guard_, congestion_));
  }
  void UpdatePlugins(
      std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>*) override {}

 private:
  const SocketTuning tuning_;
  const std::shared_ptr<ConnectionLimiter> limiter_;
  const std::shared_ptr<FloodGuard> guard_;
  const std::shared_ptr<SocketCongestion> congestion_;
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
  if (congestion != kAuto) {
    tuning.congestion = congestion;
    return tuning;
  }
  // A message should leave in one burst, as with CUBIC, unless its window is
  // too small (congestion.h).
  tuning.congestion = "cubic";
  tuning.adapts = true;
  tuning.pauses = settings.slow_start_after_idle;
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

void AddTuning(const SocketTuning& tuning,
               std::shared_ptr<SocketCongestion> congestion,
               grpc::ChannelArguments* arguments) {
  arguments->SetSocketMutator(
      new Mutator(tuning, nullptr, nullptr, std::move(congestion)));
}

void AddTuning(const SocketTuning& tuning,
               std::shared_ptr<ConnectionLimiter> limiter,
               std::shared_ptr<FloodGuard> guard,
               std::shared_ptr<SocketCongestion> congestion,
               grpc::ServerBuilder* builder) {
  builder->SetOption(std::make_unique<TuningOption>(
      tuning, std::move(limiter), std::move(guard), std::move(congestion)));
}

}  // namespace gossamer
