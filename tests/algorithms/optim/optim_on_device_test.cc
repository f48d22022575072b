// Every rule on a device has the bits of the host, saved state included, and
// its steps neither copy nor wait.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/base/rng.h"
#include "algorithms/base/state.h"
#include "algorithms/kernels/cuda/kernels.h"
#include "algorithms/kernels/device_queue.h"
#include "algorithms/method/cold.h"
#include "algorithms/optim/optimizer.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_device.h"

namespace gossamer {
namespace optim_on_device_test {

constexpr size_t kSize = 301;

std::vector<float> Gaussian(std::string_view name, uint64_t step) {
  std::vector<float> x(kSize);
  RngKey(11).Fold(name).Fold(step).FillGaussian(x);
  return x;
}

class Saver : public StateVisitor {
 public:
  bool loads() const override { return false; }
  void Floats(std::string_view name, std::span<float> values) override {
    floats[std::string(name)].assign(values.begin(), values.end());
  }
  void Counter(std::string_view name, uint64_t& value) override {
    counters[std::string(name)] = value;
  }
  void Bytes(std::string_view, std::vector<std::byte>&) override {}
  std::map<std::string, std::vector<float>> floats;
  std::map<std::string, uint64_t> counters;
};

class Loader : public StateVisitor {
 public:
  explicit Loader(const Saver& saver) : saver_(saver) {}
  bool loads() const override { return true; }
  void Floats(std::string_view name, std::span<float> values) override {
    std::ranges::copy(saver_.floats.at(std::string(name)), values.begin());
  }
  void Counter(std::string_view name, uint64_t& value) override {
    value = saver_.counters.at(std::string(name));
  }
  void Bytes(std::string_view, std::vector<std::byte>&) override {}

 private:
  const Saver& saver_;
};

OptimizerSpec SpecOf(std::string_view name) {
  OptimizerSpec spec = {.name = std::string(name), .learning_rate = 0.01};
  if (name == "cold") spec.make = MakeCold;
  return spec;
}

// Steps first to last with corrections of mixing in between.
void Steps(Optimizer& rule, const DeviceQueue& queue, DeviceSpan<float> x,
           uint64_t first, uint64_t last) {
  for (uint64_t t = first; t <= last; ++t) {
    const std::vector<float> g = Gaussian("gradient", t);
    const std::vector<float> d = Gaussian("difference", t);
    const auto gradient = DeviceVector<float>::Of(queue, g);
    const auto difference = DeviceVector<float>::Of(queue, d);
    rule.Extrapolate(x);
    rule.Step(x, gradient, 1.0 / static_cast<double>(t));
    if (rule.hooks() != nullptr) rule.hooks()->OnCorrection(0.1f, difference);
  }
}

struct Outcome {
  std::vector<float> x, added;
  Saver saved;
};

// Another instance goes on with the saved state half-way.
Outcome OutcomeOf(std::string_view name, const DeviceQueue& queue) {
  Outcome outcome;
  auto x = DeviceVector<float>::Of(queue, Gaussian("x", 0));
  auto rule = Optimizer::Create(SpecOf(name), kSize, queue).value();
  Steps(*rule, queue, x, 1, 4);
  Saver half;
  rule->VisitState(half);
  rule = Optimizer::Create(SpecOf(name), kSize, queue).value();
  Loader loader(half);
  rule->VisitState(loader);
  Steps(*rule, queue, x, 5, 8);
  rule->VisitState(outcome.saved);
  if (rule->hooks() != nullptr) outcome.added = rule->hooks()->Added();
  outcome.x = x.ToHost();
  return outcome;
}

class OptimizerOnDeviceTest : public testing::TestWithParam<std::string_view> {
};
INSTANTIATE_TEST_SUITE_P(Rules, OptimizerOnDeviceTest,
                         testing::Values("sgd", "ogda", "osg", "adam", "oadam",
                                         "cold"),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

TEST_P(OptimizerOnDeviceTest, ItHasTheBitsOfTheHost) {
  const Outcome host = OutcomeOf(GetParam(), DeviceQueue::Host());
  FakeDevice device({.kernels = &CudaKernels(), .stream = nullptr});
  const Outcome there = OutcomeOf(GetParam(), device.queue());
  EXPECT_EQ(host.x, there.x);
  EXPECT_EQ(host.added, there.added);
  EXPECT_EQ(host.saved.floats, there.saved.floats);
  EXPECT_EQ(host.saved.counters, there.saved.counters);
}

TEST_P(OptimizerOnDeviceTest, AStepNeitherCopiesNorWaits) {
  FakeDevice device;
  const DeviceQueue queue = device.queue();
  DeviceVector<float> x(queue, kSize), gradient(queue, kSize);
  const auto rule = Optimizer::Create(SpecOf(GetParam()), kSize, queue).value();
  device.ResetCounts();
  rule->Extrapolate(x);
  rule->Step(x, gradient, 1);
  EXPECT_GT(device.counts().launches, 0u);
  EXPECT_TRUE(device.counts().to_host.empty());
  EXPECT_TRUE(device.counts().to_device.empty());
  EXPECT_EQ(device.counts().waits, 0u);
}

}  // namespace optim_on_device_test
}  // namespace gossamer
