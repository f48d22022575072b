// The contract of runtime/transport/transport.h, on every transport.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "algorithms/base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/transport/backend.h"

namespace gossamer {
namespace conformance_test {

using ::testing::ElementsAre;
using ::testing::SizeIs;
using Seen = Recorder::Seen;

constexpr PeerId kA{1};
constexpr PeerId kB{2};

SharedBytes Bytes(size_t n, uint64_t seed) {
  std::vector<std::byte> bytes(n);
  const RngKey key(seed);
  for (size_t i = 0; i < n; i += 8) {
    const uint64_t bits = key.Bits(i / 8);
    for (size_t j = i; j < std::min(n, i + 8); ++j) {
      bytes[j] = static_cast<std::byte>(bits >> 8 * (j - i));
    }
  }
  return SharedBytes::FromVector(std::move(bytes));
}

bool Same(const SharedBytes& a, const SharedBytes& b) {
  return std::ranges::equal(a.bytes(), b.bytes());
}

// Returns a frame that carries a number.
Frame Number(uint32_t n) { return {Bytes(4, n), SharedBytes()}; }

struct Parameter {
  std::string name;
  std::unique_ptr<Backend> (*make)();
};

class ConformanceTest : public ::testing::TestWithParam<Parameter> {
 protected:
  void SetUp() override {
    backend_ = GetParam().make();
    backend_->Start(kA);
    backend_->Start(kB);
  }
  void Introduce() {
    Connect(kA, kB);
    Connect(kB, kA);
  }
  void Connect(PeerId from, PeerId to) {
    const std::string address = backend_->address(to);
    backend_->On(from, [&](Transport& t) { t.Connect(to, address); });
  }
  // Waits until both ends see a connection, and only living ones.
  void AwaitUp() {
    for (PeerId peer : {kA, kB}) {
      ASSERT_TRUE(
          backend_->Await(peer, [](const Seen& s) { return !s.open.empty(); }));
    }
  }
  bool Send(PeerId from, PeerId to, Frame frame,
            Channel channel = Channel::kEdge) {
    bool sent = false;
    backend_->On(from, [&](Transport& t) {
      sent = t.Send(to, channel, std::move(frame));
    });
    return sent;
  }
  // Sends until the connection works in both directions, then waits for `n`
  // frames.
  void AwaitFrames(PeerId peer, size_t n) {
    ASSERT_TRUE(backend_->Await(
        peer, [n](const Seen& s) { return s.frames.size() >= n; }))
        << backend_->recorder(peer).With(
               [](const Seen& s) { return s.frames.size(); })
        << " of " << n << " frames came";
  }
  std::vector<Received> Frames(PeerId peer) {
    return backend_->recorder(peer).With(
        [](const Seen& s) { return s.frames; });
  }

  std::unique_ptr<Backend> backend_;
};

TEST_P(ConformanceTest, BothEndsGoUpOnceBothWantTo) {
  Introduce();
  AwaitUp();
  EXPECT_TRUE(Send(kA, kB, Number(1)));
  EXPECT_TRUE(Send(kB, kA, Number(2)));
  AwaitFrames(kB, 1);
  AwaitFrames(kA, 1);
  EXPECT_TRUE(Same(Frames(kB)[0].frame.head, Number(1).head));
  EXPECT_TRUE(Same(Frames(kA)[0].frame.head, Number(2).head));
}

TEST_P(ConformanceTest, SendWithoutAConnectionKeepsNothing) {
  EXPECT_FALSE(Send(kA, kB, Number(1)));
  Introduce();
  AwaitUp();
  EXPECT_TRUE(Send(kA, kB, Number(2)));
  AwaitFrames(kB, 1);
  EXPECT_TRUE(Same(Frames(kB)[0].frame.head, Number(2).head));
}

TEST_P(ConformanceTest, ConnectIsIdempotent) {
  Introduce();
  Introduce();
  AwaitUp();
  Introduce();
  EXPECT_TRUE(Send(kA, kB, Number(1)));
  AwaitFrames(kB, 1);
  EXPECT_TRUE(backend_->recorder(kA).With(
      [](const Seen& s) { return s.downs.empty(); }));
}

TEST_P(ConformanceTest, HeadAndBodyOfEverySizeArriveIntact) {
  Introduce();
  AwaitUp();
  const std::vector<size_t> heads = {0, 1, 64, kMaxHeadBytes};
  const std::vector<size_t> bodies = {
      0, 1, 1000, 65'536, 524'287, 524'288, 524'289, 1'048'577, 16 << 20};
  std::vector<Frame> sent;
  for (size_t body : bodies) {
    for (size_t head : heads) {
      sent.push_back({Bytes(head, head + 1), Bytes(body, body + 2)});
    }
  }
  for (const Frame& frame : sent) ASSERT_TRUE(Send(kA, kB, frame));
  AwaitFrames(kB, sent.size());
  const std::vector<Received> received = Frames(kB);
  ASSERT_THAT(received, SizeIs(sent.size()));
  for (size_t i = 0; i < sent.size(); ++i) {
    EXPECT_TRUE(Same(received[i].frame.head, sent[i].head)) << i;
    EXPECT_TRUE(Same(received[i].frame.body, sent[i].body)) << i;
  }
}

TEST_P(ConformanceTest, FramesOverTheLimitAreNotTaken) {
  Introduce();
  AwaitUp();
  EXPECT_FALSE(Send(kA, kB, {Bytes(kMaxHeadBytes + 1, 1), SharedBytes()}));
  EXPECT_TRUE(Send(kA, kB, Number(2)));
  AwaitFrames(kB, 1);
  EXPECT_THAT(Frames(kB), SizeIs(1));
}

TEST_P(ConformanceTest, OrderIsKeptAcrossChannelsAndSizes) {
  Introduce();
  AwaitUp();
  constexpr uint32_t kFrames = 500;
  backend_->On(kA, [&](Transport& t) {
    for (uint32_t i = 0; i < kFrames; ++i) {
      const size_t body = i % 50 == 0 ? 600'000 : i % 7 * 100;
      ASSERT_TRUE(t.Send(kB, static_cast<Channel>(i % 3),
                         {Bytes(4, i), Bytes(body, i)}));
    }
  });
  AwaitFrames(kB, kFrames);
  const std::vector<Received> received = Frames(kB);
  for (uint32_t i = 0; i < kFrames; ++i) {
    ASSERT_TRUE(Same(received[i].frame.head, Bytes(4, i))) << i;
    ASSERT_EQ(received[i].channel, static_cast<Channel>(i % 3));
  }
}

TEST_P(ConformanceTest, LargeBurstsBothWaysDoNotDeadlock) {
  Introduce();
  AwaitUp();
  const Frame big{Bytes(16, 1), Bytes(4 << 20, 2)};
  constexpr size_t kFrames = 24;
  for (PeerId from : {kA, kB}) {
    const PeerId to = from == kA ? kB : kA;
    backend_->On(from, [&](Transport& t) {
      for (size_t i = 0; i < kFrames; ++i) {
        ASSERT_TRUE(t.Send(to, Channel::kEdge, big));
      }
    });
  }
  AwaitFrames(kA, kFrames);
  AwaitFrames(kB, kFrames);
  EXPECT_TRUE(Same(Frames(kA).back().frame.body, big.body));
  EXPECT_TRUE(Same(Frames(kB).back().frame.body, big.body));
}

TEST_P(ConformanceTest, CloseEndsOneConnectionAndAnotherOpens) {
  for (PeerId closer : {kA, kB}) {
    SetUp();
    const PeerId other = closer == kA ? kB : kA;
    Introduce();
    AwaitUp();
    // The newest connection that the other end has heard something over.  If
    // both ends dial, one may know of a connection that the other never had.
    ConnectionId first = 0;
    backend_->On(closer, [&](Transport& t) {
      first = backend_->recorder(closer).With(
          [](const Seen& s) { return s.ups.back(); });
      ASSERT_TRUE(t.Send(other, Channel::kEdge, Number(4)));
    });
    AwaitFrames(other, 1);
    backend_->On(closer, [&](Transport& t) {
      t.Close(other, first, absl::DataLossError("test"));
      t.Close(other, first, absl::DataLossError("twice does no harm"));
      t.Close(other, first + 1000, absl::DataLossError("unknown"));
    });
    for (PeerId peer : {kA, kB}) {
      ASSERT_TRUE(backend_->Await(peer, [](const Seen& s) {
        return !s.downs.empty() && !s.open.empty() && s.ups.size() >= 2;
      }));
    }
    const size_t before = Frames(kB).size();
    ASSERT_TRUE(Send(kA, kB, Number(5)));
    AwaitFrames(kB, before + 1);
    EXPECT_EQ(backend_->recorder(closer).With([&](const Seen& s) {
      return std::ranges::count(s.downs, first);
    }),
              1);
  }
}

TEST_P(ConformanceTest, NoFrameOfAClosedConnectionArrives) {
  Introduce();
  AwaitUp();
  backend_->On(kA, [&](Transport& t) {
    for (uint32_t i = 0; i < 100; ++i) t.Send(kB, Channel::kEdge, Number(i));
  });
  backend_->On(kB, [&](Transport& t) {
    const std::vector<ConnectionId> open =
        backend_->recorder(kB).With([](const Seen& s) {
          return std::vector<ConnectionId>(s.open.begin(), s.open.end());
        });
    for (ConnectionId id : open) t.Close(kA, id, absl::DataLossError("test"));
  });
  ASSERT_TRUE(backend_->Await(
      kB, [](const Seen& s) { return s.ups.size() >= 2 && !s.open.empty(); }));
  // The recorder fails on frames after a down; the received ones are a prefix.
  const std::vector<Received> received = Frames(kB);
  for (uint32_t i = 0; i < received.size(); ++i) {
    EXPECT_TRUE(Same(received[i].frame.head, Number(i).head));
  }
}

TEST_P(ConformanceTest, DisconnectIsForGood) {
  Introduce();
  AwaitUp();
  backend_->On(kB, [&](Transport& t) { t.Disconnect(kA); });
  ASSERT_TRUE(
      backend_->Await(kA, [](const Seen& s) { return s.open.empty(); }));
  ASSERT_TRUE(
      backend_->Await(kB, [](const Seen& s) { return s.open.empty(); }));
  EXPECT_FALSE(Send(kB, kA, Number(1)));
  const size_t ups =
      backend_->recorder(kB).With([](const Seen& s) { return s.ups.size(); });
  Connect(kB, kA);  // until it is wanted again
  ASSERT_TRUE(
      backend_->Await(kB, [&](const Seen& s) { return s.ups.size() > ups; }));
}

TEST_P(ConformanceTest, DisconnectBeforeItIsUpDoesNoHarm) {
  Connect(kA, kB);
  backend_->On(kA, [&](Transport& t) {
    t.Disconnect(kB);
    t.Disconnect(PeerId{77});
  });
  Introduce();
  AwaitUp();
  EXPECT_TRUE(Send(kA, kB, Number(1)));
  AwaitFrames(kB, 1);
}

TEST_P(ConformanceTest, APeerThatDiesAndComesBackIsFoundAgain) {
  Introduce();
  AwaitUp();
  for (int death = 0; death < 2; ++death) {
    const size_t downs = backend_->recorder(kA).With(
        [](const Seen& s) { return s.downs.size(); });
    backend_->Kill(kB);
    ASSERT_TRUE(backend_->Await(kA, [&](const Seen& s) {
      return s.downs.size() > downs && s.open.empty();
    }));
    EXPECT_FALSE(Send(kA, kB, Number(1)));
    backend_->Start(kB);
    Connect(kB, kA);
    Connect(kA, kB);
    AwaitUp();
    ASSERT_TRUE(Send(kA, kB, Number(2)));
    AwaitFrames(kB, 1);
  }
}

TEST_P(ConformanceTest, TheSmallerEndMayDieToo) {
  Introduce();
  AwaitUp();
  backend_->Kill(kA);
  ASSERT_TRUE(
      backend_->Await(kB, [](const Seen& s) { return s.open.empty(); }));
  backend_->Start(kA);
  Connect(kA, kB);
  AwaitUp();
  ASSERT_TRUE(Send(kB, kA, Number(2)));
  AwaitFrames(kA, 1);
}

TEST_P(ConformanceTest, CountsBytes) {
  Introduce();
  AwaitUp();
  ASSERT_TRUE(Send(kA, kB, {Bytes(10, 1), Bytes(1000, 2)}));
  ASSERT_TRUE(Send(kA, kB, {Bytes(0, 1), Bytes(500'000, 2)}));
  AwaitFrames(kB, 2);
  backend_->On(kA, [](Transport& t) {
    EXPECT_EQ(t.counters().bytes_sent, 501'010u);
    EXPECT_EQ(t.counters().bytes_received, 0u);
  });
  backend_->On(kB, [](Transport& t) {
    EXPECT_EQ(t.counters().bytes_received, 501'010u);
  });
}

TEST_P(ConformanceTest, ManyPeersTalkToOne) {
  constexpr int kPeers = 6;
  std::vector<PeerId> others = {kB};
  for (uint64_t i = 3; i < 2 + kPeers; ++i) {
    others.push_back(PeerId{i});
    backend_->Start(others.back());
  }
  for (PeerId peer : others) {
    Connect(peer, kA);
    Connect(kA, peer);
  }
  for (PeerId peer : others) {
    ASSERT_TRUE(
        backend_->Await(peer, [](const Seen& s) { return !s.open.empty(); }));
    ASSERT_TRUE(Send(peer, kA, {Bytes(8, peer.value), Bytes(100'000, 1)}));
  }
  AwaitFrames(kA, others.size());
}

TEST_P(ConformanceTest, DestructionInTheMiddleOfABurst) {
  Introduce();
  AwaitUp();
  const Frame big{SharedBytes(), Bytes(4 << 20, 2)};
  for (PeerId from : {kA, kB}) {
    backend_->On(from, [&](Transport& t) {
      for (int i = 0; i < 8; ++i) {
        t.Send(from == kA ? kB : kA, Channel::kState, big);
      }
    });
  }
  backend_->Kill(kA);
  ASSERT_TRUE(
      backend_->Await(kB, [](const Seen& s) { return s.open.empty(); }));
}

INSTANTIATE_TEST_SUITE_P(
    Transports, ConformanceTest,
    ::testing::Values(Parameter{"sim", MakeSimBackend},
                      Parameter{"grpc", MakeGrpcBackend},
                      Parameter{"grpc_both_dial", MakeGrpcBothDialBackend},
                      Parameter{"grpc_lanes", MakeGrpcLanesBackend},
                      Parameter{"nccl", MakeNcclBackend},
                      Parameter{"nccl_hangs", MakeNcclHangsBackend},
                      Parameter{"nccl_fails", MakeNcclFailsBackend},
                      Parameter{"nccl_slow", MakeNcclSlowBackend}),
    [](const auto& info) { return info.param.name; });

}  // namespace conformance_test
}  // namespace gossamer
