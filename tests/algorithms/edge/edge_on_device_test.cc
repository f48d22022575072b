// One end's half of an edge on a device: the bits of the host, and nothing but
// payloads crosses.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/base/rng.h"
#include "algorithms/edge/edge_codec_state.h"
#include "algorithms/kernels/cuda/kernels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/algorithms/edge/edge_pair.h"
#include "tests/testing/fake_device.h"

namespace gossamer {
namespace edge_on_device_test {

using ::testing::Each;
using ::testing::Le;

std::vector<float> Start(int end) {
  std::vector<float> x(PairLayout().size());
  RngKey(3).Fold(static_cast<uint64_t>(end)).FillGaussian(x);
  return x;
}

class LossObserver : public CorrectionObserver {
 public:
  explicit LossObserver(const DeviceQueue& queue) : queue_(queue) {}
  void OnCorrection(const Correction&) override { ++corrections; }
  void OnEdgeEnd(DeviceSpan<const float> sum) override {
    lost = queue_.ToHost(sum);
  }
  int corrections = 0;
  std::vector<float> lost;

 private:
  const DeviceQueue queue_;
};

struct Case {
  std::string codec;
  CorrectionLimits limits = {};
};

// All that one end has after some exchanges.
struct Outcome {
  std::vector<float> x, lost;
  EdgeCodecState::Saved saved;
  int corrections = 0;
  Clipping clipping;
  std::vector<std::vector<std::byte>> payloads;
};

// Two ends on one device, with a skip, a resync boundary and a restored end in
// between.
std::vector<Outcome> Exchanges(const DeviceQueue& queue, const Case& of) {
  const auto codec = Codec::Create(of.codec, PairLayout(), queue).value();
  std::vector<DeviceVector<float>> x;
  std::vector<std::unique_ptr<LossObserver>> observers;
  std::vector<EdgeCodecState> ends;
  std::vector<Outcome> outcomes(2);
  const auto make_end = [&](size_t e) {
    EdgeCodecState made(codec, x[e].span(), std::make_shared<SnapshotCache>(),
                        /*edge_hash=*/3, /*upper=*/e == 1);
    made.set_coefficient(0.25f * codec->gamma());
    made.set_limits(of.limits);
    made.set_summed({7, PairLayout().size() - 20});
    made.add_observer(observers[e].get());
    return made;
  };
  for (size_t e : {0, 1}) {
    x.push_back(DeviceVector<float>::Of(queue, Start(static_cast<int>(e))));
    observers.push_back(std::make_unique<LossObserver>(queue));
    ends.push_back(make_end(e));
  }
  for (uint64_t round = 65530; round < 65542; ++round) {
    const ExchangeId id = MakeExchangeId(round);
    const EdgeMessage a = ends[0].OnEmit(id), b = ends[1].OnEmit(id);
    EXPECT_TRUE(queue.Wait().ok());
    for (const EdgeMessage* m : {&a, &b}) {
      EXPECT_TRUE(ends[0].Validate(m->encoded(id)).ok());
      const auto bytes = m->bytes.bytes();
      outcomes[m == &b ? 1 : 0].payloads.emplace_back(bytes.begin(),
                                                      bytes.end());
    }
    const bool skip = round == 65533;
    ends[0].OnComplete(id, &a, skip ? nullptr : &b);
    ends[1].OnComplete(id, skip ? nullptr : &b, &a);
    if (round != 65535) continue;
    const EdgeCodecState::Saved saved = ends[0].Save();
    EdgeCodecState again = make_end(0);
    EXPECT_TRUE(again.Restore(saved));
    ends[0] = std::move(again);
  }
  for (size_t e : {0, 1}) {
    Outcome& outcome = outcomes[e];
    outcome.saved = ends[e].Save();
    ends[e].TakeLongest();
    outcome.clipping = ends[e].clipping();
    ends[e].OnEnd();
    outcome.lost = observers[e]->lost;
    outcome.corrections = observers[e]->corrections;
    outcome.x = x[e].ToHost();
  }
  return outcomes;
}

class EdgeOnDeviceTest : public testing::TestWithParam<std::string_view> {};

TEST_P(EdgeOnDeviceTest, ItHasTheBitsOfTheHost) {
  std::vector<Case> cases = {{std::string(GetParam())},
                             {std::string(GetParam()), {.clip_radius = 0.2}},
                             {std::string(GetParam()), {.largest = 2}}};
  if (GetParam().starts_with("innov")) {
    cases.push_back({std::string(GetParam()) + ":fragments=3"});
    cases.push_back({std::string(GetParam()) + "; generator=diff-int8 every 2",
                     {.largest = 2}});
  }
  for (const Case& of : cases) {
    SCOPED_TRACE(of.codec + " " + std::to_string(of.limits.clip_radius));
    const std::vector<Outcome> host = Exchanges(DeviceQueue::Host(), of);
    FakeDevice device({.kernels = &CudaKernels(), .stream = nullptr});
    const std::vector<Outcome> there = Exchanges(device.queue(), of);
    for (int e : {0, 1}) {
      EXPECT_EQ(host[e].payloads, there[e].payloads);
      EXPECT_EQ(host[e].x, there[e].x);
      EXPECT_EQ(host[e].lost, there[e].lost);
      EXPECT_EQ(host[e].corrections, there[e].corrections);
      EXPECT_EQ(host[e].saved.replica, there[e].saved.replica);
      EXPECT_EQ(host[e].saved.difference, there[e].saved.difference);
      EXPECT_EQ(host[e].saved.sum, there[e].saved.sum);
      EXPECT_EQ(host[e].clipping.clipped, there[e].clipping.clipped);
      EXPECT_EQ(host[e].clipping.left_out, there[e].clipping.left_out);
    }
    if (of.limits.clip_radius > 0) {
      EXPECT_GT(host[0].clipping.clipped, 0u);
    }
  }
}

TEST_P(EdgeOnDeviceTest, OnlyPayloadsCross) {
  FakeDevice device;
  const DeviceQueue queue = device.queue();
  const std::shared_ptr<const Codec> codec =
      Codec::Create(GetParam(), PairLayout(), queue).value();
  auto x = DeviceVector<float>::Of(queue, Start(0));
  EdgeCodecState end(codec, x.span(), std::make_shared<SnapshotCache>(), 0);
  end.set_coefficient(0.1f);
  for (uint64_t round = 1; round < 6; ++round) {
    device.ResetCounts();
    const ExchangeId id = MakeExchangeId(round);
    const EdgeMessage message = end.OnEmit(id);
    const size_t size = message.bytes.size();
    EXPECT_THAT(device.counts().to_host, testing::ElementsAre(size));
    end.OnComplete(id, &message, &message);
    EXPECT_THAT(device.counts().to_host, testing::ElementsAre(size));
    // Payloads, and what two ends of a power iteration have made of them.
    EXPECT_THAT(device.counts().to_device, Each(Le(size)));
    EXPECT_LE(device.counts().to_device.size(),
              codec->memory() == EdgeMemory::kShared ? 6u : 2u);
  }
}

// The first two questions are answered with no.
TEST(EdgeFramesTest, APayloadAndWhatFollowsItWaitForTheDevice) {
  for (const bool vanishes : {false, true}) {
    FakeDevice device;
    const DeviceQueue queue = device.queue();
    const auto codec = Codec::Create("innov-int4", PairLayout(), queue).value();
    std::vector<DeviceVector<float>> x;
    std::vector<std::unique_ptr<Edge>> edges;
    for (int e : {0, 1}) {
      x.push_back(DeviceVector<float>::Of(queue, Start(e)));
      edges.push_back(
          std::make_unique<Edge>(PairOptions(e), codec, x.back().span(),
                                 std::make_shared<SnapshotCache>()));
    }
    // Hellos and answers have no payload, and go at once.
    for (auto& edge : edges) edge->ConnectionUp(1);
    for (size_t e : {0, 1, 0, 1}) {
      edges[e]->Flush();
      for (const auto& f : edges[e]->TakeFrames()) {
        ASSERT_TRUE(edges[1 - e]->OnFrame(1, f.head, f.body).ok());
      }
    }
    edges[0]->Flush();
    ASSERT_TRUE(edges[0]->TakeFrames().empty());
    const uint64_t waits = device.counts().waits;
    ASSERT_TRUE(edges[0]->Emit(MakeExchangeId(1), 0.25f, true));
    edges[0]->Announce();
    edges[0]->Flush();
    EXPECT_TRUE(edges[0]->TakeFrames().empty());
    EXPECT_TRUE(edges[0]->TakeFrames().empty());
    if (vanishes) device.Vanish("Xid 79");
    const auto frames = edges[0]->TakeFrames();
    EXPECT_EQ(frames.empty(), vanishes);
    EXPECT_EQ(device.counts().waits, waits);
    for (const auto& f : frames) {
      EXPECT_TRUE(edges[1]->OnFrame(1, f.head, f.body).ok());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, EdgeOnDeviceTest,
                         testing::ValuesIn(Codec::Names()),
                         [](const auto& info) {
                           std::string name(info.param);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace edge_on_device_test
}  // namespace gossamer
