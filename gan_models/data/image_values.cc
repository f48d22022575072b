#include "gan_models/data/image_values.h"

#include <cstddef>

namespace gossamer {
namespace {

constexpr float kLevel = 2.0f / 256;

// Four 16-bit uniforms to a draw.
void Dequantise(RngKey key, std::span<float> image) {
  for (size_t j = 0; j < image.size(); j += 4) {
    uint64_t bits = key.Bits(j / 4);
    for (size_t k = 0; k < 4; ++k, bits >>= 16) {
      image[j + k] += static_cast<float>(bits & 0xffff) * (kLevel / 65536);
    }
  }
}

}  // namespace

void FillForTraining(std::span<const uint8_t> image, int side, bool flip,
                     RngKey noise, std::span<float> out) {
  const auto columns = static_cast<size_t>(side);
  for (size_t row = 0; row < image.size(); row += columns) {
    for (size_t x = 0; x < columns; ++x) {
      const size_t from = row + (flip ? columns - 1 - x : x);
      out[row + x] = kLevel * static_cast<float>(image[from]) - 1;
    }
  }
  Dequantise(noise, out);
}

void FillForScores(std::span<const uint8_t> image, std::span<float> out) {
  for (size_t j = 0; j < image.size(); ++j) {
    out[j] = kLevel * (static_cast<float>(image[j]) + 0.5f) - 1;
  }
}

}  // namespace gossamer
