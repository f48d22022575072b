// The backends of the conformance suite: the simulated network, NCCL over it
// with and without faults, and gRPC in three ways.

#include "tests/runtime/transport/backend.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/base/real_loop.h"
#include "runtime/sim/sim_network.h"
#include "runtime/sim/virtual_loop.h"
#include "runtime/transport/grpc/grpc_transport.h"
#include "runtime/transport/nccl/nccl_transport.h"
#include "tests/testing/fake_nccl.h"

namespace gossamer {

void Recorder::OnUp(PeerId peer, ConnectionId connection) {
  MutexLock lock(&mu_);
  EXPECT_FALSE(in_call) << "an event came inline";
  EXPECT_TRUE(seen_.ups.empty() || seen_.ups.back() < connection)
      << "a later connection has a larger id";
  seen_.ups.push_back(connection);
  seen_.open.insert(connection);
  seen_.log.push_back("up");
  changed_.SignalAll();
}

void Recorder::OnFrame(PeerId peer, ConnectionId connection, Channel channel,
                       Frame frame) {
  MutexLock lock(&mu_);
  EXPECT_FALSE(in_call) << "an event came inline";
  EXPECT_TRUE(seen_.open.contains(connection)) << "a frame of no connection";
  seen_.frames.push_back({connection, channel, std::move(frame)});
  seen_.log.push_back("frame");
  changed_.SignalAll();
}

void Recorder::OnProgress(PeerId /*peer*/) {
  MutexLock lock(&mu_);
  EXPECT_FALSE(in_call) << "an event came inline";
  ++seen_.parts;
  changed_.SignalAll();
}

void Recorder::OnDown(PeerId peer, ConnectionId connection,
                      const absl::Status& why) {
  MutexLock lock(&mu_);
  EXPECT_FALSE(in_call) << "an event came inline";
  EXPECT_FALSE(why.ok());
  EXPECT_EQ(seen_.open.erase(connection), 1u) << "down without up";
  seen_.downs.push_back(connection);
  seen_.reasons.push_back(why);
  seen_.log.push_back("down");
  changed_.SignalAll();
}

bool Recorder::Await(absl::FunctionRef<bool(const Seen&)> condition,
                     absl::Duration limit) const {
  MutexLock lock(&mu_);
  return changed_.AwaitFor(&mu_, limit, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return condition(seen_);
  });
}

namespace {

// Runs all peers on one virtual loop over the simulated network.
class SimBackend : public Backend {
 public:
  SimBackend() : network_(&loop_, SimOptions{}) {}
  void Start(PeerId peer) override {
    Peer& p = peers_[peer];
    p.loop = std::make_unique<VirtualPeerLoop>(&loop_);
    p.recorder = std::make_unique<Recorder>();
    p.transport =
        Wrap(peer, p.loop.get(), network_.CreateEndpoint(peer, p.loop.get()));
    p.transport->SetListener(p.recorder.get());
  }
  void Kill(PeerId peer) override { peers_.at(peer).transport.reset(); }
  void On(PeerId peer, absl::FunctionRef<void(Transport&)> fn) override {
    Peer& p = peers_.at(peer);
    p.recorder->in_call = true;
    fn(*p.transport);
    p.recorder->in_call = false;
  }
  Recorder& recorder(PeerId peer) override { return *peers_.at(peer).recorder; }
  std::string address(PeerId peer) override { return "sim"; }
  bool Await(
      PeerId peer,
      absl::FunctionRef<bool(const Recorder::Seen&)> condition) override {
    const Recorder& r = recorder(peer);
    return loop_.RunUntil([&] { return r.With(condition); }, kLimit);
  }

 protected:
  virtual std::unique_ptr<Transport> Wrap(
      PeerId peer, EventLoop* loop, std::unique_ptr<Transport> transport) {
    return transport;
  }
  VirtualLoop* loop() { return &loop_; }
  void DestroyAll() { peers_.clear(); }

 private:
  struct Peer {
    std::unique_ptr<VirtualPeerLoop> loop;
    std::unique_ptr<Recorder> recorder;
    std::unique_ptr<Transport> transport;
  };
  VirtualLoop loop_;
  SimNetwork network_;
  std::map<PeerId, Peer> peers_;
};

// Gives the frames of edges numbers, as edges do, so that their bodies may
// travel beside their heads.
class NumberingTransport final : public Transport {
 public:
  explicit NumberingTransport(std::unique_ptr<Transport> transport)
      : transport_(std::move(transport)) {}
  void SetListener(TransportListener* listener) override {
    transport_->SetListener(listener);
  }
  void Connect(PeerId peer, const std::string& address) override {
    transport_->Connect(peer, address);
  }
  void Disconnect(PeerId peer) override { transport_->Disconnect(peer); }
  bool Send(PeerId peer, Channel channel, Frame frame) override {
    if (channel == Channel::kEdge) {
      frame.exchange = MakeExchangeId(++sent_[peer]);
    }
    return transport_->Send(peer, channel, std::move(frame));
  }
  void Close(PeerId peer, ConnectionId connection,
             const absl::Status& why) override {
    transport_->Close(peer, connection, why);
  }
  bool IsWritable(PeerId peer) const override {
    return transport_->IsWritable(peer);
  }
  TransportCounters counters() const override { return transport_->counters(); }

 private:
  const std::unique_ptr<Transport> transport_;
  std::map<PeerId, uint64_t> sent_;
};

// Peers 1 and 2 on a GPU each of one host.  A peer that is started again is in
// a view that the other has not heard of.
class NcclBackend : public SimBackend {
 public:
  explicit NcclBackend(FakeNcclOptions options)
      : nccl_(loop(), options, [](const auto& circle) {
          ADD_FAILURE() << circle.size() << " ranks wait in a circle";
        }) {}
  ~NcclBackend() override { DestroyAll(); }  // before their devices
  bool Await(
      PeerId peer,
      absl::FunctionRef<bool(const Recorder::Seen&)> condition) override {
    if (!SimBackend::Await(peer, condition)) return false;
    // Time for a communicator, so that the frames that follow can use it.
    loop()->RunFor(absl::Milliseconds(20));
    return true;
  }

 protected:
  std::unique_ptr<Transport> Wrap(
      PeerId peer, EventLoop* loop,
      std::unique_ptr<Transport> transport) override {
    auto& ranks = ranks_[peer];
    ranks.push_back(nccl_.NewRank(absl::StrCat("gpu", peer.value)));
    NcclOptions options{.self = peer, .min_bytes = 1};
    options.poll = absl::Milliseconds(1);
    auto made = std::make_unique<NcclTransport>(
        std::move(transport), loop, ranks.back().get(), ranks.back().get(),
        std::move(options));
    View view;
    view.generation = ranks.size();
    view.epoch = 1;
    for (uint64_t id = 1; id <= 2; ++id) {
      const NcclPlace place{"host", absl::StrCat("gpu", id), 22809};
      view.members.push_back(
          {.id = {id}, .address = "sim", .device = place.Text()});
    }
    made->Prepare(view);
    return std::make_unique<NumberingTransport>(std::move(made));
  }

 private:
  FakeNccl nccl_;
  std::map<PeerId, std::vector<std::unique_ptr<FakeNccl::Rank>>> ranks_;
};

// Runs peers over gRPC on loopback, each on a loop with a thread; both ends may
// dial, and a connection may have several lanes.
class GrpcBackend : public Backend {
 public:
  GrpcBackend(bool both, int lanes) : both_(both), lanes_(lanes) {}
  ~GrpcBackend() override {
    for (auto& [id, peer] : peers_) Stop(peer);
  }
  void Start(PeerId peer) override {
    Peer& p = peers_[peer];
    p.loop = std::make_unique<RealLoop>();
    p.recorder = std::make_unique<Recorder>();
    p.transport = Create(peer, p.loop.get());
    p.transport->SetListener(p.recorder.get());
    p.loop->Start();
  }
  void Kill(PeerId peer) override { Stop(peers_.at(peer)); }
  void On(PeerId peer, absl::FunctionRef<void(Transport&)> fn) override {
    Peer& p = peers_.at(peer);
    const bool ran = p.loop->PostAndWait(
        [&] {
          p.recorder->in_call = true;
          fn(*p.transport);
          p.recorder->in_call = false;
        },
        kLimit);
    if (!ran) {
      ADD_FAILURE() << "the loop of peer " << peer.value << " hangs";
      std::abort();
    }
  }
  Recorder& recorder(PeerId peer) override { return *peers_.at(peer).recorder; }
  std::string address(PeerId peer) override {
    return absl::StrCat("127.0.0.1:", ports_.at(peer));
  }
  bool Await(
      PeerId peer,
      absl::FunctionRef<bool(const Recorder::Seen&)> condition) override {
    return recorder(peer).Await(condition, kLimit);
  }

 private:
  struct Peer {
    std::unique_ptr<RealLoop> loop;
    std::unique_ptr<Recorder> recorder;
    std::unique_ptr<Transport> transport;
  };

  // A peer keeps its port over its incarnations.
  std::unique_ptr<Transport> Create(PeerId peer, RealLoop* loop) {
    GrpcOptions options;
    options.self = peer;
    options.run_id = "conformance";
    options.listen_address = absl::StrCat("127.0.0.1:", ports_[peer]);
    options.dial_from_both_ends = both_;
    options.lanes = lanes_;
    options.initial_backoff = absl::Milliseconds(5);
    options.max_backoff = absl::Milliseconds(100);
    auto transport = GrpcTransport::Create(loop, std::move(options));
    if (!transport.ok()) {
      ADD_FAILURE() << transport.status();
      std::abort();
    }
    ports_[peer] = (*transport)->port();
    return *std::move(transport);
  }
  static void Stop(Peer& p) {
    if (p.loop == nullptr) return;
    p.loop->PostAndWait([&p] { p.transport.reset(); }, kLimit);
    p.loop.reset();
  }

  const bool both_;
  const int lanes_;
  std::map<PeerId, int> ports_;
  std::map<PeerId, Peer> peers_;
};

}  // namespace

std::unique_ptr<Backend> MakeSimBackend() {
  return std::make_unique<SimBackend>();
}
std::unique_ptr<Backend> MakeGrpcBackend() {
  return std::make_unique<GrpcBackend>(false, 1);
}
std::unique_ptr<Backend> MakeGrpcBothDialBackend() {
  return std::make_unique<GrpcBackend>(true, 1);
}
std::unique_ptr<Backend> MakeGrpcLanesBackend() {
  return std::make_unique<GrpcBackend>(false, 3);
}

std::unique_ptr<Backend> MakeNcclBackend() {
  return std::make_unique<NcclBackend>(
      FakeNcclOptions{.making = absl::Milliseconds(1)});
}
std::unique_ptr<Backend> MakeNcclHangsBackend() {
  return std::make_unique<NcclBackend>(
      FakeNcclOptions{.making = absl::Milliseconds(1), .hang = 0.05});
}
std::unique_ptr<Backend> MakeNcclFailsBackend() {
  return std::make_unique<NcclBackend>(
      FakeNcclOptions{.making = absl::Milliseconds(1), .error = 0.05});
}
std::unique_ptr<Backend> MakeNcclSlowBackend() {
  return std::make_unique<NcclBackend>(
      FakeNcclOptions{.making = absl::Milliseconds(1), .slow = 0.3});
}

}  // namespace gossamer
