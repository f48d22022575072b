// QSGD's coder and its payloads, as several tests want them.

#ifndef GOSSAMER_TESTS_ALGORITHMS_COMPRESS_QSGD_TESTING_H_
#define GOSSAMER_TESTS_ALGORITHMS_COMPRESS_QSGD_TESTING_H_

#include <span>
#include <string_view>
#include <vector>

#include "algorithms/compress/options.h"
#include "algorithms/compress/qsgd.h"
#include "gtest/gtest.h"
#include "tests/algorithms/compress/codec_testing.h"

namespace gossamer {

// The options of a text such as "levels=1,coding=gamma".
inline QsgdOptions OptionsOfQsgd(std::string_view text) {
  QsgdOptions options;
  const absl::Status read = ReadOptions(
      {.whole = text, .name = "qsgd", .options = text}, FieldsOf(options));
  EXPECT_TRUE(read.ok()) << read;
  return options;
}

inline QsgdCoder MakeQsgd(std::string_view options,
                          const ParameterLayout& layout = Layout(),
                          const Kernels& kernels = HostKernels()) {
  return QsgdCoder(OptionsOfQsgd(options), layout, kernels);
}

using Bytes = std::vector<std::byte>;

inline Bytes Coded(const QsgdCoder& coder, std::span<const float> x,
                   uint64_t key = 0) {
  Bytes bytes(coder.size());
  coder.Encode(x, key, bytes);
  return bytes;
}

// The bytes that a packer makes of a payload; empty if that travels as it is.
inline Bytes Packed(const EliasPacker& packer,
                    std::span<const std::byte> payload) {
  Bytes out(payload.size());
  out.resize(packer.Pack(payload, out));
  return out;
}

inline std::vector<float> Decoded(const QsgdCoder& coder,
                                  std::span<const std::byte> payload,
                                  size_t n) {
  std::vector<float> sum(n);
  coder.Add(payload, sum);
  return sum;
}

// Vectors with few and with many levels that are not 0.
inline std::vector<std::vector<float>> Vectors(size_t n) {
  std::vector<float> gaussian = Gaussian("x", n), spikes(n), equal(n, 1.0f),
                     zero(n), last(n);
  for (size_t i = 0; i < n; i += 97) spikes[i] = i % 2 ? -2.0f : 3.0f;
  last[n - 1] = -1;
  return {gaussian, spikes, equal, zero, last};
}

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_ALGORITHMS_COMPRESS_QSGD_TESTING_H_
