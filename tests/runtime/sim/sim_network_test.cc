// Each fault of the simulated network does what it says, and a seed repeats its
// run.

#include "runtime/sim/sim_network.h"

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/sim/virtual_loop.h"
#include "tests/simulation/fault_plan.h"

namespace gossamer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr PeerId kA{1};
constexpr PeerId kB{2};

Frame Number(int n, size_t padding = 0) {
  std::vector<std::byte> body(padding);
  return {SharedBytes::FromVector({static_cast<std::byte>(n)}),
          SharedBytes::FromVector(std::move(body))};
}

// A numbered frame, and the time of its arrival.
struct Arrival {
  int number;
  absl::Time at;
};

// An end that counts connections and records the arrival of frames.
class Peer : public TransportListener {
 public:
  Peer(SimNetwork* network, VirtualLoop* shared, PeerId id)
      : loop(shared), id_(id), network_(network) {
    Start();
  }
  void Start() {
    transport = network_->CreateEndpoint(id_, &loop);
    transport->SetListener(this);
  }
  void OnUp(PeerId peer, ConnectionId c) override { ups.push_back(c); }
  void OnFrame(PeerId peer, ConnectionId c, Channel channel,
               Frame frame) override {
    if (frame.head.empty()) return;
    arrivals.push_back({static_cast<int>(frame.head.bytes()[0]), loop.Now()});
  }
  void OnDown(PeerId peer, ConnectionId c, const absl::Status& why) override {
    downs.push_back(c);
    down_at = loop.Now();
  }
  std::vector<int> numbers() const {
    std::vector<int> n;
    for (const Arrival& a : arrivals) n.push_back(a.number);
    return n;
  }

  VirtualPeerLoop loop;
  std::vector<ConnectionId> ups;
  std::vector<ConnectionId> downs;
  std::vector<Arrival> arrivals;
  absl::Time down_at;
  std::unique_ptr<Transport> transport;

 private:
  PeerId id_;
  SimNetwork* network_;
};

class SimNetworkTest : public ::testing::Test {
 protected:
  void Build(SimOptions options) {
    Create(options);
    loop_.RunFor(absl::Seconds(1));
    ASSERT_THAT(a_->ups, SizeIs(1));
    ASSERT_THAT(b_->ups, SizeIs(1));
  }
  void Create(SimOptions options) {
    a_.reset();
    b_.reset();
    network_ = std::make_unique<SimNetwork>(&loop_, options);
    a_ = std::make_unique<Peer>(network_.get(), &loop_, kA);
    b_ = std::make_unique<Peer>(network_.get(), &loop_, kB);
    Introduce();
  }
  void Introduce() {
    a_->transport->Connect(kB, "");
    b_->transport->Connect(kA, "");
  }
  void Send(int from, int to) {
    for (int i = from; i < to; ++i) {
      ASSERT_TRUE(a_->transport->Send(kB, Channel::kEdge, Number(i)));
    }
  }

  VirtualLoop loop_;
  std::unique_ptr<SimNetwork> network_;
  std::unique_ptr<Peer> a_;
  std::unique_ptr<Peer> b_;
};

// The smaller id dials.
TEST_F(SimNetworkTest, APeerThatMovedIsFoundAtItsNewAddressOnly) {
  network_ = std::make_unique<SimNetwork>(&loop_, SimOptions{});
  a_ = std::make_unique<Peer>(network_.get(), &loop_, kA);
  b_ = std::make_unique<Peer>(network_.get(), &loop_, kB);
  b_->transport.reset();
  b_->transport = network_->CreateEndpoint(kB, &b_->loop, "new");
  b_->transport->SetListener(b_.get());
  a_->transport->Connect(kB, "old");
  b_->transport->Connect(kA, "");
  loop_.RunFor(absl::Seconds(1));
  EXPECT_THAT(a_->ups, SizeIs(0));
  a_->transport->Connect(kB, "new");
  loop_.RunFor(absl::Seconds(1));
  EXPECT_THAT(a_->ups, SizeIs(1));
  EXPECT_THAT(b_->ups, SizeIs(1));
}

// The older endpoint keeps what it has, and is found again once the newer one
// has gone.
TEST_F(SimNetworkTest, OfTwoEndpointsOfOnePeerTheNewerIsDialled) {
  Build({});
  Peer newer(network_.get(), &loop_, kB);
  newer.transport->Connect(kA, "");
  loop_.RunFor(absl::Seconds(1));
  EXPECT_THAT(newer.ups, IsEmpty()) << "a has a connection to b";
  Send(0, 1);
  network_->Break(kA, kB);
  loop_.RunFor(absl::Seconds(5));
  EXPECT_THAT(newer.ups, SizeIs(1));
  EXPECT_THAT(b_->ups, SizeIs(1));
  newer.transport.reset();
  loop_.RunFor(absl::Seconds(5));
  EXPECT_THAT(b_->ups, SizeIs(2));
  EXPECT_THAT(a_->ups, SizeIs(3));
  EXPECT_THAT(a_->downs, SizeIs(2));
}

TEST_F(SimNetworkTest, AFrameTakesLatencyAndTransmission) {
  Build({.link = {.latency = absl::Milliseconds(10),
                  .bytes_per_second = 1'000'000}});
  const absl::Time start = loop_.Now();
  a_->transport->Send(kB, Channel::kEdge, Number(1, 99'999));
  a_->transport->Send(kB, Channel::kEdge, Number(2, 99'999));
  loop_.RunFor(absl::Seconds(1));
  ASSERT_THAT(b_->arrivals, SizeIs(2));
  EXPECT_EQ(b_->arrivals[0].at, start + absl::Milliseconds(110));
  EXPECT_EQ(b_->arrivals[1].at, start + absl::Milliseconds(210));
}

TEST_F(SimNetworkTest, JitterNeverReorders) {
  Build({.link = {.latency = absl::Milliseconds(10), .jitter = 5}});
  Send(0, 100);
  loop_.RunFor(absl::Seconds(1));
  const std::vector<int> numbers = b_->numbers();
  ASSERT_THAT(numbers, SizeIs(100));
  EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
}

TEST_F(SimNetworkTest, LinksAreDirected) {
  Build({});
  network_->SetLink(kA, kB, {.latency = absl::Milliseconds(50)});
  network_->SetLink(kB, kA, {.latency = absl::Milliseconds(5)});
  const absl::Time start = loop_.Now();
  a_->transport->Send(kB, Channel::kEdge, Number(1));
  b_->transport->Send(kA, Channel::kEdge, Number(2));
  loop_.RunFor(absl::Seconds(1));
  EXPECT_EQ(b_->arrivals.at(0).at, start + absl::Milliseconds(50));
  EXPECT_EQ(a_->arrivals.at(0).at, start + absl::Milliseconds(5));
}

TEST_F(SimNetworkTest, AnUplinkIsOneWireForAllLinks) {
  constexpr PeerId kC{3};
  Build({.link = {.latency = absl::ZeroDuration(), .bytes_per_second = 1e6}});
  Peer c(network_.get(), &loop_, kC);
  c.transport->Connect(kA, "");
  a_->transport->Connect(kC, "");
  loop_.RunFor(absl::Seconds(1));
  ASSERT_THAT(c.ups, SizeIs(1));
  network_->SetUplink(kA, static_cast<double>(Number(1).head.size()));
  const absl::Time start = loop_.Now();
  a_->transport->Send(kB, Channel::kEdge, Number(1));
  a_->transport->Send(kC, Channel::kEdge, Number(2));
  a_->transport->Send(kB, Channel::kEdge, Number(3));
  b_->transport->Send(kA, Channel::kEdge, Number(4));
  loop_.RunFor(absl::Seconds(5));
  // A frame a second leaves, for either peer; the other way has no limit.
  const auto after = [&](const Arrival& arrival) {
    return absl::ToDoubleSeconds(arrival.at - start);
  };
  EXPECT_NEAR(after(b_->arrivals.at(0)), 1, 0.1);
  EXPECT_NEAR(after(c.arrivals.at(0)), 2, 0.1);
  EXPECT_NEAR(after(b_->arrivals.at(1)), 3, 0.1);
  EXPECT_LT(after(a_->arrivals.at(0)), 0.01);
}

TEST_F(SimNetworkTest, ABrokenConnectionLosesOnlyASuffixAndComesBack) {
  bool lost_some = false;
  bool kept_some = false;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Build({.seed = seed});
    Send(0, 10);
    network_->Break(kA, kB);
    loop_.RunFor(absl::Seconds(1));
    const std::vector<int> numbers = b_->numbers();
    for (size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(numbers[i], static_cast<int>(i));
    }
    lost_some |= numbers.size() < 10;
    kept_some |= !numbers.empty();
    EXPECT_THAT(a_->ups, ElementsAre(1, 2));
    EXPECT_THAT(a_->downs, ElementsAre(1));
    EXPECT_THAT(b_->downs, ElementsAre(1));
    Send(50, 51);
    loop_.RunFor(absl::Seconds(1));
    EXPECT_EQ(b_->numbers().back(), 50);
  }
  EXPECT_TRUE(lost_some);
  EXPECT_TRUE(kept_some);
}

TEST_F(SimNetworkTest, APairStaysClosedAsLongAsAsked) {
  Build({});
  network_->Break(kA, kB, absl::Seconds(5));
  loop_.RunFor(absl::Seconds(4));
  EXPECT_THAT(a_->ups, SizeIs(1));
  EXPECT_FALSE(a_->transport->Send(kB, Channel::kEdge, Number(1)));
  loop_.RunFor(absl::Seconds(2));
  EXPECT_THAT(a_->ups, SizeIs(2));
}

TEST_F(SimNetworkTest, AStallHoldsOneDirection) {
  Build({});
  const absl::Time until = loop_.Now() + absl::Seconds(3);
  network_->Stall(kA, kB, until);
  Send(0, 3);
  b_->transport->Send(kA, Channel::kEdge, Number(9));
  loop_.RunFor(absl::Seconds(2));
  EXPECT_THAT(b_->arrivals, IsEmpty());
  EXPECT_THAT(a_->numbers(), ElementsAre(9));
  loop_.RunFor(absl::Seconds(2));
  EXPECT_THAT(b_->numbers(), ElementsAre(0, 1, 2));
  EXPECT_EQ(b_->arrivals[0].at, until);
}

TEST_F(SimNetworkTest, AFrozenPeerHearsEverythingWhenItThaws) {
  Build({});
  network_->Freeze(kB, loop_.Now() + absl::Seconds(3));
  Send(0, 3);
  loop_.RunFor(absl::Seconds(2));
  EXPECT_THAT(b_->arrivals, IsEmpty());
  loop_.RunFor(absl::Seconds(2));
  EXPECT_THAT(b_->numbers(), ElementsAre(0, 1, 2));
}

TEST_F(SimNetworkTest, APartitionIsSeenAfterTheKeepaliveAndHeals) {
  Build({.keepalive = absl::Seconds(2)});
  const absl::Time cut = loop_.Now();
  network_->Partition({kA});
  EXPECT_TRUE(a_->transport->Send(kB, Channel::kEdge, Number(1)));
  loop_.RunFor(absl::Seconds(10));
  EXPECT_THAT(b_->arrivals, IsEmpty());
  EXPECT_EQ(a_->down_at, cut + absl::Seconds(2));
  EXPECT_THAT(a_->ups, SizeIs(1));
  network_->Heal();
  loop_.RunFor(absl::Seconds(1));
  EXPECT_THAT(a_->ups, SizeIs(2));
  EXPECT_THAT(b_->ups, SizeIs(2));
}

TEST_F(SimNetworkTest, AOneWayPartitionSilencesOneSideUntilItIsNoticed) {
  Build({.keepalive = absl::Seconds(2)});
  const absl::Time cut = loop_.Now();
  network_->Partition({kA}, /*one_way=*/true);
  EXPECT_TRUE(a_->transport->Send(kB, Channel::kEdge, Number(1)));
  EXPECT_TRUE(b_->transport->Send(kA, Channel::kEdge, Number(2)));
  loop_.RunFor(absl::Seconds(1));
  EXPECT_THAT(b_->arrivals, IsEmpty());
  EXPECT_THAT(a_->numbers(), ElementsAre(2));
  loop_.RunFor(absl::Seconds(10));
  EXPECT_EQ(a_->down_at, cut + absl::Seconds(2));
  EXPECT_EQ(b_->down_at, cut + absl::Seconds(2));
  EXPECT_THAT(a_->ups, SizeIs(1)) << "a new one needs both ways";
  network_->Heal();
  loop_.RunFor(absl::Seconds(1));
  EXPECT_THAT(a_->ups, SizeIs(2));
}

TEST_F(SimNetworkTest, ACrashedPeerComesBackAsAnother) {
  Build({});
  Send(0, 3);
  b_->transport.reset();
  loop_.RunFor(absl::Seconds(1));
  EXPECT_THAT(a_->downs, ElementsAre(1));
  EXPECT_THAT(b_->arrivals, IsEmpty());
  EXPECT_FALSE(a_->transport->Send(kB, Channel::kEdge, Number(4)));
  b_->Start();
  b_->transport->Connect(kA, "");
  loop_.RunFor(absl::Seconds(1));
  EXPECT_THAT(a_->ups, ElementsAre(1, 2));
  Send(5, 6);
  loop_.RunFor(absl::Seconds(1));
  EXPECT_THAT(b_->numbers(), ElementsAre(5));
}

TEST_F(SimNetworkTest, ADoubleDialSendsOnTheNewestAndReadsBoth) {
  Create({.double_dial = 1});
  loop_.RunFor(absl::Seconds(1));
  EXPECT_THAT(a_->ups, ElementsAre(1, 2));
  Send(0, 3);
  a_->transport->Close(kB, 2, absl::DataLossError("test"));
  ASSERT_TRUE(a_->transport->Send(kB, Channel::kEdge, Number(7)));
  loop_.RunFor(absl::Seconds(1));
  EXPECT_EQ(b_->numbers().back(), 7);
  EXPECT_THAT(b_->downs, ElementsAre(2));
}

TEST_F(SimNetworkTest, ChaosLosesDuplicatesReordersAndCorruptsFrames) {
  const auto run = [&](SimChaos chaos) {
    Build({});
    network_->SetChaos(chaos);
    Send(0, 100);
    loop_.RunFor(absl::Seconds(1));
    return b_->numbers();
  };
  EXPECT_THAT(run({}), SizeIs(100));
  EXPECT_LT(run({.lose = 0.3}).size(), 100u);
  EXPECT_GT(run({.duplicate = 0.3}).size(), 100u);
  const std::vector<int> reordered = run({.reorder = 0.3});
  EXPECT_THAT(reordered, SizeIs(100));
  EXPECT_FALSE(std::is_sorted(reordered.begin(), reordered.end()));
  const std::vector<int> corrupted = run({.corrupt = 0.3});
  EXPECT_THAT(corrupted, SizeIs(100));
  EXPECT_FALSE(std::is_sorted(corrupted.begin(), corrupted.end()));
}

TEST_F(SimNetworkTest, TheSameSeedGivesTheSameRun) {
  const auto run = [&](uint64_t seed) {
    Build({.seed = seed, .link = {.jitter = 0.5}, .double_dial = 0.2});
    simulation::FaultInjector faults(&loop_, network_.get(), {.seed = seed});
    std::vector<std::tuple<int, absl::Duration>> log;
    const absl::Time start = loop_.Now();
    for (int i = 0; i < 500; ++i) {
      a_->transport->Send(kB, Channel::kEdge, Number(i % 256));
      loop_.RunFor(absl::Milliseconds(100));
    }
    for (const Arrival& x : b_->arrivals) {
      log.emplace_back(x.number, x.at - start);
    }
    EXPECT_GT(faults.breaks(), 5u);
    EXPECT_GT(faults.stalls(), 3u);
    EXPECT_GT(faults.freezes(), 0u);
    EXPECT_GT(log.size(), 100u);
    return log;
  };
  const auto first = run(3);
  EXPECT_EQ(first, run(3));
  EXPECT_NE(first, run(4));
}

}  // namespace
}  // namespace gossamer
