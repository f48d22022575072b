// Programs whose parameters lie on a device that refuses the host: they are
// mixed there, with the bits of the host.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "algorithms/method/registry.h"
#include "runtime/library/caller.h"
#include "tests/testing/fake_device.h"
#include "tests/testing/sim_fleet.h"

namespace gossamer {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Lt;
using Turn = Caller::Turn;

constexpr int kPeers = 3;
constexpr size_t kSize = 12'000;

ParameterLayout Layout() {
  std::vector<Segment> segments = {{"G.w", Player{0}, {2, kSize / 4}, {}},
                                   {"D.w", Player{1}, {2, kSize / 4}, {}}};
  return ParameterLayout(std::move(segments), {"G", "D"});
}

// A program that adds numbers of its own to the parameters, on the device if
// there is one, in each turn until the end.
class Program {
 public:
  Program(FakeDevice* device, int rank)
      : device_(device),
        rank_(rank),
        queue_(device == nullptr ? DeviceQueue::Host() : device->queue()),
        x_(queue_, kSize),
        caller_(Layout()) {
    caller_.UseMemory(x_.span());
    thread_ = std::thread([this] { Run(); });
  }
  ~Program() {
    caller_.End(absl::OkStatus());
    thread_.join();
  }

  // The queue of the peer is another than the program's.
  std::unique_ptr<Game> MakeGame() {
    return caller_.MakeGame(
        device_ == nullptr ? DeviceQueue::Host() : device_->queue(),
        [] { return CallerProgress(); });
  }
  const std::string& refusal() const { return refusal_; }
  // Pieces of the runtime's work that a turn began with.
  size_t unfinished() const { return unfinished_; }
  // Value `index` becomes NaN in one turn, which is mended.
  void SpoilOnce(size_t index) { spoilt_ = index; }

 private:
  void Run() {
    for (int turn = 1; caller_.Await(absl::Seconds(60)) == Turn::kCallers;
         ++turn) {
      if (device_ != nullptr) unfinished_ += device_->pending();
      Launch([this, turn] {
        for (size_t i = 0; i < kSize; ++i) {
          x_.span().data[i] += std::sin(static_cast<float>(i + rank_ * turn));
        }
      });
      if (turn == 2 && spoilt_ < kSize) Refuse();
      if (!caller_.EndStep({}).ok()) return;
    }
  }

  void Refuse() {
    float* const value = x_.span().data + spoilt_;
    float sound = 0;
    Launch([&] { sound = std::exchange(*value, std::nanf("")); });
    refusal_ = std::string(caller_.EndStep({}).message());
    Launch([&] { *value = sound; });
  }

  // Has done it when it returns, as a program has before it mixes.
  void Launch(const std::function<void()>& work) {
    if (device_ == nullptr) return work();
    device_->Launch(work);
    queue_.Wait().IgnoreError();
  }

  FakeDevice* const device_;
  const int rank_;
  const DeviceQueue queue_;
  DeviceVector<float> x_;
  Caller caller_;
  size_t spoilt_ = kSize;
  std::string refusal_;
  size_t unfinished_ = 0;
  std::thread thread_;
};

using Programs = std::vector<std::unique_ptr<Program>>;

Programs MakePrograms(FakeDevice* device) {
  Programs programs;
  for (int rank = 0; rank < kPeers; ++rank) {
    programs.push_back(std::make_unique<Program>(device, rank));
  }
  return programs;
}

SimFleetOptions Options(const Programs& programs) {
  SimFleetOptions o;
  o.peers = kPeers;
  o.codec = "innov-int4";
  o.peer.rounds = 12;
  o.step.generator = {
      .name = "caller", .make = FindMethod("caller")->rule, .learning_rate = 1};
  o.step.discriminator = o.step.generator;
  o.game = [&programs](int rank) { return programs[rank]->MakeGame(); };
  return o;
}

uint64_t HashOf(FakeDevice* device) {
  const Programs programs = MakePrograms(device);
  SimFleet fleet(Options(programs));
  EXPECT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  return fleet.Hash();
}

TEST(CallerOnDeviceTest, AFleetHasTheBitsOfTheHost) {
  const uint64_t host = HashOf(nullptr);
  FakeDevice device;
  EXPECT_EQ(HashOf(&device), host);
}

TEST(CallerOnDeviceTest, TheParametersNeverCross) {
  FakeDevice device;
  const Programs programs = MakePrograms(&device);
  SimFleet fleet(Options(programs));
  device.ResetCounts();
  fleet.Start();
  fleet.loop().RunUntil([&] { return fleet.peer(0).round() == 11; },
                        absl::Hours(1));
  const FakeDevice::Counts counts = device.counts();
  EXPECT_GT(counts.to_host.size(), 0u);
  EXPECT_THAT(counts.to_host, Each(Lt(sizeof(float) * kSize / 2 - 8)));
  EXPECT_THAT(counts.to_device, Each(Lt(sizeof(float) * kSize / 2 - 8)));
  fleet.Run();
}

TEST(CallerOnDeviceTest, ATurnBeginsWhenTheMixingIsDone) {
  FakeDevice device;
  const Programs programs = MakePrograms(&device);
  SimFleet fleet(Options(programs));
  EXPECT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  for (const auto& program : programs) EXPECT_EQ(program->unfinished(), 0u);
}

TEST(CallerOnDeviceTest, NamesATensorThatIsNotSound) {
  FakeDevice device;
  const Programs programs = MakePrograms(&device);
  programs[1]->SpoilOnce(kSize - 3);
  SimFleet fleet(Options(programs));
  EXPECT_TRUE(fleet.Run()) << fleet.StatusOf(1);
  EXPECT_THAT(programs[1]->refusal(), HasSubstr("D.w has the value nan"));
  EXPECT_THAT(programs[1]->refusal(), HasSubstr("at index 5997"));
}

TEST(CallerOnDeviceTest, ADeviceThatVanishesEndsThePeerWithTheReason) {
  FakeDevice device;
  const Programs programs = MakePrograms(&device);
  SimFleetOptions options = Options(programs);
  options.peer.rounds = 2000;
  options.peer.liveness_limit = absl::Seconds(2);
  SimFleet fleet(options);
  fleet.Start();
  fleet.loop().RunUntil([&] { return fleet.peer(1).round() > 5; },
                        absl::Minutes(1));
  device.Vanish("Xid 79: GPU has fallen off the bus");
  EXPECT_FALSE(fleet.Run(absl::Minutes(1)));
  EXPECT_THAT(std::string(fleet.StatusOf(1).message()), HasSubstr("Xid 79"));
}

}  // namespace
}  // namespace gossamer
