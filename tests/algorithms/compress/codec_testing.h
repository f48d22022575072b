// Parts that the tests of codecs share: a layout with every kind of segment,
// messages that own their bytes, and norms.

#ifndef GOSSAMER_TESTS_ALGORITHMS_COMPRESS_CODEC_TESTING_H_
#define GOSSAMER_TESTS_ALGORITHMS_COMPRESS_CODEC_TESTING_H_

#include <cmath>
#include <iterator>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/base/rng.h"
#include "algorithms/compress/codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {

inline constexpr WireFormat kFormats[] = {
    WireFormat::kDenseF32, WireFormat::kDenseBf16, WireFormat::kInt8,
    WireFormat::kInt4,     WireFormat::kLm2,       WireFormat::kSign,
    WireFormat::kTopK,     WireFormat::kUnit};
inline bool HasScales(WireFormat format) {
  return format >= WireFormat::kInt8 && format < WireFormat::kUnit;
}
static_assert([] {
  size_t formats = 0;
  for (uint64_t n = 0; n <= kLastWireFormat; ++n) formats += IsValueFormat(n);
  return formats == std::size(kFormats);
}());

// Segments small and large, of one and two dimensions, with incomplete last
// blocks.
inline ParameterLayout Layout() {
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

inline std::shared_ptr<const Codec> Make(
    std::string_view name, const ParameterLayout& layout = Layout(),
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
          std::span<float> replica = {}, uint64_t key = 0)
      : format_(format), key_(key), storage_(codec.EncodedSize(format) + 1) {
    codec.Encode(format, x, replica, key, bytes());
  }
  std::span<std::byte> bytes() { return std::span(storage_).subspan(1); }
  Encoded encoded() const {
    return {format_, std::span(storage_).subspan(1), key_};
  }

 private:
  WireFormat format_ = WireFormat::kDenseF32;
  uint64_t key_ = 0;
  std::vector<std::byte> storage_;
};

inline std::vector<float> Gaussian(std::string_view name, size_t n) {
  std::vector<float> x(n);
  RngKey(1).Fold(name).FillGaussian(x);
  return x;
}

// Returns the vector that a receiver decodes from a message: 0 + decoded.
inline std::vector<float> Decoded(const Codec& codec, const Message& message,
                                  size_t n) {
  std::vector<float> difference(n), x(n);
  const Encoded encoded = message.encoded();
  codec.Complete(nullptr, &encoded, 1, difference, x);
  EXPECT_THAT(x, testing::Each(0.0f));
  return difference;
}

inline double Norm(const std::vector<float>& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return std::sqrt(sum);
}

inline double Distance(const std::vector<float>& x,
                       const std::vector<float>& y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double d = static_cast<double>(x[i]) - y[i];
    sum += d * d;
  }
  return std::sqrt(sum);
}

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_ALGORITHMS_COMPRESS_CODEC_TESTING_H_
