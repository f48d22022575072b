// Peers whose vectors lie on a device that refuses the host: the bits of the
// host, and x never crosses.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/game/synthetic_game.h"
#include "algorithms/method/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_device.h"
#include "tests/testing/fake_device_game.h"
#include "tests/testing/sim_fleet.h"
#include "tests/testing/temporary_folder.h"

namespace gossamer {
namespace {

using ::testing::Each;
using ::testing::Lt;

constexpr int kPeers = 4;
constexpr size_t kSize = 12'000;

// With a null device the game is the host's.
SimFleetOptions Options(FakeDevice* device, std::string codec) {
  SimFleetOptions o;
  o.peers = kPeers;
  o.codec = std::move(codec);
  o.peer.rounds = 12;
  o.step.generator = {.name = "oadam", .learning_rate = 0.01};
  o.step.discriminator = o.step.generator;
  o.game = [device](int rank) -> std::unique_ptr<Game> {
    std::unique_ptr<Game> game =
        SyntheticGame::Create({.parameters = kSize}, rank, kPeers, 5).value();
    if (device == nullptr) return game;
    return std::make_unique<FakeDeviceGame>(device, std::move(game));
  };
  return o;
}

void Centralize(Averaging averaging, SimFleetOptions& o) {
  o.peer.averaging = averaging;
  o.peer.overlap_steps = 0;
  o.schedule.graph = "complete";
}

uint64_t HashOf(const SimFleetOptions& o) {
  SimFleet fleet(o);
  EXPECT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  return fleet.Hash();
}

// A change of the options, by what it is about.
struct Case {
  const char* name;
  const char* codec;
  std::function<void(SimFleetOptions& o)> change;
};

class PeerOnDeviceTest : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(
    Fleets, PeerOnDeviceTest,
    testing::Values(
        Case{"overlapped", "innov-int4",
             [](SimFleetOptions& o) { o.peer.overlap_steps = 2; }},
        Case{"stateless", "dense-bf16",
             [](SimFleetOptions& o) { o.peer.ema = 0.9; }},
        Case{"shared", "power-gossip", [](SimFleetOptions&) {}},
        Case{"chebyshev", "dense-f32",
             [](SimFleetOptions& o) {
               o.peer.overlap_steps = 0;
               o.peer.mixing_rounds = 3;
               o.peer.chebyshev = true;
             }},
        Case{"clipped", "innov-lm2",
             [](SimFleetOptions& o) {
               o.peer.limits.clip_radius = 0.05;
               o.step.gradient_clip = 0.5;
             }},
        Case{"primal_dual", "innov-int8",
             [](SimFleetOptions& o) {
               o.peer.overlap_steps = 0;
               o.peer.step_then_mix = true;
               o.step.generator = {.name = "cold",
                                   .make = FindMethod("cold")->rule,
                                   .learning_rate = 0.01};
               o.step.discriminator = o.step.generator;
             }},
        Case{"gradients", "dense-f32",
             [](SimFleetOptions& o) { Centralize(Averaging::kGradients, o); }},
        Case{"quantized", "dense-f32",
             [](SimFleetOptions& o) {
               Centralize(Averaging::kGradients, o);
               o.peer.all_reduce = "all-gather";
               o.gradient_codec = "qsgd:levels=127";
             }},
        Case{"averaged", "dense-f32",
             [](SimFleetOptions& o) { Centralize(Averaging::kParameters, o); }},
        Case{"tracked", "innov-int8",
             [](SimFleetOptions& o) {
               o.step.generator = {.name = "ogda", .learning_rate = 0.01};
               o.step.discriminator = o.step.generator;
               o.game = [game = o.game](int rank) {
                 return FindMethod("gradient-tracking")->game(game(rank));
               };
             }}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_P(PeerOnDeviceTest, AFleetHasTheBitsOfTheHost) {
  SimFleetOptions host = Options(nullptr, GetParam().codec);
  GetParam().change(host);
  FakeDevice device;
  SimFleetOptions there = Options(&device, GetParam().codec);
  GetParam().change(there);
  EXPECT_EQ(HashOf(host), HashOf(there));
}

TEST(PeerCopiesTest, XNeverCrossesInARound) {
  FakeDevice device;
  SimFleet fleet(Options(&device, "innov-int4"));
  device.ResetCounts();
  fleet.Start();
  // Before the last round, behind which the state is taken for a checkpoint.
  fleet.loop().RunUntil([&] { return fleet.peer(0).round() == 11; },
                        absl::Hours(1));
  const FakeDevice::Counts counts = device.counts();
  EXPECT_GT(counts.to_host.size(), 0u);
  EXPECT_GT(counts.to_device.size(), 0u);
  // The generator alone is half of x.
  EXPECT_THAT(counts.to_host, Each(Lt(sizeof(float) * kSize / 2 - 8)));
  EXPECT_THAT(counts.to_device, Each(Lt(sizeof(float) * kSize / 2 - 8)));
  // The gradients' losses are waited for on the compute engine; nothing else
  // is.
  uint64_t steps = 0;
  for (int r = 0; r < kPeers; ++r) steps += fleet.peer(r).steps();
  EXPECT_EQ(counts.waits, steps);
  // A payload of each of two edges leaves, and both ends' payloads come back to
  // be applied.  Losses and norms are smaller.
  const auto payloads = [](const std::vector<size_t>& copies) {
    return std::ranges::count_if(copies, [](size_t n) { return n > 1024; });
  };
  const auto most = static_cast<int64_t>(steps) + kPeers;
  EXPECT_LE(payloads(counts.to_host), 2 * most);
  EXPECT_LE(payloads(counts.to_device), 4 * most);
}

// Of each edge the payloads of h exchanges, the one that is encoded and one
// that is on its way back, as large as the first one, which has 8 bits; and x,
// which is staged once before the first round.
TEST(PeerCopiesTest, PinnedMemoryIsAFewPayloadsOfEachEdgeAndAStagedX) {
  constexpr size_t kLarge = 1 << 18, kEdges = 2, kStep = 64 << 10;
  FakeDevice device;
  SimFleetOptions o = Options(&device, "innov-int4");
  o.game = [&device](int rank) -> std::unique_ptr<Game> {
    return std::make_unique<FakeDeviceGame>(
        &device,
        SyntheticGame::Create({.parameters = kLarge}, rank, kPeers, 5).value());
  };
  for (const int h : {1, 2}) {
    o.peer.overlap_steps = h;
    SimFleet fleet(o);
    device.ResetCounts();
    fleet.Start();
    fleet.loop().RunUntil([&] { return fleet.peer(0).round() == 11; },
                          absl::Hours(1));
    const FakeDevice::Counts counts = device.counts();
    const size_t payload = std::ranges::max(counts.to_host);
    ASSERT_LT(payload, sizeof(float) * kLarge / 2) << "x is among the copies";
    // A peer's losses and norms take blocks, too: less than a payload.
    const size_t payloads = kEdges * (h + 2) + 1;
    EXPECT_LE(counts.pinned_peak, kPeers * (sizeof(float) * kLarge + kStep +
                                            payloads * (payload + kStep)))
        << "h " << h;
  }
}

TEST(PeerCheckpointTest, AFleetResumesOnAnotherDevice) {
  uint64_t hashes[2];
  FakeDevice device;
  for (const bool moves : {false, true}) {
    const TemporaryFolder folder;
    SimFleetOptions o = Options(nullptr, "innov-int4");
    o.checkpoints = folder.path();
    o.peer.rounds = 6;
    HashOf(o);
    SimFleetOptions resumed = Options(moves ? &device : nullptr, "innov-int4");
    resumed.checkpoints = folder.path();
    resumed.resume_round = 7;
    resumed.incarnation = 2;
    hashes[moves ? 1 : 0] = HashOf(resumed);
  }
  EXPECT_EQ(hashes[0], hashes[1]);
}

// Rank 1 is on the device, the others are on the host.
SimFleetOptions OneOnDevice(FakeDevice* device) {
  SimFleetOptions o = Options(nullptr, "innov-int4");
  o.game = [device, host = o.game](int rank) -> std::unique_ptr<Game> {
    if (rank != 1) return host(rank);
    return std::make_unique<FakeDeviceGame>(device, host(rank));
  };
  return o;
}

TEST(PeerFailureTest, APeerWhoseDeviceVanishesEndsWithTheReason) {
  FakeDevice device;
  SimFleetOptions o = OneOnDevice(&device);
  o.peer.rounds = 2000;
  o.peer.liveness_limit = absl::Seconds(2);
  SimFleet fleet(o);
  fleet.Start();
  fleet.loop().RunUntil([&] { return fleet.peer(1).round() > 5; },
                        absl::Minutes(1));
  device.Vanish("Xid 79: GPU has fallen off the bus");
  fleet.Run(absl::Minutes(1));
  EXPECT_THAT(std::string(fleet.StatusOf(1).message()),
              testing::HasSubstr("Xid 79"));
}

TEST(PeerFailureTest, TheOthersGoOn) {
  FakeDevice device;
  SimFleetOptions o = OneOnDevice(&device);
  o.peer.rounds = 2000;
  o.peer.deadline = {DeadlinePolicy::Kind::kFixed, absl::Milliseconds(50)};
  SimFleet fleet(o);
  fleet.Start();
  fleet.loop().RunUntil([&] { return fleet.peer(1).round() > 5; },
                        absl::Minutes(1));
  device.Vanish("Xid 79: GPU has fallen off the bus");
  fleet.loop().RunFor(absl::Seconds(5));
  EXPECT_THAT(std::string(fleet.StatusOf(1).message()),
              testing::HasSubstr("Xid 79"));
  for (const int rank : {0, 2, 3}) {
    EXPECT_GT(fleet.peer(rank).round(), 30u) << fleet.StatusOf(rank);
  }
}

TEST(PeerFailureTest, ARunGoesOnOnTheHostFromItsCheckpoint) {
  SimFleetOptions host = Options(nullptr, "innov-int4");
  host.peer.rounds = 60;
  const uint64_t whole = HashOf(host);
  const TemporaryFolder folder;
  FakeDevice device;
  {
    SimFleetOptions o = OneOnDevice(&device);
    o.peer.rounds = 60;
    o.peer.checkpoint_every = 10;
    o.checkpoints = folder.path();
    SimFleet fleet(o);
    fleet.Start();
    fleet.loop().RunUntil([&] { return fleet.peer(1).round() > 35; },
                          absl::Minutes(1));
    device.Vanish("Xid 79: GPU has fallen off the bus");
    fleet.loop().RunUntil([&] { return !fleet.StatusOf(1).ok(); },
                          absl::Minutes(1));
    EXPECT_LT(fleet.peer(1).round(), 60u);
  }
  const CheckpointStore store(folder.path() + "/peer-1", 2);
  ASSERT_FALSE(store.Rounds().empty());
  host.checkpoints = folder.path();
  host.resume_round = store.Rounds().front();
  host.incarnation = 2;
  EXPECT_EQ(HashOf(host), whole);
}

TEST(PeerFailureTest, ADeviceThatIsFullNamesTheBufferAndItsSize) {
  // Enough for the game and the optimizer, but not for the edges.
  FakeDevice device({.memory = 300'000});
  SimFleetOptions o = OneOnDevice(&device);
  o.peer.liveness_limit = absl::Seconds(2);
  SimFleet fleet(o);
  EXPECT_FALSE(fleet.Run(absl::Minutes(1)));
  const absl::Status status = fleet.StatusOf(1);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()),
              testing::MatchesRegex("cuda:0: [0-9.]+ kB for a payload, with "
                                    "[0-9.]+ kB free of 300.0 kB: "
                                    "out of memory"));
}

}  // namespace
}  // namespace gossamer
