// The limits of frames admit every frame that peers of a model send one
// another, and little more.

#include "runtime/neighborhood/frame_limits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/compress/codec.h"
#include "algorithms/compress/gradient_compressor.h"
#include "algorithms/edge/edge.h"
#include "runtime/checkpoint/state_transfer.h"
#include "runtime/neighborhood/link_prober.h"
#include "runtime/sim/virtual_loop.h"

namespace gossamer {
namespace frame_limits_test {

std::vector<ParameterLayout> Layouts() {
  return {
      ParameterLayout({{"one", Player::kGenerator, {1}, {}}}),
      ParameterLayout({{"long", Player::kGenerator, {300'000}, {}},
                       {"matrix", Player::kDiscriminator, {700, 900}, {}},
                       {"kernel", Player::kDiscriminator, {64, 64, 5, 5}, {}},
                       {"few", Player::kDiscriminator, {10, 3}, {}}})};
}

TEST(FrameLimitsTest, EveryCodecsPayloadsFit) {
  std::vector<std::string> names;
  for (const std::string_view name : Codec::Names()) names.emplace_back(name);
  // The widest that options make of them.
  names.insert(names.end(),
               {"innov-topk:k=4096", "innov-int4:least=1073741824"});
  for (const ParameterLayout& layout : Layouts()) {
    const FrameLimits limits = FrameLimitsOf(layout.size(), 2);
    for (const std::string& name : names) {
      const auto codec = Codec::Create(name, layout);
      ASSERT_TRUE(codec.ok()) << codec.status();
      for (int f = 1; f <= static_cast<int>(WireFormat::kPowerRows); ++f) {
        const size_t bytes = (*codec)->EncodedSize(static_cast<WireFormat>(f));
        EXPECT_LE(bytes, limits.body) << name << " in format " << f;
        EXPECT_LE(kMaxEdgeWindow * bytes, limits.queued) << name;
      }
    }
  }
}

TEST(FrameLimitsTest, EveryGradientFits) {
  for (const ParameterLayout& layout : Layouts()) {
    const size_t most = FrameLimitsOf(layout.size(), 2).body;
    const std::vector<float> gradient(layout.size(), 1);
    for (const std::string_view name : GradientCompressor::Names()) {
      const auto made = GradientCompressor::Create(name, layout);
      if (!made.ok()) continue;  // lgc needs networks
      GradientCompressor& method = **made;
      const AllReduceForm form = method.Form(0, 2);
      EXPECT_LE(form.floats * sizeof(float), most) << name;
      method.Begin({.step = 0, .rank = 0, .size = 2}, gradient);
      const SharedBytes message =
          form.leader == 0 ? method.MakeLeaderMessage() : SharedBytes();
      EXPECT_LE(message.size(), most) << name;
      std::vector<float> vector(form.floats);
      EXPECT_LE(method.Contribute(message, vector).size(), most) << name;
    }
  }
}

TEST(FrameLimitsTest, FramesOfAFixedSizeFitForAnyModel) {
  const size_t most = FrameLimitsOf(0, 2).body;
  EXPECT_LE(kStateChunkBytes, most);
  VirtualLoop network;
  VirtualPeerLoop loop(&network);
  std::unique_ptr<LinkProber> prober;
  size_t largest = 0;
  // The other end answers at once.
  prober = std::make_unique<LinkProber>(&loop, [&](PeerId, Frame frame) {
    largest = std::max(largest, frame.body.size());
    loop.Post([&, sent = std::move(frame)] {
      LinkProber other(&loop, [&](PeerId, Frame answer) {
        loop.Post([&, answer] { prober->OnFrame({2}, answer); });
        return true;
      });
      other.OnFrame({1}, sent);
    });
    return true;
  });
  prober->Measure({2}, [](std::optional<LinkMeasurement>) {});
  network.RunFor(LinkProber::kLimit);
  EXPECT_GE(largest, size_t{1} << 20) << "no load was sent";
  EXPECT_LE(largest, most);
}

// A peer of a small model cannot be made to hold what one of a large model may.
TEST(FrameLimitsTest, TheLimitsGrowWithTheModel) {
  const FrameLimits small = FrameLimitsOf(10'000, 4);
  EXPECT_LT(small.body, size_t{5} << 20);
  EXPECT_LT(small.queued, size_t{80} << 20);
  EXPECT_LT(small.in_flight, size_t{200} << 20);
  // The floats exceed 512 MiB.
  EXPECT_GT(FrameLimitsOf(200'000'000, 4).body, 4 * size_t{200'000'000});
  // The bytes are of payloads for and from all other peers at once.
  EXPECT_GT(FrameLimitsOf(1'000'000, 256).in_flight,
            2 * 255 * size_t{4'000'000});
}

}  // namespace frame_limits_test
}  // namespace gossamer
