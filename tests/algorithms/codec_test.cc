// Codecs: what they lose, that both ends see the same, and that bytes from
// outside cannot hurt.  The byte layout itself is in codec_golden_test.cc.

#include "algorithms/codec/codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/rng.h"

namespace gossamer {
namespace {

constexpr WireFormat kFormats[] = {WireFormat::kDenseF32,
                                   WireFormat::kDenseBf16, WireFormat::kInt8,
                                   WireFormat::kInt4};

// Small and large, one- and two-dimensional, with tails of blocks.
ParameterLayout Layout() {
  const auto segment = [](const char* name, Player player,
                          std::vector<int64_t> shape) {
    return Segment{name, player, std::move(shape), {}};
  };
  return ParameterLayout({
      segment("g.dense", Player::kGenerator, {33, 41}),
      segment("g.bias", Player::kGenerator, {41}),
      segment("g.long", Player::kGenerator, {2000}),
      segment("g.conv", Player::kGenerator, {16, 8, 3, 3}),
      segment("d.small", Player::kDiscriminator, {5, 7}),
      segment("d.dense", Player::kDiscriminator, {64, 16}),
      segment("d.out", Player::kDiscriminator, {1, 1025}),
  });
}

std::shared_ptr<const Codec> Make(std::string_view name,
                                  const ParameterLayout& layout = Layout(),
                                  const Kernels& kernels = HostKernels()) {
  auto made = Codec::Create(name, layout, kernels);
  EXPECT_TRUE(made.ok()) << made.status();
  return std::move(made).value();
}

// An encoded snapshot that owns its bytes; they begin at an odd address.
class Message {
 public:
  Message() = default;
  Message(const Codec& codec, WireFormat format, std::span<const float> x,
          std::span<float> replica = {})
      : format_(format), storage_(codec.EncodedSize(format) + 1) {
    codec.Encode(format, x, replica, bytes());
  }
  std::span<std::byte> bytes() { return std::span(storage_).subspan(1); }
  Encoded encoded() const { return {format_, std::span(storage_).subspan(1)}; }

 private:
  WireFormat format_ = WireFormat::kDenseF32;
  std::vector<std::byte> storage_;
};

std::vector<float> Gaussian(std::string_view name, size_t n) {
  std::vector<float> x(n);
  RngKey(1).Fold(name).FillGaussian(x);
  return x;
}

// What the receiver makes of a message: 0 + decoded.
std::vector<float> Decoded(const Codec& codec, const Message& message,
                           size_t n) {
  std::vector<float> difference(n), x(n);
  const Encoded encoded = message.encoded();
  codec.Complete(nullptr, &encoded, 1, difference, x);
  EXPECT_THAT(x, testing::Each(0.0f));
  return difference;
}

double Norm(const std::vector<float>& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return std::sqrt(sum);
}

double Distance(const std::vector<float>& x, const std::vector<float>& y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double d = static_cast<double>(x[i]) - y[i];
    sum += d * d;
  }
  return std::sqrt(sum);
}

TEST(CodecTest, PoliciesAreThoseOfTheDesign) {
  const auto expect = [](const char* name, bool replica, WireFormat format,
                         WireFormat first, WireFormat resync) {
    const auto codec = Make(name);
    EXPECT_EQ(codec->name(), name);
    EXPECT_EQ(codec->needs_replica(), replica) << name;
    EXPECT_EQ(codec->gamma(), 1) << name;
    EXPECT_EQ(codec->format(), format) << name;
    EXPECT_EQ(codec->first_format(), first) << name;
    EXPECT_EQ(codec->resync_format(), resync) << name;
  };
  using enum WireFormat;
  expect("dense-f32", false, kDenseF32, kDenseF32, kDenseF32);
  expect("dense-bf16", false, kDenseBf16, kDenseBf16, kDenseBf16);
  expect("diff-int8", false, kInt8, kInt8, kInt8);
  expect("innov-int8", true, kInt8, kInt8, kDenseF32);
  expect("innov-int4", true, kInt4, kInt8, kDenseF32);
  EXPECT_EQ(Codec::Names().size(), 5u);
  const auto unknown = Codec::Create("zip", Layout());
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.status().message()),
              testing::AllOf(testing::HasSubstr("zip"),
                             testing::HasSubstr("diff-int8, innov-int8")));
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
}

TEST(CodecTest, EmptyLayoutAndSingleParameterWork) {
  for (const std::string_view name : Codec::Names()) {
    const auto empty = Make(name, ParameterLayout());
    EXPECT_EQ(empty->EncodedSize(empty->format()), 0u);
    EXPECT_TRUE(empty->Validate({empty->format(), {}}).ok());
    const auto scalar =
        Make(name, ParameterLayout({{"g", Player::kGenerator, {}, {}}}));
    const Message message(*scalar, scalar->format(), std::vector{0.5f});
    EXPECT_EQ(Decoded(*scalar, message, 1)[0], 0.5f);
  }
}

// Distributions that quantizers find easy and hard.
std::vector<std::pair<std::string, std::vector<float>>> Distributions(
    size_t n) {
  constexpr float kHuge = std::numeric_limits<float>::max();
  const RngKey key(2);
  std::vector<float> gaussian = Gaussian("gaussian", n), laplace(n), spike(n),
                     tiny(n), denormal(n), huge(n), mixed = gaussian;
  for (size_t i = 0; i < n; ++i) {
    const double u = key.Uniform(i) - 0.5;
    laplace[i] = static_cast<float>(
        std::copysign(-std::log(1 - 2 * std::abs(u) + 1e-12), u));
    tiny[i] = gaussian[i] * 1e-30f;
    denormal[i] = gaussian[i] * 1e-40f;
    huge[i] = gaussian[i] > 0 ? kHuge : -kHuge;
    mixed[i] = gaussian[i] *
               static_cast<float>(std::pow(10, 60 * key.Uniform(i / 128) - 30));
  }
  spike[n / 2] = -3;
  spike[7] = 1e-3f;
  return {{"gaussian", gaussian}, {"laplace", laplace},
          {"spike", spike},       {"zero", std::vector<float>(n)},
          {"tiny", tiny},         {"denormal", denormal},
          {"huge", huge},         {"mixed", mixed}};
}

TEST(CodecTest, IsAContraction) {
  const size_t n = Layout().size();
  const auto codec = Make("diff-int8");
  for (const auto& [name, x] : Distributions(n)) {
    for (const WireFormat format : kFormats) {
      SCOPED_TRACE(name + " in format " +
                   std::to_string(static_cast<int>(format)));
      const Message message(*codec, format, x);
      EXPECT_TRUE(codec->Validate(message.encoded()).ok())
          << codec->Validate(message.encoded());
      const auto y = Decoded(*codec, message, n);
      ASSERT_TRUE(HostKernels().all_finite(y));
      const double lost = Distance(x, y), norm = Norm(x);
      if (name == "zero") {
        EXPECT_EQ(lost, 0);
      } else if (name == "denormal") {
        EXPECT_LE(lost, norm);  // quantized blocks below the range are zeros
      } else {
        EXPECT_LT(lost, norm);
      }
    }
  }
}

TEST(CodecTest, LosesNoMoreThanHalfAStepOfEachBlock) {
  const size_t n = 128 * 32 + 77;
  const ParameterLayout layout({{"g", Player::kGenerator, {1, 4173}, {}}});
  ASSERT_EQ(layout.size(), n);
  const auto codec = Make("diff-int8", layout);
  for (const auto& [name, x] : Distributions(n)) {
    if (name == "huge" || name == "denormal") continue;
    for (const auto& [format, levels] :
         {std::pair(WireFormat::kInt8, 127), std::pair(WireFormat::kInt4, 7)}) {
      const auto y = Decoded(*codec, Message(*codec, format, x), n);
      for (size_t b = 0; b < n; b += kBlockSize) {
        const size_t end = std::min(b + kBlockSize, n);
        float absmax = 0;
        for (size_t i = b; i < end; ++i) {
          absmax = std::max(absmax, std::abs(x[i]));
        }
        // The scale is rounded up to 8 bits.
        const double step = absmax / levels * (1 + 0x1p-7) + 0x1p-126;
        for (size_t i = b; i < end; ++i) {
          ASSERT_LE(std::abs(static_cast<double>(x[i]) - y[i]),
                    step * (0.5 + 1e-4))
              << name << " " << i;
        }
      }
    }
    const auto dense =
        Decoded(*codec, Message(*codec, WireFormat::kDenseBf16, x), n);
    for (size_t i = 0; i < n; ++i) {
      ASSERT_LE(std::abs(x[i] - dense[i]), std::abs(x[i]) * 0x1p-8f) << i;
    }
    EXPECT_EQ(Decoded(*codec, Message(*codec, WireFormat::kDenseF32, x), n), x);
  }
}

TEST(CodecTest, QuantizationNoiseIsThatOfTheTables) {
  const ParameterLayout layout({{"g", Player::kGenerator, {128, 1024}, {}}});
  const auto codec = Make("diff-int8", layout);
  const auto x = Gaussian("large", layout.size());
  const auto relative = [&](WireFormat format) {
    const auto y = Decoded(*codec, Message(*codec, format, x), layout.size());
    return std::pow(Distance(x, y) / Norm(x), 2);
  };
  EXPECT_NEAR(relative(WireFormat::kInt8), 4.5e-5, 0.6e-5);
  EXPECT_NEAR(relative(WireFormat::kInt4), 1.45e-2, 0.15e-2);
}

TEST(CodecTest, SmallAndOneDimensionalSegmentsAreBf16InQuantizedFormats) {
  const ParameterLayout layout = Layout();
  const auto codec = Make("diff-int8", layout);
  const auto x = Gaussian("x", layout.size());
  for (const WireFormat format : {WireFormat::kInt8, WireFormat::kInt4}) {
    const auto y = Decoded(*codec, Message(*codec, format, x), layout.size());
    for (const Segment& segment : layout.segments()) {
      const bool raw = segment.shape.size() < 2 || segment.extent.size < 1024;
      bool bf16 = true;
      for (size_t i = 0; i < segment.extent.size; ++i) {
        const float a = x[segment.extent.offset + i];
        const float b = y[segment.extent.offset + i];
        bf16 &= std::abs(a - b) <= std::abs(a) * 0x1p-8f;
      }
      EXPECT_EQ(bf16, raw) << segment.name;
    }
  }
}

TEST(CodecTest, ReplicaIsTheSumOfWhatTheReceiverDecodedBitForBit) {
  const ParameterLayout layout({{"g.w", Player::kGenerator, {9, 127}, {}},
                                {"g.b", Player::kGenerator, {9}, {}}});
  const size_t n = layout.size();
  for (const char* name : {"innov-int8", "innov-int4"}) {
    const auto codec = Make(name, layout);
    auto x = Gaussian("x", n);
    std::vector<float> replica(n), received(n), unused(n);
    for (int round = 0; round < 1000; ++round) {
      const auto step = Gaussian("step" + std::to_string(round), n);
      for (size_t i = 0; i < n; ++i) x[i] += 0.01f * step[i];
      const Message message(
          *codec, round == 0 ? codec->first_format() : codec->format(), x,
          replica);
      const Encoded encoded = message.encoded();
      codec->Complete(nullptr, &encoded, 1, received, unused);
      for (size_t i = 0; i < n; ++i) {
        ASSERT_EQ(std::bit_cast<uint32_t>(replica[i]),
                  std::bit_cast<uint32_t>(received[i]))
            << name << " round " << round << " at " << i;
      }
    }
    // And follows x to within what one step of quantization leaves.
    EXPECT_LT(Distance(x, replica), 0.01 * std::sqrt(n)) << name;
  }
}

TEST(CodecTest, ReplicaOfHugeValuesStaysFinite) {
  const size_t n = Layout().size();
  for (const WireFormat format : kFormats) {
    const auto codec = Make("innov-int4");
    std::vector<float> x(n, std::numeric_limits<float>::max()), replica(n);
    for (int round = 0; round < 6; ++round) {
      for (float& v : x) v = -v;
      const Message message(*codec, format, x, replica);
      EXPECT_TRUE(codec->Validate(message.encoded()).ok());
      ASSERT_TRUE(HostKernels().all_finite(replica));
    }
  }
}

// One end of an edge, without its protocol.
struct End {
  End(std::string_view name, size_t n, std::string_view start)
      : codec(Make(name)), x(Gaussian(start, n)), difference(n), replica(n) {}
  Message Emit(WireFormat format) {
    return Message(*codec, format, x, replica);
  }
  void Complete(const Message* mine, const Message* theirs, float c) {
    Encoded m, t;
    if (mine != nullptr) m = mine->encoded();
    if (theirs != nullptr) t = theirs->encoded();
    codec->Complete(mine ? &m : nullptr, theirs ? &t : nullptr, c, difference,
                    x);
  }
  std::shared_ptr<const Codec> codec;
  std::vector<float> x, difference, replica;
};

TEST(CodecTest, DifferencesOfTheTwoEndsAreOppositeWhateverIsExchanged) {
  const size_t n = Layout().size();
  End a("innov-int4", n, "a"), b("innov-int8", n, "b");
  const RngKey key(4);
  for (uint64_t round = 0; round < 60; ++round) {
    const WireFormat fa = round == 0 ? a.codec->first_format()
                          : round == 30
                              ? a.codec->resync_format()
                              : kFormats[key.Fold("a").Below(4, round)];
    const WireFormat fb = kFormats[key.Fold("b").Below(4, round)];
    const uint64_t skips = key.Fold("skip").Below(4, round);
    const bool from_a = skips != 1, from_b = skips != 2;
    Message ma, mb;
    if (from_a) ma = a.Emit(fa);
    if (from_b) mb = b.Emit(fb);
    const auto xa = a.x, xb = b.x;
    a.Complete(from_a ? &ma : nullptr, from_b ? &mb : nullptr, 0.4f);
    b.Complete(from_b ? &mb : nullptr, from_a ? &ma : nullptr, 0.4f);
    for (size_t i = 0; i < n; ++i) {
      ASSERT_EQ(a.difference[i], -b.difference[i]) << round << " " << i;
      const bool both = from_a && from_b;
      ASSERT_EQ(a.x[i], both ? xa[i] + 0.4f * a.difference[i] : xa[i]);
      ASSERT_EQ(b.x[i], both ? xb[i] + 0.4f * b.difference[i] : xb[i]);
    }
  }
}

TEST(CodecTest, StatelessCorrectionsAreOppositeAndNeedBothPayloads) {
  const size_t n = Layout().size();
  for (const char* name : {"dense-f32", "dense-bf16", "diff-int8"}) {
    const auto codec = Make(name);
    const Message ma(*codec, codec->format(), Gaussian("a", n));
    const Message mb(*codec, codec->format(), Gaussian("b", n));
    const Encoded a = ma.encoded(), b = mb.encoded();
    std::vector<float> here(n), there(n);
    codec->Complete(&a, nullptr, 0.5f, {}, here);
    codec->Complete(nullptr, &a, 0.5f, {}, here);
    EXPECT_THAT(here, testing::Each(0.0f));
    codec->Complete(&a, &b, 0.5f, {}, here);
    codec->Complete(&b, &a, 0.5f, {}, there);
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(here[i], -there[i]);
    EXPECT_GT(Norm(here), 1);
  }
}

TEST(CodecTest, MixingOnARingReachesConsensusAndKeepsTheMean) {
  constexpr int kPeers = 6;
  const ParameterLayout layout({{"g.w", Player::kGenerator, {8, 128}, {}},
                                {"g.b", Player::kGenerator, {8}, {}}});
  const size_t n = layout.size();
  for (const auto& [name, floor] :
       {std::pair("dense-f32", 1e-12), std::pair("dense-bf16", 1e-4),
        std::pair("diff-int8", 1e-3), std::pair("innov-int8", 1e-12),
        std::pair("innov-int4", 1e-12)}) {
    const auto codec = Make(name, layout);
    const bool replicas = codec->needs_replica();
    std::vector<std::vector<float>> x(kPeers);
    std::vector<double> mean(n);
    for (int p = 0; p < kPeers; ++p) {
      x[p] = Gaussian("peer" + std::to_string(p), n);
      for (size_t i = 0; i < n; ++i) mean[i] += x[p][i] / double{kPeers};
    }
    // [p][0] and [p][1]: peer p's edges to its left and its right.
    std::vector<float> replica[kPeers][2], difference[kPeers][2];
    for (int p = 0; p < kPeers && replicas; ++p) {
      for (int side : {0, 1}) {
        replica[p][side].resize(n), difference[p][side].resize(n);
      }
    }
    for (int round = 0; round < 120; ++round) {
      const WireFormat format =
          round == 0 ? codec->first_format() : codec->format();
      Message sent[kPeers][2];
      for (int p = 0; p < kPeers; ++p) {
        for (int side : {0, 1}) {
          sent[p][side] = Message(*codec, format, x[p], replica[p][side]);
        }
      }
      for (int p = 0; p < kPeers; ++p) {
        for (int side : {0, 1}) {
          const int q = (p + (side == 0 ? kPeers - 1 : 1)) % kPeers;
          const Encoded mine = sent[p][side].encoded();
          const Encoded theirs = sent[q][1 - side].encoded();
          codec->Complete(&mine, &theirs, codec->gamma() / 3,
                          difference[p][side], x[p]);
        }
      }
    }
    double consensus = 0, drift = 0;
    for (size_t i = 0; i < n; ++i) {
      double now = 0;
      for (int p = 0; p < kPeers; ++p) now += x[p][i] / double{kPeers};
      for (int p = 0; p < kPeers; ++p) {
        consensus += std::pow(x[p][i] - now, 2) / (kPeers * double(n));
      }
      drift = std::max(drift, std::abs(now - mean[i]));
    }
    EXPECT_LT(consensus, floor) << name;
    EXPECT_LT(drift, 2e-6) << name;
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
        const Message theirs(*codec, WireFormat::kInt4,
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

TEST(HostileBytesTest, WrongFormatsAndSizesAreDataLoss) {
  const auto codec = Make("innov-int4");
  std::vector<std::byte> bytes(1 << 16);
  for (const int format : {0, 5, 77, 255}) {
    EXPECT_EQ(codec->Validate({static_cast<WireFormat>(format), bytes}).code(),
              absl::StatusCode::kDataLoss);
  }
  for (const WireFormat format : kFormats) {
    const size_t size = codec->EncodedSize(format);
    for (const size_t wrong : {size_t{0}, size_t{1}, size - 1, size + 1}) {
      EXPECT_EQ(codec->Validate({format, std::span(bytes).first(wrong)}).code(),
                absl::StatusCode::kDataLoss);
    }
    EXPECT_TRUE(codec->Validate({format, std::span(bytes).first(size)}).ok())
        << "zeros are a valid payload of every format";
  }
}

TEST(HostileBytesTest, BadScalesAreDataLoss) {
  const auto codec = Make("innov-int4");
  Message message(*codec, WireFormat::kInt4, Gaussian("x", Layout().size()));
  for (const int bits : {0x8000, 0xbf80, 0x7f80, 0x7fc0, 0xffff, 0x7f7f, 0x7180,
                         0x0001, 0x007f}) {
    for (const size_t scale : {0, 17, 36}) {
      Message bad = message;
      bad.bytes()[2 * scale] = static_cast<std::byte>(bits & 0xff);
      bad.bytes()[2 * scale + 1] = static_cast<std::byte>(bits >> 8);
      const absl::Status status = codec->Validate(bad.encoded());
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << bits;
      EXPECT_THAT(std::string(status.message()), testing::HasSubstr("scale"));
    }
  }
}

TEST(HostileBytesTest, PaddingMustBeZero) {
  const auto codec = Make("innov-int4");
  for (const WireFormat format : {WireFormat::kInt8, WireFormat::kInt4}) {
    Message message(*codec, format, Gaussian("x", Layout().size()));
    // The last word of d.out's codes holds one value.
    const size_t raw = 2 * (41 + 2000 + 35);
    const size_t end = message.bytes().size() - raw;
    ASSERT_TRUE(codec->Validate(message.encoded()).ok());
    message.bytes()[end - 1] = std::byte{0x10};
    const absl::Status status = codec->Validate(message.encoded());
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("padding"));
  }
}

TEST(HostileBytesTest, WhateverValidatesKeepsFiniteWhatIsFinite) {
  const size_t n = Layout().size();
  const auto codec = Make("innov-int4");
  const RngKey key(6);
  std::vector<float> difference = Gaussian("d", n), x = Gaussian("x", n);
  int accepted = 0, refused = 0;
  for (uint64_t trial = 0; trial < 400; ++trial) {
    const WireFormat format = kFormats[trial % 4];
    Message message(*codec, format, Gaussian("y", n));
    const RngKey draw = key.Fold(trial);
    const bool all = trial % 5 == 0;
    const size_t changes = all ? message.bytes().size() : 1 + draw.Below(4, 0);
    for (uint64_t k = 0; k < changes; ++k) {
      const size_t at =
          all ? k : draw.Fold("at").Below(message.bytes().size(), k);
      message.bytes()[at] =
          static_cast<std::byte>(draw.Fold("to").Below(256, k));
    }
    const Encoded encoded = message.encoded();
    if (!codec->Validate(encoded).ok()) {
      ++refused;
      continue;
    }
    ++accepted;
    codec->Complete(nullptr, &encoded, 1, difference, x);
    codec->Complete(&encoded, nullptr, 1, difference, x);
    codec->Complete(&encoded, &encoded, 1, difference, x);
    ASSERT_TRUE(HostKernels().all_finite(difference));
    ASSERT_TRUE(HostKernels().all_finite(x));
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 100);
}

TEST(HostileBytesTest, ManyLargestPayloadsCannotOverflowTheDifference) {
  const size_t n = Layout().size();
  const auto codec = Make("innov-int4");
  const std::vector<float> largest(n, kMaxMagnitude);
  for (const WireFormat format : kFormats) {
    const Message message(*codec, format, largest);
    const Encoded encoded = message.encoded();
    ASSERT_TRUE(codec->Validate(encoded).ok());
    // Where the sum stalls, after more payloads than a test can send.
    std::vector<float> difference(n, 0x1p127f), x(n);
    for (int k = 0; k < 1000; ++k) {
      codec->Complete(nullptr, &encoded, 1, difference, x);
    }
    EXPECT_TRUE(HostKernels().all_finite(difference));
  }
}

}  // namespace
}  // namespace gossamer
