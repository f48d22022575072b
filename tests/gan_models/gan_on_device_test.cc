// A GAN on a device that refuses the host: the bits of the host, captured or
// enqueued, and nothing crosses but batches, losses and a flag.

#include "tests/gan_models/gan_on_device.h"

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gan_models/compute.h"
#include "gan_models/data/cifar_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/gan_models/testing.h"

namespace gossamer {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::Not;
using ::testing::SizeIs;

class Statistics : public StateVisitor {
 public:
  bool loads() const override { return false; }
  void Floats(std::string_view name, std::span<float> values) override {
    kept[std::string(name)].assign(values.begin(), values.end());
  }
  void Counter(std::string_view, uint64_t&) override { ADD_FAILURE(); }
  void Bytes(std::string_view, std::vector<std::byte>&) override {
    ADD_FAILURE();
  }
  std::map<std::string, std::vector<float>> kept;
};

std::map<std::string, std::vector<float>> StateOf(Game& game) {
  Statistics statistics;
  game.VisitState(statistics);
  return statistics.kept;
}

std::vector<float> GradientsOf(const Game& game) {
  return game.queue().ToHost(game.device_gradients());
}

class GanOnDeviceTest : public testing::Test {
 protected:
  GanOnDeviceTest() {
    EXPECT_TRUE(WriteCifar10(folder_.path(), SmallData(100, 30)).ok());
  }
  GanSpec Spec(const std::string& model, const std::string& loss) const {
    GanSpec spec;
    spec.model = model;
    spec.loss = loss;
    spec.width = 8;
    spec.latent = 8;
    spec.batch = 4;
    if (model == "mlp") {
      spec.data.name = "gaussian-mixture";
    } else {
      spec.data.path = folder_.path();
    }
    return spec;
  }

  const TemporaryFolder folder_;
  FakeDevice device_;
};

// Discriminator alone and both, with a small move of x in between.
void ExpectEqualSteps(Game& host, Game& there, int steps) {
  for (int i = 0; i < steps; ++i) {
    const Players players =
        i % 3 == 0 ? Players::kDiscriminator : Players::kBoth;
    const RngKey key = RngKey(3).Fold(i);
    for (Game* game : {&host, &there}) {
      game->PrefetchBatch(RngKey(3).Fold(i + 1));
    }
    const auto a = host.Gradient(players, key);
    const auto b = there.Gradient(players, key);
    ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
    EXPECT_EQ((*a)[0], (*b)[0]);
    EXPECT_EQ((*a)[1], (*b)[1]);
    ASSERT_EQ(GradientsOf(host), GradientsOf(there)) << i;
    for (Game* game : {&host, &there}) {
      game->queue().Run(&DeviceKernels::axpy, -0.01f, game->device_gradients(),
                        game->device_parameters());
    }
  }
  EXPECT_EQ(StateOf(host), StateOf(there));
}

TEST_F(GanOnDeviceTest, ItHasTheBitsOfTheHost) {
  for (const auto& [model, loss] : {std::pair{"mlp", "wgan-gp"},
                                    {"up", "wgan-gp"},
                                    {"sagan", "hinge"},
                                    {"dcgan", "non-saturating"}}) {
    SCOPED_TRACE(model);
    const GanSpec spec = Spec(model, loss);
    const auto host = GanOn(nullptr, spec, 0, 2, 1);
    const auto there = GanOn(&device_, spec, 0, 2, 1, {.warm_ups = 1});
    ExpectEqualSteps(*host, *there, 7);
    // All but the first batch were drawn while a step was under way.
    EXPECT_EQ(there->prefetched(), 6u);
    EXPECT_EQ(host->prefetched(), 0u);
  }
  EXPECT_EQ(device_.counts().captures, 8u);
  EXPECT_GT(device_.counts().replays, 0u);
}

TEST_F(GanOnDeviceTest, OnlyABatchGoesThereAndOnlyLossesComeBack) {
  const GanSpec spec = Spec("sagan", "hinge");
  const auto game = GanOn(&device_, spec, 0, 2, 1, {.warm_ups = 1});
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(game->Gradient(Players::kBoth, RngKey(i)).ok());
  }
  device_.ResetCounts();
  ASSERT_TRUE(game->Gradient(Players::kBoth, RngKey(9)).ok());
  const FakeDevice::Counts counts = device_.counts();
  EXPECT_THAT(counts.to_device, SizeIs(1));
  EXPECT_THAT(counts.to_host, Each(Lt(16u)));
  EXPECT_EQ(counts.waits, 1u);
  EXPECT_EQ(counts.replays, 1u);
}

TEST_F(GanOnDeviceTest, AnUnexpectedBatchIsDrawnAgain) {
  const GanSpec spec = Spec("mlp", "wgan-gp");
  const auto host = GanOn(nullptr, spec, 0, 2, 1);
  const auto there = GanOn(&device_, spec, 0, 2, 1);
  for (int i = 0; i < 3; ++i) {
    there->PrefetchBatch(RngKey(100 + i));
    ASSERT_TRUE(host->Gradient(Players::kBoth, RngKey(i)).ok());
    ASSERT_TRUE(there->Gradient(Players::kBoth, RngKey(i)).ok());
    EXPECT_EQ(GradientsOf(*host), GradientsOf(*there));
  }
  EXPECT_EQ(there->prefetched(), 0u);
}

TEST_F(GanOnDeviceTest, AStepWithoutAGraphHasTheSameBits) {
  const GanSpec spec = Spec("up", "wgan-gp");
  const auto host = GanOn(nullptr, spec, 0, 2, 1);
  int failures = 0;
  const auto there = GanOn(
      &device_, spec, 0, 2, 1,
      {.warm_ups = 1, .on_failure = [&](const std::string&) { ++failures; }});
  device_.FailCapture("operation not permitted when stream is capturing");
  ExpectEqualSteps(*host, *there, 5);
  EXPECT_EQ(failures, 1);
  EXPECT_EQ(device_.counts().captures, 0u);
}

TEST_F(GanOnDeviceTest, NonFiniteGradientsAreReportedAndChangeNothing) {
  const auto game =
      GanOn(&device_, Spec("sagan", "hinge"), 0, 2, 1, {.warm_ups = 1});
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(game->Gradient(Players::kBoth, RngKey(i)).ok());
  }
  const auto before = StateOf(*game);
  const auto x = game->queue().ToHost(game->device_parameters());
  const size_t at = game->layout().extent(Player::kDiscriminator).offset;
  const float poison[] = {std::numeric_limits<float>::quiet_NaN()};
  game->queue().Upload<float>(poison, game->device_parameters().subspan(at, 1));
  const auto result = game->Gradient(Players::kBoth, RngKey(4));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("generator."));
  EXPECT_EQ(StateOf(*game), before);
  EXPECT_THAT(GradientsOf(*game), Each(0.0f));
  game->queue().Upload<float>(x, game->device_parameters());
  EXPECT_TRUE(game->Gradient(Players::kBoth, RngKey(4)).ok());
}

TEST_F(GanOnDeviceTest, ADeviceThatVanishesIsTheReason) {
  const auto game = GanOn(&device_, Spec("mlp", "wgan-gp"), 0, 2, 1);
  ASSERT_TRUE(game->Gradient(Players::kBoth, RngKey(1)).ok());
  device_.Vanish("Xid 79: GPU has fallen off the bus");
  const auto result = game->Gradient(Players::kBoth, RngKey(2));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("Xid 79"));
}

TEST(GuardTorchTest, MemoryThatADeviceLacksSaysWhatToLower) {
  const absl::Status status = GuardTorch([]() -> absl::Status {
    throw std::runtime_error(
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
        "capacity of 79.10 GiB\nException raised from malloc");
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("2.00 GiB"), HasSubstr("game.gan.batch"),
                    Not(HasSubstr("Exception raised"))));
}

}  // namespace
}  // namespace gossamer
