#include "runtime/transport/grpc/grpc_transport.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "runtime/base/address.h"
#include "runtime/transport/grpc/congestion.h"
#include "runtime/transport/grpc/connector.h"
#include "runtime/transport/grpc/grpc_io.h"
#include "runtime/transport/grpc/lanes.h"

namespace gossamer {
namespace {

absl::Status Validate(const GrpcOptions& options) {
  if (options.self == PeerId{}) {
    return absl::InvalidArgumentError("options.self: peer 0 is no peer");
  }
  if (options.run_id.empty() || options.run_id.size() > kMaxHelloRunIdBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("options.run_id: has %d bytes; give it 1 to %d",
                        options.run_id.size(), kMaxHelloRunIdBytes));
  }
  if (options.chunk_bytes == 0 || options.chunk_bytes > kMaxChunkBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("options.chunk_bytes: %d is not in 1 to %d",
                        options.chunk_bytes, kMaxChunkBytes));
  }
  if (options.lanes < 0 || options.lanes > static_cast<int>(kMaxLanes)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "options.lanes: %d is not in 0 to %d", options.lanes, kMaxLanes));
  }
  if (const std::string& name = options.congestion_control;
      !name.empty() && name != "auto" && !KernelAllows(name)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "resources.congestion_control: the kernel does not allow \"%s\"; see "
        "sysctl net.ipv4.tcp_allowed_congestion_control, or modprobe tcp_%s",
        name, name));
  }
  if (options.max_unauthenticated < 2) {
    // A neighbour counts as unauthenticated until its hello, and half of the
    // places are for one host: with fewer than two, none could connect.
    return absl::InvalidArgumentError(absl::StrFormat(
        "options.max_unauthenticated: %d; a peer that connects is one at first",
        options.max_unauthenticated));
  }
  if (options.certificates != nullptr) {
    const Identity self{
        .run = options.run_id, .role = Role::kPeer, .peer = options.self};
    if (options.certificates->identity() == self) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("options.certificates: they are of ",
                     ToUri(options.certificates->identity()), ", and this is ",
                     ToUri(self)));
  }
  if (!options.listen_address.empty() && !options.allow_insecure_remote &&
      !IsLoopback(options.listen_address)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "options.listen_address: %s can be reached from other machines and "
        "nothing is encrypted; give certificates, listen on 127.0.0.1 or set "
        "allow_insecure_remote",
        options.listen_address));
  }
  return absl::OkStatus();
}

class GrpcTransportImpl final : public GrpcTransport {
 public:
  GrpcTransportImpl(RealLoop* loop, GrpcOptions options)
      : connector_(std::make_shared<Connector>(loop, std::move(options))) {}
  ~GrpcTransportImpl() override { connector_->Shutdown(); }

  absl::Status Start() { return connector_->Start(); }
  int port() const override { return connector_->port(); }
  size_t authenticated_capacity() const override {
    return connector_->authenticated_capacity();
  }
  void SetListener(TransportListener* listener) override {
    connector_->SetListener(listener);
  }
  void Connect(PeerId peer, const std::string& address) override {
    connector_->Connect(peer, address);
  }
  void Disconnect(PeerId peer) override { connector_->Disconnect(peer); }
  bool Send(PeerId peer, Channel channel, Frame frame) override {
    return connector_->Send(peer, channel, std::move(frame));
  }
  void Close(PeerId peer, ConnectionId connection,
             const absl::Status& why) override {
    connector_->Close(peer, connection, why);
  }
  bool IsWritable(PeerId peer) const override {
    return connector_->IsWritable(peer);
  }
  TransportCounters counters() const override { return connector_->counters(); }

 private:
  const std::shared_ptr<Connector> connector_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcTransport>> GrpcTransport::Create(
    RealLoop* loop, GrpcOptions options) {
  if (absl::Status valid = Validate(options); !valid.ok()) return valid;
  auto transport =
      std::make_unique<GrpcTransportImpl>(loop, std::move(options));
  if (absl::Status started = transport->Start(); !started.ok()) return started;
  return transport;
}

}  // namespace gossamer
