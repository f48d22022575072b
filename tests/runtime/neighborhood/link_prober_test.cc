// A prober measures simulated links, whose numbers are known, and asks others
// about a silent peer.

#include "runtime/neighborhood/link_prober.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "runtime/sim/sim_network.h"

namespace gossamer {
namespace link_prober_test {

// Peers that only measure and ask.
class LinkProberTest : public ::testing::Test {
 protected:
  struct End final : TransportListener {
    End(VirtualLoop* shared, SimNetwork& network, PeerId self)
        : loop(shared),
          transport(network.CreateEndpoint(self, &loop)),
          prober(&loop, [this](PeerId to, Frame frame) {
            sent = frame;
            return transport->Send(to, Channel::kState, std::move(frame));
          }) {
      transport->SetListener(this);
    }
    void OnUp(PeerId, ConnectionId) override {}
    void OnDown(PeerId, ConnectionId, const absl::Status&) override {}
    void OnFrame(PeerId peer, ConnectionId, Channel, Frame frame) override {
      prober.OnFrame(peer, frame);
    }
    VirtualPeerLoop loop;
    std::unique_ptr<Transport> transport;
    Frame sent;  // the last frame
    LinkProber prober;
  };

  void Connect() {
    a_.transport->Connect(kB, "");
    b_.transport->Connect(kA, "");
  }
  // Returns a measurement of the link from a to b.
  std::optional<LinkMeasurement> Measure() {
    std::optional<LinkMeasurement> result;
    bool told = false;
    a_.prober.Measure(kB, [&](std::optional<LinkMeasurement> measured) {
      EXPECT_FALSE(told);
      told = true;
      result = measured;
    });
    loop_.RunFor(LinkProber::kLimit + absl::Seconds(1));
    EXPECT_TRUE(told);
    return result;
  }

  // Has b ping c.  Returns how often a has heard from b that c answers.
  int PingThroughB() {
    a_.prober.RequestPing(kB, kC);
    loop_.RunFor(LinkProber::kPingRequestTimeout);
    return told_;
  }

  const PeerId kA{1}, kB{2}, kC{3};
  VirtualLoop loop_;
  SimNetwork network_{&loop_, {}};
  End a_{&loop_, network_, kA};
  End b_{&loop_, network_, kB};
  End c_{&loop_, network_, kC};
  int told_ = 0;
};

TEST_F(LinkProberTest, SaysWhatTheLinkIs) {
  network_.SetLink(
      kA, kB, {.latency = absl::Milliseconds(70), .bytes_per_second = 12.5e6});
  network_.SetLink(
      kB, kA, {.latency = absl::Milliseconds(30), .bytes_per_second = 1e9});
  Connect();
  const auto measured = Measure();
  ASSERT_TRUE(measured);
  EXPECT_NEAR(measured->rtt_seconds, 0.1, 0.001);
  EXPECT_NEAR(measured->bytes_per_second, 12.5e6, 0.05 * 12.5e6);
}

TEST_F(LinkProberTest, WaitsForAConnectionAndOutlivesItsLoss) {
  network_.SetLink(kA, kB, {.latency = absl::Milliseconds(50)});
  loop_.RunFor(absl::Milliseconds(10));
  a_.loop.RunAt(a_.loop.Now() + absl::Seconds(3), [this] { Connect(); });
  a_.loop.RunAt(a_.loop.Now() + absl::Milliseconds(3300),
                [this] { network_.Break(kA, kB, absl::Seconds(2)); });
  const auto measured = Measure();
  ASSERT_TRUE(measured);
  EXPECT_NEAR(measured->rtt_seconds, 0.051, 0.002);
}

TEST_F(LinkProberTest, SilenceIsNoMeasurement) { EXPECT_FALSE(Measure()); }

TEST_F(LinkProberTest, PingsThroughAThirdPeer) {
  a_.prober.SetOnIndirectAck([&](PeerId target) {
    EXPECT_EQ(target, kC);
    ++told_;
  });
  Connect();
  loop_.RunFor(absl::Seconds(1));
  EXPECT_EQ(PingThroughB(), 0) << "b has no connection with c";
  b_.transport->Connect(kC, "");
  c_.transport->Connect(kB, "");
  loop_.RunFor(absl::Seconds(1));
  EXPECT_EQ(PingThroughB(), 1);
  // An answer to no request is ignored, whether or not it is true.
  b_.transport->Send(kA, Channel::kState, b_.sent);
  loop_.RunFor(absl::Seconds(1));
  EXPECT_EQ(told_, 1);
  network_.Freeze(kC, absl::InfiniteFuture());
  EXPECT_EQ(PingThroughB(), 1);
}

TEST_F(LinkProberTest, RelaysABoundedNumberOfPingRequests) {
  Connect();
  b_.transport->Connect(kC, "");
  c_.transport->Connect(kB, "");
  loop_.RunFor(absl::Seconds(1));
  a_.prober.RequestPing(kB, kC);
  loop_.RunFor(absl::Seconds(1));
  const Frame asked = a_.sent;
  const Frame pong = c_.sent;
  // One ping serves all askers; beyond the limit the last ones get no answer.
  int pings = 0, told = 0;
  LinkProber proxy(&b_.loop, [&](PeerId to, const Frame&) {
    ++(to == kC ? pings : told);
    return true;
  });
  for (uint64_t asker = 10; asker < 10 + 2 * LinkProber::kMaxPingRequests;
       ++asker) {
    proxy.OnFrame({asker}, asked);
  }
  EXPECT_EQ(pings, 1);
  proxy.OnFrame(kC, pong);
  EXPECT_EQ(told, LinkProber::kMaxPingRequests);
  // A ping without an answer in time is forgotten.
  proxy.OnFrame({10}, asked);
  EXPECT_EQ(pings, 2);
  loop_.RunFor(LinkProber::kPingRequestTimeout + absl::Seconds(1));
  proxy.OnFrame(kC, pong);
  EXPECT_EQ(told, LinkProber::kMaxPingRequests);
}

TEST_F(LinkProberTest, AsksForTheRoundOfThoseWhoTrainByAView) {
  Connect();
  loop_.RunFor(absl::Seconds(1));
  std::vector<uint64_t> heard;
  a_.prober.SetOnRound([&](PeerId peer, uint64_t round) {
    EXPECT_EQ(peer, kB);
    heard.push_back(round);
  });
  const auto ask = [&](uint64_t epoch) {
    a_.prober.AskRound(kB, /*generation=*/7, epoch);
    loop_.RunFor(absl::Seconds(1));
  };
  ask(3);
  EXPECT_TRUE(heard.empty()) << "b does not train";
  b_.prober.SetRoundOf(
      [&](PeerId asker, uint64_t generation, uint64_t epoch) -> uint64_t {
        EXPECT_EQ(asker, kA);
        return generation == 7 && epoch == 3 ? 90 : 0;
      });
  ask(2);
  EXPECT_TRUE(heard.empty()) << "b trains by another view";
  ask(3);
  EXPECT_EQ(heard, std::vector<uint64_t>{90});
  // A round that nobody asked for is not believed.
  const Frame told = b_.sent;
  c_.transport->Connect(kA, "");
  a_.transport->Connect(kC, "");
  loop_.RunFor(absl::Seconds(1));
  c_.transport->Send(kA, Channel::kState, told);
  loop_.RunFor(absl::Seconds(1));
  EXPECT_EQ(heard.size(), 1u);
}

TEST_F(LinkProberTest, DropsWhatIsNoProbe) {
  Connect();
  loop_.RunFor(absl::Seconds(1));
  for (size_t size : {0u, 1u, 35u, 36u, 37u}) {
    a_.transport->Send(
        kB, Channel::kState,
        {.head = SharedBytes::FromVector(std::vector<std::byte>(size)),
         .body = {}});
  }
  loop_.RunFor(absl::Seconds(1));
  EXPECT_TRUE(Measure());
}

}  // namespace link_prober_test
}  // namespace gossamer
