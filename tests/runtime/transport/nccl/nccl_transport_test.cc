// Bodies by NCCL: that they use it, in which order, and what becomes of them
// when it hangs, fails or cannot be.

#include "runtime/transport/nccl/nccl_transport.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/sim/sim_network.h"
#include "runtime/sim/virtual_loop.h"
#include "tests/testing/fake_nccl.h"

namespace gossamer {
namespace nccl_transport_test {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr absl::Duration kDeadline = absl::Milliseconds(500);

// The body that `from` sends to `to` in a round.
SharedBytes BodyOf(uint64_t from, uint64_t to, uint64_t round, size_t bytes) {
  std::vector<std::byte> body(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    body[i] = static_cast<std::byte>(from * 31 + to * 17 + round * 7 + i);
  }
  return SharedBytes::FromVector(std::move(body));
}

// A fleet of transports on the simulated network, whose every peer sends every
// other one a body a round and keeps what comes.
class Fleet {
 public:
  struct Node : TransportListener {
    void OnUp(PeerId peer, ConnectionId) override { up.insert(peer); }
    void OnFrame(PeerId peer, ConnectionId, Channel, Frame frame) override {
      came[peer].push_back(std::move(frame));
      last = loop->Now();
    }
    void OnDown(PeerId peer, ConnectionId, const absl::Status&) override {
      up.erase(peer);
      ++downs;
    }
    size_t Count(const std::string& kind) const {
      return static_cast<size_t>(
          std::ranges::count(events, kind, [](auto& e) { return e.first; }));
    }
    std::unique_ptr<VirtualPeerLoop> loop;
    std::unique_ptr<FakeNccl::Rank> rank;
    std::unique_ptr<NcclTransport> transport;
    std::set<PeerId> up;
    std::map<PeerId, std::vector<Frame>> came;
    std::vector<std::pair<std::string, std::string>> events;
    absl::Time last;
    int downs = 0;
  };

  Fleet(int peers, FakeNcclOptions faults,
        std::map<uint64_t, NcclPlace> places = {})
      : network_(&loop_, SimOptions{}),
        nccl_(&loop_, faults, [](const auto& circle) {
          ADD_FAILURE() << circle.size() << " ranks wait in a circle";
        }) {
    view_.epoch = 1;
    view_.schedule.graph = "complete";
    for (uint64_t id = 1; id <= static_cast<uint64_t>(peers); ++id) {
      places.try_emplace(id, NcclPlace{"host", absl::StrCat("gpu", id), 22809});
      view_.members.push_back(
          {.id = {id}, .address = "sim", .device = places.at(id).Text()});
      Node& node = nodes_[{id}];
      node.loop = std::make_unique<VirtualPeerLoop>(&loop_);
      node.rank = nccl_.NewRank(places.at(id).gpu, places.at(id).version);
      NcclOptions options{.self = {id},
                          .deadline = kDeadline,
                          .poll = absl::Microseconds(100),
                          .min_bytes = 1};
      options.report = [&node](EventKind kind, const std::string& detail) {
        node.events.emplace_back(kind.name(), detail);
      };
      node.transport = std::make_unique<NcclTransport>(
          network_.CreateEndpoint({id}, node.loop.get()), node.loop.get(),
          node.rank.get(), node.rank.get(), std::move(options));
      node.transport->SetListener(&node);
    }
    Prepare();
    for (auto& [a, node] : nodes_) {
      for (auto& [b, other] : nodes_) {
        if (a != b) node.transport->Connect(b, "sim");
      }
    }
    loop_.RunFor(absl::Seconds(1));
  }
  ~Fleet() {
    for (auto& [id, node] : nodes_) node.transport.reset();
  }

  void Prepare() {
    for (auto& [id, node] : nodes_) node.transport->Prepare(view_);
  }
  void NextView(uint64_t from_round) {
    ++view_.epoch;
    view_.from_round = from_round;
    Prepare();
  }
  // Each peer learns of it after its own delay.
  template <typename Delay>
  void NextViewApart(uint64_t from_round, Delay delay) {
    ++view_.epoch;
    view_.from_round = from_round;
    for (auto& [id, node] : nodes_) {
      loop_.RunAt(loop_.Now() + delay(id.value),
                  [this, &node] { node.transport->Prepare(view_); });
    }
  }
  void Send(PeerId from, PeerId to, uint64_t round, size_t bytes = 1000) {
    EXPECT_TRUE(nodes_.at(from).transport->Send(
        to, Channel::kEdge,
        {.head = SharedBytes(),
         .body = BodyOf(from.value, to.value, round, bytes),
         .exchange = MakeExchangeId(round)}));
  }
  // All send to all.  The order in which a peer names the others is its own.
  void Round(uint64_t round) {
    for (auto& [a, node] : nodes_) {
      std::vector<PeerId> others;
      for (auto& [b, other] : nodes_) {
        if (a != b) others.push_back(b);
      }
      if (a.value % 2 == 0) std::ranges::reverse(others);
      for (const PeerId b : others) Send(a, b, round);
    }
  }
  // Every peer has the bodies of rounds 1 to `rounds` of every other, once.
  void ExpectAll(uint64_t rounds) {
    for (auto& [a, node] : nodes_) {
      for (auto& [b, other] : nodes_) {
        if (a == b) continue;
        const std::vector<Frame>& came = node.came[b];
        ASSERT_EQ(came.size(), rounds) << b.value << " to " << a.value;
        for (uint64_t round = 1; round <= rounds; ++round) {
          EXPECT_TRUE(std::ranges::equal(
              came[round - 1].body.bytes(),
              BodyOf(b.value, a.value, round, 1000).bytes()));
        }
      }
    }
  }
  Node& node(uint64_t id) { return nodes_.at({id}); }
  NcclCounters Sum() const {
    NcclCounters sum;
    for (const auto& [id, node] : nodes_) {
      const NcclCounters& c = node.transport->nccl_counters();
      sum.bodies += c.bodies;
      sum.declined += c.declined;
      sum.fallbacks += c.fallbacks;
      sum.broken += c.broken;
    }
    return sum;
  }
  VirtualLoop& loop() { return loop_; }
  SimNetwork& network() { return network_; }
  FakeNccl& nccl() { return nccl_; }

 private:
  VirtualLoop loop_;
  SimNetwork network_;
  FakeNccl nccl_;
  View view_;
  std::map<PeerId, Node> nodes_;
};

TEST(NcclTransportTest, BodiesOfARoundGoByNcclAllOfThem) {
  Fleet fleet(5, {});
  for (uint64_t round = 1; round <= 20; ++round) {
    fleet.Round(round);
    fleet.loop().RunFor(absl::Milliseconds(20));
  }
  fleet.ExpectAll(20);
  EXPECT_EQ(fleet.Sum().bodies, 20u * 5 * 4);
  EXPECT_EQ(fleet.Sum().declined, 0u);
  EXPECT_EQ(fleet.node(1).Count("nccl_ready"), 1u);
  EXPECT_EQ(fleet.node(1).downs, 0);
}

// Peers are rounds apart and send in bursts: the order holds.
TEST(NcclTransportTest, PeersThatAreApartDoNotWaitInACircle) {
  Fleet fleet(6, {});
  const RngKey key(7);
  for (uint64_t round = 1; round <= 30; ++round) {
    for (uint64_t a = 1; a <= 6; ++a) {
      fleet.loop().RunFor(absl::Milliseconds(3) * key.Uniform(round * 6 + a));
      for (uint64_t b = 1; b <= 6; ++b) {
        if (a != b) fleet.Send({a}, {b}, round);
      }
    }
  }
  fleet.loop().RunFor(absl::Seconds(1));
  fleet.ExpectAll(30);
  EXPECT_EQ(fleet.Sum().broken, 0u);
  EXPECT_GT(fleet.Sum().bodies, 30u * 6 * 5 / 2);
}

TEST(NcclTransportTest, ABodyThatMeetsNoneGoesByTheOtherTransport) {
  Fleet fleet(2, {});
  fleet.Send({1}, {2}, 1);
  fleet.Send({2}, {1}, 2);
  fleet.loop().RunFor(absl::Milliseconds(200));
  EXPECT_EQ(fleet.node(1).came[{2}].size(), 1u);
  EXPECT_EQ(fleet.node(2).came[{1}].size(), 1u);
  EXPECT_EQ(fleet.Sum().bodies, 0u);
  EXPECT_EQ(fleet.Sum().broken, 0u);
}

// A skip says that no body comes: nobody waits for it.
TEST(NcclTransportTest, ASkipIsAnAnswer) {
  Fleet fleet(2, {});
  const absl::Time sent = fleet.loop().Now();
  fleet.Send({1}, {2}, 1);
  fleet.node(2).transport->Send({1}, Channel::kEdge,
                                {.head = BodyOf(2, 1, 1, 8),
                                 .body = SharedBytes(),
                                 .exchange = MakeExchangeId(2)});
  fleet.loop().RunFor(absl::Milliseconds(30));
  ASSERT_EQ(fleet.node(2).came[{1}].size(), 1u);
  EXPECT_LT(fleet.node(2).last - sent, absl::Milliseconds(10));
}

TEST(NcclTransportTest, AnOperationThatHangsCostsItsDeadline) {
  Fleet fleet(4, {.hang = 1});
  const absl::Time sent = fleet.loop().Now();
  fleet.Round(1);
  fleet.loop().RunFor(10 * kDeadline);
  fleet.ExpectAll(1);
  for (uint64_t id = 1; id <= 4; ++id) {
    // The rest is for the words between peers.
    EXPECT_LT(fleet.node(id).last - sent, kDeadline + absl::Milliseconds(50));
    EXPECT_EQ(fleet.node(id).Count("nccl_broken"), 1u);
    EXPECT_EQ(fleet.node(id).downs, 0);
  }
  EXPECT_THAT(fleet.node(1).events,
              Contains(Pair("nccl_broken", HasSubstr("peers 1, 2, 3, 4"))));
  // The next rounds do not wait for anything.
  const absl::Time again = fleet.loop().Now();
  fleet.Round(2);
  fleet.loop().RunFor(kDeadline);
  fleet.ExpectAll(2);
  EXPECT_LT(fleet.node(1).last - again, absl::Milliseconds(10));
}

TEST(NcclTransportTest, TheNextViewTriesAgain) {
  Fleet fleet(3, {.error = 1});
  fleet.Round(1);
  fleet.loop().RunFor(10 * kDeadline);
  fleet.ExpectAll(1);
  EXPECT_EQ(fleet.Sum().broken, 3u);
  fleet.nccl().Calm();
  fleet.NextView(/*from_round=*/4);
  fleet.loop().RunFor(absl::Seconds(1));
  EXPECT_EQ(fleet.node(2).Count("nccl_ready"), 2u);
  const uint64_t before = fleet.Sum().bodies;
  for (uint64_t round = 2; round <= 5; ++round) {
    fleet.Round(round);
    fleet.loop().RunFor(absl::Milliseconds(20));
  }
  fleet.ExpectAll(5);
  // Rounds 4 and 5 are of that view.
  EXPECT_EQ(fleet.Sum().bodies - before, 2u * 3 * 2);
}

// NCCL connects two members in their first operation.  Bodies travel by the
// carrier until that has ended, also those of the view before.
TEST(NcclTransportTest, NoBodyWaitsWhileMembersAreConnected) {
  Fleet fleet(5, {.connecting = 10 * kDeadline});
  EXPECT_EQ(fleet.node(1).Count("nccl_ready"), 0u);
  const auto round = [&fleet](uint64_t number) {
    const absl::Time sent = fleet.loop().Now();
    fleet.Round(number);
    fleet.loop().RunFor(absl::Milliseconds(20));
    for (uint64_t id = 1; id <= 5; ++id) {
      EXPECT_LT(fleet.node(id).last - sent, absl::Milliseconds(10));
    }
  };
  round(1);
  EXPECT_EQ(fleet.Sum().bodies, 0u);
  fleet.loop().RunFor(10 * kDeadline);
  EXPECT_EQ(fleet.node(1).Count("nccl_ready"), 1u);
  round(2);
  EXPECT_EQ(fleet.Sum().bodies, 5u * 4);
  fleet.NextView(/*from_round=*/10);
  fleet.loop().RunFor(absl::Seconds(1));
  round(3);
  EXPECT_EQ(fleet.Sum().bodies, 5u * 4);
  fleet.loop().RunFor(10 * kDeadline);
  round(4);
  EXPECT_EQ(fleet.Sum().bodies, 5u * 4 * 2);
  fleet.ExpectAll(4);
  EXPECT_EQ(fleet.Sum().broken, 0u);
}

// Some members are in the meeting while others have bodies under way.
TEST(NcclTransportTest, MembersMeetOnceTheirBodiesHaveCome) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Fleet fleet(6, {.seed = seed, .latency = absl::Milliseconds(10)});
    const RngKey key(seed);
    for (uint64_t number = 1; number <= 20; ++number) {
      fleet.Round(number);
      if (number % 5 == 0) {
        fleet.NextViewApart(number + 3, [&](uint64_t id) {
          return absl::Milliseconds(40) * key.Uniform(number * 10 + id);
        });
      }
      fleet.loop().RunFor(absl::Milliseconds(120));
    }
    fleet.loop().RunFor(absl::Seconds(1));
    fleet.ExpectAll(20);
    EXPECT_EQ(fleet.Sum().broken, 0u);
    EXPECT_GT(fleet.Sum().bodies, 20u * 6 * 5 / 4);
  }
}

TEST(NcclTransportTest, ACommunicatorThatIsNeverCompleteIsGivenUp) {
  for (const FakeNcclOptions& faults :
       {FakeNcclOptions{.making_hang = 1}, FakeNcclOptions{.making_error = 1},
        FakeNcclOptions{.connecting_hang = 1}}) {
    Fleet fleet(3, faults);
    fleet.Round(1);
    fleet.loop().RunFor(absl::Minutes(1));
    fleet.ExpectAll(1);
    EXPECT_EQ(fleet.node(3).Count("nccl_broken"), 1u);
    EXPECT_EQ(fleet.Sum().bodies, 0u);
  }
}

// Peers that the plan has not told apart, as by a wrong word about their GPU.
TEST(NcclTransportTest, TwoRanksOnOneDeviceAreRefusedByNccl) {
  VirtualLoop loop;
  FakeNccl nccl(&loop, {});
  const auto a = nccl.NewRank("gpu0"), b = nccl.NewRank("gpu0");
  NcclUniqueId id;
  a->GetUniqueId(&id);
  NcclCommunicator first(a.get(), a.get(), 2, 0, {1}, {});
  NcclCommunicator second(b.get(), b.get(), 2, 1, {0}, {});
  ASSERT_TRUE(first.Make(id).ok());
  ASSERT_TRUE(second.Make(id).ok());
  loop.RunFor(absl::Seconds(1));
  EXPECT_FALSE(first.PollMaking().ok());
  EXPECT_FALSE(second.PollMaking().ok());
}

TEST(NcclTransportTest, MembersThatCannotUseNcclAreNamedAndTrainOn) {
  Fleet fleet(4, {},
              {{2, {"host", "gpu1", 22809}}, {3, {"host", "gpu3", 22703}}});
  fleet.Round(1);
  fleet.loop().RunFor(absl::Seconds(1));
  fleet.ExpectAll(1);
  EXPECT_THAT(fleet.node(1).events,
              Contains(Pair("nccl_left_out",
                            HasSubstr("peer 2 is on the GPU of peer 1"))));
  EXPECT_THAT(fleet.node(1).events,
              Contains(Pair("nccl_left_out", HasSubstr("NCCL 2.27.3"))));
  EXPECT_EQ(fleet.node(4).Count("nccl_left_out"), 1u);
  // Peers 1 and 4 are left.
  EXPECT_EQ(fleet.Sum().bodies, 2u);
}

TEST(NcclTransportTest, ALostConnectionLosesWhatWasUnderWay) {
  Fleet fleet(3, {.latency = absl::Milliseconds(20)});
  fleet.Round(1);
  fleet.loop().RunFor(absl::Milliseconds(10));
  fleet.network().Break({1}, {2});
  fleet.loop().RunFor(absl::Seconds(2));
  EXPECT_THAT(fleet.node(1).came[{2}], IsEmpty());
  EXPECT_EQ(fleet.node(1).came[{3}].size(), 1u);
  EXPECT_EQ(fleet.Sum().broken, 0u) << "both ends had agreed";
  fleet.Round(2);
  fleet.loop().RunFor(absl::Seconds(2));
  EXPECT_EQ(fleet.node(1).came[{2}].size(), 1u);
}

// An end that dies leaves the other one's operation hanging.
TEST(NcclTransportTest, ADeadMemberDoesNotHoldUpTheOthers) {
  Fleet fleet(3, {.latency = absl::Milliseconds(20)});
  fleet.Round(1);
  fleet.loop().RunFor(absl::Milliseconds(10));
  fleet.node(3).transport.reset();
  fleet.loop().RunFor(3 * kDeadline);
  EXPECT_EQ(fleet.node(1).came[{2}].size(), 1u);
  EXPECT_EQ(fleet.node(2).came[{1}].size(), 1u);
  for (uint64_t round = 2; round <= 4; ++round) {
    fleet.Send({1}, {2}, round);
    fleet.Send({2}, {1}, round);
    fleet.loop().RunFor(3 * kDeadline);
  }
  EXPECT_EQ(fleet.node(1).came[{2}].size(), 4u);
  EXPECT_EQ(fleet.node(2).came[{1}].size(), 4u);
}

TEST(NcclTransportTest, FaultsOfEveryKindChangeNoBody) {
  NcclCounters seen;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Fleet fleet(
        4,
        {.seed = seed, .hang = 0.02, .error = 0.02, .slow = 0.1, .torn = 0.5});
    for (uint64_t round = 1; round <= 30; ++round) {
      fleet.Round(round);
      if (round % 10 == 0) fleet.NextView(round + 2);
      fleet.loop().RunFor(absl::Milliseconds(100));
    }
    fleet.loop().RunFor(10 * kDeadline);
    fleet.ExpectAll(30);
    seen.bodies += fleet.Sum().bodies;
    seen.fallbacks += fleet.Sum().fallbacks;
  }
  EXPECT_GT(seen.bodies, 1000u);
  EXPECT_GT(seen.fallbacks, 100u);
}

}  // namespace nccl_transport_test
}  // namespace gossamer
