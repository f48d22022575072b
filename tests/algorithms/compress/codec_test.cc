// The properties of every codec: names and options, sizes, formats and
// policies, and the same bytes from every table of kernels.

#include "algorithms/compress/codec.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/algorithms/compress/codec_testing.h"

namespace gossamer {
namespace codec_test {

TEST(CodecTest, TheLargestStepSizeIsAtLeastTheirOwn) {
  for (const std::string_view name : Codec::Names()) {
    EXPECT_GE(Make(name)->largest_gamma(), Make(name)->gamma()) << name;
    EXPECT_LE(Make(name)->largest_gamma(), 1) << name;
  }
  const auto largest = [](const char* name) {
    return Make(name)->largest_gamma();
  };
  EXPECT_EQ(largest("innov-int4"), 1);
  EXPECT_EQ(largest("innov-sign"), 1);
  EXPECT_EQ(largest("innov-topk:k=256"), 512.0f / 4096);
  EXPECT_EQ(largest("innov-topk:k=256,fragments=3"), 512.0f / 4096);
  EXPECT_EQ(largest("innov-topk:k=4096"), 1);
  EXPECT_EQ(largest("dyna"), 0.2f);
}

TEST(CodecTest, PoliciesAreThoseOfTheDesign) {
  const auto expect = [&](const char* name, float gamma, bool replica,
                          WireFormat format, WireFormat first,
                          WireFormat resync) {
    const auto codec = Make(name);
    EXPECT_EQ(codec->name(), name);
    EXPECT_EQ(codec->needs_replica(), replica) << name;
    EXPECT_NEAR(codec->gamma(), gamma, 1e-6) << name;
    EXPECT_EQ(codec->format(), format) << name;
    EXPECT_EQ(codec->first_format(), first) << name;
    EXPECT_EQ(codec->resync_format(), resync) << name;
  };
  using enum WireFormat;
  expect("dense-f32", 1, false, kDenseF32, kDenseF32, kDenseF32);
  expect("dense-bf16", 1, false, kDenseBf16, kDenseBf16, kDenseBf16);
  expect("diff-int8", 1, false, kInt8, kInt8, kInt8);
  expect("innov-int8", 1, true, kInt8, kInt8, kDenseF32);
  expect("innov-int4", 1, true, kInt4, kInt8, kDenseF32);
  expect("innov-lm2", 1, true, kLm2, kInt8, kDenseF32);
  expect("innov-sign", 0.6f, true, kSign, kInt8, kDenseF32);
  expect("innov-topk", 0.03125f, true, kTopK, kInt8, kDenseF32);
  expect("auto", 1, true, kInt4, kInt8, kDenseF32);
  expect("dyna", 0.05f, true, kUnit, kInt8, kDenseF32);
  expect("power-gossip", 1, false, kPowerColumns, kPowerColumns, kPowerColumns);
  expect("innov-topk:k=1", 2.0f / 4096, true, kTopK, kInt8, kDenseF32);
  expect("innov-topk:k=3000", 1, true, kTopK, kInt8, kDenseF32);
}

TEST(CodecTest, AutoChoosesAmongInnovationsWithTheirOwnGamma) {
  const auto codec = Make("auto");
  EXPECT_THAT(codec->choices(),
              testing::ElementsAre(WireFormat::kInt8, WireFormat::kInt4,
                                   WireFormat::kLm2, WireFormat::kSign));
  for (size_t i = 1; i < codec->choices().size(); ++i) {
    EXPECT_LT(codec->EncodedSize(codec->choices()[i]),
              codec->EncodedSize(codec->choices()[i - 1]));
  }
  const std::pair<WireFormat, const char*> same[] = {
      {WireFormat::kInt8, "innov-int8"},
      {WireFormat::kInt4, "innov-int4"},
      {WireFormat::kLm2, "innov-lm2"},
      {WireFormat::kSign, "innov-sign"}};
  for (const auto& [format, name] : same) {
    EXPECT_EQ(codec->gamma() * codec->RelativeGamma(format),
              Make(name)->gamma());
  }
  EXPECT_TRUE(Make("innov-int4")->choices().empty());
}

TEST(CodecTest, WrongNamesAndOptionsAreRefusedWithTheKnownOnes) {
  const auto refused = [](const char* name, const std::string& said) {
    const auto made = Codec::Create(name, Layout());
    EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(made.status().message()),
                testing::AllOf(testing::HasSubstr(said)));
  };
  refused("zip", "zip");
  refused("moniqua", "no codec \"moniqua\": write \"innov-int4\"");
  refused("qsgd:levels=127", "no codec \"qsgd\": write \"innov-int4\"");
  refused("innov-int4:least=16,zstd=1",
          "option zstd of \"innov-int4\" is gone: leave zstd=1 out");
  refused("diff-int4", "write \"innov-int4\"");
  refused("squeeze-topk:k=3", "write \"innov-topk\"");
  refused("masked:rate=4", "no codec \"masked\": write \"innov-sign\"");
  refused("choco-sign", "no codec \"choco-sign\": write \"innov-sign\"");
  refused("zip:k=1", "unknown codec \"zip\"; known: ");
  for (const std::string_view known : Codec::Names()) {
    refused("zip", std::string(known));
  }
  refused("inov-int4", "(did you mean \"innov-int4\"?)");
  refused("auto:k=1", "no option \"k\"; known: least");
  refused("innov-int4:k=1", "no option \"k\"; known: fragments, least");
  for (const char* p : {"0", "65", "", "-1"}) {
    refused(("innov-int4:fragments=" + std::string(p)).c_str(), "1 to 64");
  }
  for (const char* n : {"0", "-1", "", "1k", "1073741825"}) {
    refused(("innov-int4:least=" + std::string(n)).c_str(), "1 to 1073741824");
    refused(("power-gossip:least=" + std::string(n)).c_str(),
            "1 to 1073741824");
  }
  refused("dense-f32:least=1", "no option \"least\"; known: fragments");
  refused("dense-f32:fragments=64", "a fragment has 128 at least");
  refused("innov-topk:k=7,k=7", "given twice");
  refused("innov-topk:64", "no option \"64\"; known: k, fragments, least");
  refused("innov-topk:levels=7",
          "no option \"levels\"; known: k, fragments, least");
  refused("innov-topk:k=7,,fragments=2", "no option \"\"");
  for (const char* k : {"", "=", "=0", "=4097", "=-1", "=64x", "= 64"}) {
    refused(("innov-topk:k" + std::string(k)).c_str(), "1 to 4096");
  }
  for (const char* decay : {"0.949", "1", "-0.5", "nan", "", "0.99x"}) {
    refused(("dyna:decay=" + std::string(decay)).c_str(),
            "a number from 0.95 to 0.999999");
  }
  refused("dyna:scale=0", "from 1e-06 to 1e+20");
  for (const char* floor : {"inf", "nan", "1e-12", "9e-7"}) {
    refused(("dyna:floor=" + std::string(floor)).c_str(),
            "from 1e-06 to 1e+20");
  }
  refused("dyna:scale=1e-5", "above the floor, 1e-05");
  refused("dyna:floor=2,scale=2", "above the floor, 2");
  refused("dyna:floor=1", "option scale of \"dyna\" is 1;");
  EXPECT_EQ(Make("dyna:scale=2e-6,floor=1e-6,decay=0.95")->gamma(), 0.05f);
}

TEST(CodecTest, FragmentsCoverTheVectorAndCodeTheirPartsAlone) {
  const ParameterLayout layout = Layout();
  const auto x = Gaussian("x", layout.size());
  for (const char* const name :
       {"dense-f32", "diff-int8", "innov-int4", "innov-topk"}) {
    const auto whole = Make(name, layout);
    EXPECT_EQ(whole->parts(), 1);
    EXPECT_EQ(whole->part(0).codec, whole.get());
    EXPECT_EQ(whole->part(0).extent, (Extent{0, layout.size()}));
    for (const int p : {2, 3, 7, 51}) {
      const auto codec =
          Make(std::string(name) + ":fragments=" + std::to_string(p), layout);
      ASSERT_EQ(codec->parts(), p);
      EXPECT_EQ(codec->gamma(), whole->gamma());
      size_t next = 0, largest = 0;
      for (int i = 0; i < p; ++i) {
        const Codec& part = *codec->part(i).codec;
        EXPECT_EQ(part.parts(), 1);
        const auto [offset, size] = codec->part(i).extent;
        EXPECT_EQ(part.size(), size);
        EXPECT_EQ(offset, next);
        EXPECT_GE(size, kBlockSize);
        next += size;
        largest = std::max(largest, part.EncodedSize(part.format()));
        const auto mine = std::span(x).subspan(offset, size);
        const Message message(part, part.format(), mine);
        EXPECT_TRUE(part.Validate(message.encoded()).ok());
        const auto y = Decoded(part, message, size);
        const std::vector<float> v(mine.begin(), mine.end());
        EXPECT_LT(Distance(v, y), 0.99 * Norm(v)) << name << " " << i;
      }
      EXPECT_EQ(next, layout.size());
      EXPECT_EQ(codec->EncodedSize(codec->format()), largest);
    }
  }
}

TEST(CodecTest, SizesFollowTheLayout) {
  const auto codec = Make("innov-int4");
  // 33·41 = 10 blocks and 73; 1152 = 9 blocks; 1024 = 8; 1025 = 8 and 1.
  const size_t scales = 2 * (11 + 9 + 8 + 9);
  const size_t raw = 2 * (41 + 2000 + 35);
  const size_t values = 1353 + 1152 + 1024 + 1025 + raw / 2;
  EXPECT_EQ(codec->EncodedSize(WireFormat::kDenseF32), 4 * values);
  EXPECT_EQ(codec->EncodedSize(WireFormat::kDenseBf16), 2 * values);
  EXPECT_EQ(codec->EncodedSize(WireFormat::kInt8),
            scales + (1280 + 76) + 1152 + 1024 + (1024 + 4) + raw);
  EXPECT_EQ(codec->EncodedSize(WireFormat::kInt4),
            scales + (640 + 40) + 576 + 512 + (512 + 4) + raw);
  EXPECT_EQ(codec->EncodedSize(WireFormat::kLm2),
            scales + (320 + 24) + 288 + 256 + (256 + 8) + raw);
  EXPECT_EQ(codec->EncodedSize(WireFormat::kSign),
            scales + (160 + 12) + 144 + 128 + (128 + 4) + raw);
  // Of 4096 values 64 are kept: 22 of 1353, 18 of 1152, 16 of 1024 and 17 of
  // 1025, at 20 bits each.
  EXPECT_EQ(codec->EncodedSize(WireFormat::kTopK),
            2 * 4 + 55 + 45 + 40 + (17 + 26) + raw);
}

// Top-k takes 20 bits a kept value and a scale per chunk, QSGD a scale per
// bucket.
TEST(CodecTest, LargeSegmentsCostTheBitsOfTheTable) {
  const size_t n = 4096 * 32;
  const ParameterLayout layout({{"g", Player::kGenerator, {32, 4096}, {}}});
  for (const auto& [name, bits] : {std::pair("dense-f32", 32.0),
                                   {"dense-bf16", 16.0},
                                   {"diff-int8", 8.125},
                                   {"innov-lm2", 2.125},
                                   {"innov-sign", 1.125},
                                   {"innov-topk", 0.31640625},
                                   {"innov-topk:k=1024", 5.00390625},
                                   {"innov-int8", 8.125},
                                   {"innov-int4", 4.125},
                                   {"dyna", 1.0}}) {
    const auto codec = Make(name, layout);
    EXPECT_EQ(codec->EncodedSize(codec->format()), n * bits / 8) << name;
  }
}

TEST(CodecTest, EmptyLayoutAndSingleParameterWork) {
  for (const std::string_view name : Codec::Names()) {
    if (Make(name)->memory() == EdgeMemory::kShared) continue;
    const auto empty = Make(name, ParameterLayout());
    EXPECT_EQ(empty->EncodedSize(empty->format()), 0u);
    EXPECT_TRUE(empty->Validate({empty->format(), {}}).ok());
    const auto scalar =
        Make(name, ParameterLayout({{"g", Player::kGenerator, {}, {}}}));
    const Message message(*scalar, scalar->format(), std::vector{0.5f});
    EXPECT_EQ(Decoded(*scalar, message, 1)[0], 0.5f);
  }
}

TEST(CodecTest, SmallAndOneDimensionalSegmentsAreBf16InQuantizedFormats) {
  const ParameterLayout layout = Layout();
  const auto x = Gaussian("x", layout.size());
  for (const auto& [name, least] :
       {std::pair("diff-int8", 1024u), {"diff-int8:least=16", 16u}}) {
    const auto codec = Make(name, layout);
    for (const WireFormat format : kFormats) {
      if (format <= WireFormat::kDenseBf16) continue;
      const auto y = Decoded(*codec, Message(*codec, format, x), layout.size());
      for (const Segment& segment : layout.segments()) {
        const bool raw =
            segment.shape.size() < 2 || segment.extent.size < least;
        bool bf16 = true;
        for (size_t i = 0; i < segment.extent.size; ++i) {
          const float a = x[segment.extent.offset + i];
          const float b = y[segment.extent.offset + i];
          bf16 &= std::abs(a - b) <= std::abs(a) * 0x1p-8f;
        }
        EXPECT_EQ(bf16, raw) << name << " " << segment.name;
      }
    }
  }
}

TEST(CodecTest, TablesGiveTheSameBytesAndBits) {
  const size_t n = Layout().size();
  for (const WireFormat format : kFormats) {
    std::vector<std::vector<std::byte>> payloads;
    std::vector<std::vector<float>> results;
    for (const Kernels* kernels : AvailableKernels()) {
      const auto codec = Make("innov-int4", Layout(), *kernels);
      std::vector<float> replica(n), difference(n);
      auto x = Gaussian("x", n);
      for (int round = 0; round < 3; ++round) {
        Message mine(*codec, format, x, replica);
        const Message theirs(*codec, kFormats[round + 3],
                             Gaussian("y" + std::to_string(round), n));
        const Encoded m = mine.encoded(), t = theirs.encoded();
        codec->Complete(&m, &t, 0.3f, difference, x);
        if (round == 2) {
          payloads.emplace_back(m.bytes.begin(), m.bytes.end());
        }
      }
      results.push_back(x);
      EXPECT_EQ(payloads.front(), payloads.back()) << kernels->name;
      EXPECT_EQ(results.front(), results.back()) << kernels->name;
    }
  }
}

// An edge announces the bytes of a payload in 32 bits.
TEST(CodecTest, APayloadThatIsTooLargeIsRefused) {
  const ParameterLayout layout(
      {{"g.dense", Player::kGenerator, {1 << 15, 1 << 15}, {}}});
  const absl::Status refused = Codec::Create("innov-int4", layout).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()),
              ::testing::HasSubstr("write innov-int4:fragments=3"));
}

}  // namespace codec_test
}  // namespace gossamer
