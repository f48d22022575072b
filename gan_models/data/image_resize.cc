#include "gan_models/data/image_resize.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <numbers>

namespace gossamer {
namespace {

constexpr double kLobes = 3;

// The windowed sinc (Duchon, J. Applied Meteorology 1979).
double Lanczos(double x) {
  if (x == 0) return 1;
  if (std::abs(x) >= kLobes) return 0;
  const double a = std::numbers::pi * x;
  return kLobes * std::sin(a) * std::sin(a / kLobes) / (a * a);
}

// Four channels at once, of which the last is not used: compilers make one
// vector of them.
struct Pixel {
  float c[4];
};

uint8_t Level(float v) {
  return static_cast<uint8_t>(std::clamp(v + 0.5f, 0.0f, 255.0f));
}

}  // namespace

std::vector<ResizeTap> LanczosTaps(int from, int to) {
  const double ratio = static_cast<double>(from) / to;
  const double stretch = std::max(ratio, 1.0);
  std::vector<ResizeTap> taps(to);
  for (int i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * ratio;
    const int begin =
        std::max(0, static_cast<int>(std::floor(centre - kLobes * stretch)));
    const int end =
        std::min(from, static_cast<int>(std::ceil(centre + kLobes * stretch)));
    std::vector<double> weights;
    double sum = 0;
    for (int j = begin; j < end; ++j) {
      weights.push_back(Lanczos((j + 0.5 - centre) / stretch));
      sum += weights.back();
    }
    taps[i].first = begin;
    for (const double w : weights) {
      // At the edges the filter is cut, and the rest makes up for it.
      taps[i].weights.push_back(static_cast<float>(w / sum));
    }
  }
  return taps;
}

void ResizeCentre(const DecodedImage& image, int side, std::span<uint8_t> out) {
  const int square = std::min(image.width, image.height);
  const size_t left = static_cast<size_t>(image.width - square) / 2;
  const size_t top = static_cast<size_t>(image.height - square) / 2;
  const size_t row_bytes = size_t{3} * static_cast<size_t>(image.width);
  const uint8_t* const corner = image.rgb.data() + top * row_bytes + 3 * left;
  const auto columns = static_cast<size_t>(square);
  const auto plane = static_cast<size_t>(side) * static_cast<size_t>(side);
  // Rows and columns of a square have the same filter.
  const std::vector<ResizeTap> taps = LanczosTaps(square, side);
  std::vector<float> sums(3 * columns);
  std::vector<Pixel> row(columns);
  for (size_t y = 0; y < taps.size(); ++y) {
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (size_t k = 0; k < taps[y].weights.size(); ++k) {
      const uint8_t* const from =
          corner + (static_cast<size_t>(taps[y].first) + k) * row_bytes;
      const float w = taps[y].weights[k];
      float* const to = sums.data();
      for (size_t j = 0; j < 3 * columns; ++j) {
        to[j] += w * static_cast<float>(from[j]);
      }
    }
    for (size_t x = 0; x < columns; ++x) {
      row[x] = {{sums[3 * x], sums[3 * x + 1], sums[3 * x + 2], 0}};
    }
    for (size_t x = 0; x < taps.size(); ++x) {
      Pixel sum = {};
      const Pixel* const from = row.data() + taps[x].first;
      for (size_t k = 0; k < taps[x].weights.size(); ++k) {
        const float w = taps[x].weights[k];
        for (int c = 0; c < 4; ++c) sum.c[c] += w * from[k].c[c];
      }
      const size_t at = y * static_cast<size_t>(side) + x;
      for (size_t c = 0; c < 3; ++c) out[c * plane + at] = Level(sum.c[c]);
    }
  }
}

}  // namespace gossamer
