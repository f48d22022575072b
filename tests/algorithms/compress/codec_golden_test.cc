// The bytes of every wire format, kept under tests/golden/: peers of different
// builds and machines must agree on them.
//
// After a change of format that is meant (and a new WireFormat value for it):
//   GOSSAMER_WRITE_GOLDEN=1 codec_test --gtest_filter='Golden*'
// in the root of the source tree.

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "algorithms/base/rng.h"
#include "algorithms/compress/codec.h"
#include "gtest/gtest.h"
#include "tests/algorithms/golden_file.h"
#include "tests/algorithms/kernels/device_as_host.h"

namespace gossamer {
namespace codec_golden_test {

ParameterLayout Layout() {
  return ParameterLayout({{"g.bias", Player::kGenerator, {11}, {}},
                          {"g.dense", Player::kGenerator, {12, 100}, {}},
                          {"g.scale", Player::kGenerator, {3, 3}, {}},
                          {"d.dense", Player::kDiscriminator, {32, 32}, {}},
                          {"d.bias", Player::kDiscriminator, {2}, {}}});
}

// Only exact arithmetic makes the values, so that no library's rounding is in
// the files.  Scales differ from block to block, and one block is zero.
std::vector<float> Values(size_t n) {
  const RngKey key = RngKey(2024).Fold("golden");
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) {
    const auto integer = static_cast<int>(key.Below(20001, i)) - 10000;
    const int exponent = static_cast<int>(key.Fold("scale").Below(60, i / 64));
    x[i] = std::ldexp(static_cast<float>(integer), exponent - 50);
    if (i >= 139 && i < 267) x[i] = 0;
  }
  return x;
}

void ExpectGolden(const std::string& file, std::span<const std::byte> bytes) {
  const std::string kept = GoldenBytes(file, bytes);
  ASSERT_EQ(kept.size(), bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) {
    ASSERT_EQ(static_cast<std::byte>(kept[i]), bytes[i]) << "byte " << i;
  }
}

struct Golden {
  const char* file;
  WireFormat format;
};

class GoldenTest : public testing::TestWithParam<Golden> {};

INSTANTIATE_TEST_SUITE_P(
    Formats, GoldenTest,
    testing::Values(
        Golden{"dense_f32", WireFormat::kDenseF32},
        Golden{"dense_bf16", WireFormat::kDenseBf16},
        Golden{"int8", WireFormat::kInt8}, Golden{"int4", WireFormat::kInt4},
        Golden{"lm2", WireFormat::kLm2}, Golden{"sign", WireFormat::kSign},
        Golden{"topk", WireFormat::kTopK}, Golden{"unit", WireFormat::kUnit}),
    [](const auto& info) { return std::string(info.param.file); });

// Written by the host's kernels and by a device's, and read by both alike.
TEST_P(GoldenTest, BytesAreThoseOfTheFile) {
  const ParameterLayout layout = Layout();
  std::vector<std::vector<float>> decoded;
  for (const Kernels* kernels : {&HostKernels(), &TestedDevice()}) {
    SCOPED_TRACE(kernels->name);
    const auto codec = Codec::Create("innov-int4", layout, *kernels).value();
    std::vector<std::byte> bytes(codec->EncodedSize(GetParam().format));
    // The second payload of an edge: an innovation against a replica.
    std::vector<float> x = Values(layout.size()), replica(layout.size());
    std::vector<std::byte> first(codec->EncodedSize(codec->first_format()));
    codec->Encode(codec->first_format(), x, replica, 1, first);
    for (float& value : x) value *= 1.25f;
    codec->Encode(GetParam().format, x, replica, 2, bytes);

    ExpectGolden(std::string("codec_") + GetParam().file, bytes);
    const Encoded payload = {GetParam().format, bytes, 2};
    EXPECT_TRUE(codec->Validate(payload).ok());
    decoded.emplace_back(layout.size());
    codec->Complete(nullptr, &payload, 1, decoded.back(), x);
  }
  EXPECT_EQ(decoded[0], decoded[1]);
}

// Formats of codecs whose ends share a memory: the last payload of one end in
// that format after four exchanges in turn, when there is something to
// remember.
struct SharedGolden {
  const char* file;
  const char* codec;
  WireFormat format;
};

class SharedGoldenTest : public testing::TestWithParam<SharedGolden> {};

INSTANTIATE_TEST_SUITE_P(
    Formats, SharedGoldenTest,
    testing::Values(SharedGolden{"power_columns", "power-gossip",
                                 WireFormat::kPowerColumns},
                    SharedGolden{"power_rows", "power-gossip",
                                 WireFormat::kPowerRows}),
    [](const auto& info) { return std::string(info.param.file); });

TEST_P(SharedGoldenTest, BytesAreThoseOfTheFile) {
  for (const Kernels* kernels : {&HostKernels(), &TestedDevice()}) {
    SCOPED_TRACE(kernels->name);
    const ParameterLayout layout = Layout();
    const auto codec =
        Codec::Create(GetParam().codec, layout, *kernels).value();
    std::vector<float> x[2], memory[2];
    for (int end = 0; end < 2; ++end) {
      memory[end] = std::vector<float>(codec->memory_size());
      const RngKey key =
          RngKey(2024).Fold("shared").Fold(static_cast<uint64_t>(end));
      for (size_t i = 0; i < layout.size(); ++i) {
        x[end].push_back(static_cast<float>(key.Below(65, i)) - 32);
      }
    }
    std::vector<std::byte> bytes;
    for (uint64_t turn = 0; turn < 4; ++turn) {
      std::vector<std::byte> sent[2];
      Encoded payloads[2];
      for (int end = 0; end < 2; ++end) {
        const WireFormat format = codec->FormatFor(memory[end]);
        sent[end].resize(codec->EncodedSize(format));
        codec->Encode(format, x[end], memory[end], turn, sent[end]);
        payloads[end] = {format, sent[end], turn};
        ASSERT_TRUE(codec->Validate(payloads[end]).ok());
      }
      if (turn > 0 && payloads[0].format == GetParam().format) bytes = sent[0];
      codec->Complete(&payloads[0], &payloads[1], 0.5f, memory[0], x[0]);
      codec->Complete(&payloads[1], &payloads[0], 0.5f, memory[1], x[1]);
    }
    ExpectGolden(std::string("codec_") + GetParam().file, bytes);
  }
}

}  // namespace codec_golden_test
}  // namespace gossamer
