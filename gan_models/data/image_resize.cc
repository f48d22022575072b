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

// Four floats that are computed with at once, on any machine.
typedef float Four __attribute__((vector_size(16)));

Four Load(const float* from) {
  Four value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

uint8_t Level(float v) {
  return static_cast<uint8_t>(std::clamp(v + 0.5f, 0.0f, 255.0f));
}

}  // namespace

std::vector<ResizeTap> LanczosTaps(ResizeRange from, int pixels, int to) {
  const double ratio = from.size / to;
  const double stretch = std::max(ratio, 1.0);
  const int least = std::max(0, static_cast<int>(std::floor(from.begin)));
  const int most =
      std::min(pixels, static_cast<int>(std::ceil(from.begin + from.size)));
  std::vector<ResizeTap> taps(to);
  for (int i = 0; i < to; ++i) {
    const double centre = from.begin + (i + 0.5) * ratio;
    const int begin = std::max(
        least, static_cast<int>(std::floor(centre - kLobes * stretch)));
    const int end =
        std::min(most, static_cast<int>(std::ceil(centre + kLobes * stretch)));
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

namespace {

// The part of a side of `pixels` that the centred square has, in pixels of the
// reduced picture.
ResizeRange Centred(int full, int square, int reduction) {
  const double scale = reduction;
  return {(full - square) / 2 / scale, square / scale};
}

// Weighs the rows of a picture into one, column by column.
class RowFilter {
 public:
  RowFilter(const DecodedImage& image, const std::vector<ResizeTap>& rows,
            size_t first, size_t columns)
      : image_(image), first_(first), values_(3 * columns) {
    for (const ResizeTap& tap : rows) {
      kept_ = std::max(kept_, tap.weights.size());
    }
    // Whole blocks, so that no remainder has to be treated apart.
    stride_ = (values_ + kBlock - 1) / kBlock * kBlock;
    floats_.resize(kept_ * stride_);
  }

  // `out` has stride() values, of which the last are not used.  Taps come in
  // the order of their rows.
  void Apply(const ResizeTap& tap, float* out) {
    const auto first = static_cast<size_t>(tap.first);
    const size_t count = tap.weights.size();
    while (next_ < first + count) Convert(next_++);
    std::vector<const float*>& from = from_;
    from.clear();
    for (size_t k = 0; k < count; ++k) from.push_back(Slot(first + k));
    for (size_t j = 0; j < stride_; j += kBlock) {
      Four sums[kBlock / 4] = {};
      for (size_t k = 0; k < count; ++k) {
        const float w = tap.weights[k];
        const float* const row = from[k] + j;
        for (size_t f = 0; f < kBlock / 4; ++f)
          sums[f] += w * Load(row + 4 * f);
      }
      std::memcpy(out + j, sums, sizeof sums);
    }
  }
  size_t stride() const { return stride_; }

 private:
  // Values whose sums stay in registers.
  static constexpr size_t kBlock = 16;

  float* Slot(size_t row) { return floats_.data() + row % kept_ * stride_; }
  // Rows become floats once, although several outputs use each.
  void Convert(size_t row) {
    const uint8_t* const from =
        image_.rgb.data() +
        3 * (row * static_cast<size_t>(image_.width) + first_);
    float* const to = Slot(row);
    for (size_t j = 0; j < values_; ++j) to[j] = from[j];
  }

  const DecodedImage& image_;
  const size_t first_;   // column
  const size_t values_;  // of a row
  size_t kept_ = 0, stride_ = 0;
  std::vector<float> floats_;  // the last kept_ rows
  size_t next_ = 0;            // row to convert
  std::vector<const float*> from_;
};

}  // namespace

void ResizeCentre(const DecodedImage& image, int side, std::span<uint8_t> out) {
  const int square = std::min(image.full_width, image.full_height);
  const std::vector<ResizeTap> rows = LanczosTaps(
      Centred(image.full_height, square, image.reduction), image.height, side);
  const std::vector<ResizeTap> columns = LanczosTaps(
      Centred(image.full_width, square, image.reduction), image.width, side);
  const auto first = static_cast<size_t>(columns.front().first);
  const size_t end =
      static_cast<size_t>(columns.back().first) + columns.back().weights.size();
  RowFilter filter(image, rows, first, end - first);
  const auto plane = static_cast<size_t>(side) * static_cast<size_t>(side);
  std::vector<float> sums(filter.stride());
  // Three colours and a value that is not used.
  std::vector<Four> row(end - first);
  for (size_t y = 0; y < rows.size(); ++y) {
    filter.Apply(rows[y], sums.data());
    for (size_t x = 0; x < row.size(); ++x) {
      row[x] = Four{sums[3 * x], sums[3 * x + 1], sums[3 * x + 2], 0};
    }
    for (size_t x = 0; x < columns.size(); ++x) {
      const Four* const from =
          row.data() + (static_cast<size_t>(columns[x].first) - first);
      const std::vector<float>& weights = columns[x].weights;
      Four even = {}, odd = {};
      size_t k = 0;
      for (; k + 1 < weights.size(); k += 2) {
        even += weights[k] * from[k];
        odd += weights[k + 1] * from[k + 1];
      }
      if (k < weights.size()) even += weights[k] * from[k];
      even += odd;
      const size_t at = y * static_cast<size_t>(side) + x;
      for (size_t c = 0; c < 3; ++c) out[c * plane + at] = Level(even[c]);
    }
  }
}

}  // namespace gossamer
