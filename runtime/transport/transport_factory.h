// Makes the transport of a peer by its name.
//
// A new transport is a folder here, a row in the table of transport_factory.cc
// and a name in transport_choice.h.  This header knows nothing of configuration
// files.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_TRANSPORT_FACTORY_H_
#define GOSSAMER_RUNTIME_TRANSPORT_TRANSPORT_FACTORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/base/ids.h"
#include "runtime/base/real_loop.h"
#include "runtime/identity/certificate_folder.h"
#include "runtime/transport/nccl/nccl_transport.h"
#include "runtime/transport/transport.h"

namespace gossamer {

// A transport takes of these what it has a use for.
struct TransportOptions {
  PeerId self;
  std::string run_id = {};
  std::string listen_address = {};                       // host:port
  std::shared_ptr<CertificateFolder> certificates = {};  // null: none
  bool allow_insecure_remote = false;
  int connections = 0;  // to each neighbour; 0: several where they are faster
  std::string congestion_control = "auto";  // of TCP
  bool tls_gate = true;  // certificates are looked at before gRPC
  int max_others = 16;   // neighbours that there may come to be
  // Of a frame's body; of frames that wait to be written, on one connection and
  // on all; bytes.
  size_t max_body_bytes = size_t{1} << 30;
  size_t max_queued_bytes = size_t{1} << 30;
  size_t max_bytes_in_flight = size_t{4} << 30;
  uint64_t seed = 1;  // of delays between attempts
  std::function<void(PeerId, const absl::Status&)> on_problem = {};
  // Set if the peer's parameters are on a device; both outlive the transport.
  NcclApi* nccl = nullptr;
  NcclDevice* device = nullptr;
  std::function<void(EventKind, const std::string&)> report = {};
};

struct MadeTransport {
  std::unique_ptr<Transport> transport = {};
  int port = 0;                    // where it listens; 0: nowhere
  size_t connection_capacity = 0;  // connections that fit; 0: no limit is known
  int connections_an_edge = 1;     // the most
  // `transport` itself if it uses NCCL: every view goes to its Prepare().
  NcclTransport* nccl = nullptr;
};

// "auto", "grpc", "nccl".
std::vector<std::string_view> TransportNames();

// `loop` outlives it.  kInvalidArgument for an unknown name;
// kFailedPrecondition for nccl without a device; else errors of the transport.
absl::StatusOr<MadeTransport> MakeTransport(std::string_view name,
                                            RealLoop* loop,
                                            TransportOptions options);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_TRANSPORT_FACTORY_H_
