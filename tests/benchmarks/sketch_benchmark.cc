// The cost of a count-sketch, beside the least cost of reading the parameters.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "algorithms/base/rng.h"
#include "topology/fleet/sketch.h"

namespace gossamer {
namespace {

// The size of the WGAN-GP CIFAR-10 networks at width 128.
constexpr int64_t kParameters = 2'258'308;

std::vector<float> Parameters(int64_t n) {
  std::vector<float> x(static_cast<size_t>(n));
  RngKey(1).FillGaussian(x);
  return x;
}

void BM_Read(benchmark::State& state) {
  const std::vector<float> x = Parameters(state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(std::accumulate(x.begin(), x.end(), 0.0));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * 4);
}
BENCHMARK(BM_Read)->Arg(kParameters)->Unit(benchmark::kMillisecond);

void BM_Sketch(benchmark::State& state) {
  const std::vector<float> x = Parameters(state.range(0));
  const ParameterLayout layout(
      {{"x", Player::kGenerator, {state.range(0)}, {}}}, {"one"});
  for (auto _ : state) {
    benchmark::DoNotOptimize(SketchPlayers(DeviceQueue::Host(), x, layout, 1));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * 4);
}
BENCHMARK(BM_Sketch)->Arg(kParameters)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gossamer

BENCHMARK_MAIN();
