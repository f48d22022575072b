// Peers that train a GAN on a device that refuses the host: the bits of the
// host, and x never crosses.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gan_models/gan_spec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/gan_models/gan_on_device.h"
#include "tests/testing/fake_device.h"
#include "tests/testing/sim_fleet.h"

namespace gossamer {
namespace {

using ::testing::Each;
using ::testing::Lt;

constexpr int kPeers = 3;

GanSpec Spec() {
  GanSpec spec;
  spec.model = "mlp";
  spec.width = 64;
  spec.latent = 4;
  spec.batch = 4;
  spec.data.name = "gaussian-mixture";
  return spec;
}

// `made` keeps the games in the order of ranks.
SimFleetOptions Options(FakeDevice* device,
                        std::vector<GanGame*>* made = nullptr) {
  SimFleetOptions o;
  o.peers = kPeers;
  o.codec = "innov-int4";
  o.peer.rounds = 12;
  o.peer.overlap_steps = 1;
  o.step.generator = {.name = "oadam", .learning_rate = 0.002};
  o.step.discriminator = o.step.generator;
  o.game = [device, made](int rank) -> std::unique_ptr<Game> {
    auto game = GanOn(device, Spec(), rank, kPeers, 5, {.warm_ups = 2});
    if (made != nullptr) made->push_back(game.get());
    return game;
  };
  return o;
}

TEST(PeerWithGanOnDeviceTest, AFleetHasTheBitsOfTheHost) {
  uint64_t hashes[2];
  FakeDevice device;
  for (const bool there : {false, true}) {
    SimFleet fleet(Options(there ? &device : nullptr));
    EXPECT_TRUE(fleet.Run()) << fleet.StatusOf(0);
    hashes[there ? 1 : 0] = fleet.Hash();
  }
  EXPECT_EQ(hashes[0], hashes[1]);
  EXPECT_EQ(device.counts().captures, uint64_t{kPeers});
}

TEST(PeerWithGanOnDeviceTest, XNeverCrossesInARound) {
  FakeDevice device;
  std::vector<GanGame*> games;
  SimFleet fleet(Options(&device, &games));
  device.ResetCounts();
  fleet.Start();
  // Before the last round, behind which the state is taken for a checkpoint.
  fleet.loop().RunUntil([&] { return fleet.peer(0).round() == 11; },
                        absl::Hours(1));
  const FakeDevice::Counts counts = device.counts();
  EXPECT_GT(counts.replays, 0u);
  // All but a peer's first batch were drawn while the device computed.
  EXPECT_GE(games[0]->prefetched(), 9u);
  // Encoded payloads are an eighth of the smaller player, a batch is less.
  const size_t smaller = sizeof(float) * 8000;
  EXPECT_THAT(counts.to_host, Each(Lt(smaller)));
  EXPECT_THAT(counts.to_device, Each(Lt(smaller)));
}

}  // namespace
}  // namespace gossamer
