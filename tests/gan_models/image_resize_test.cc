// The centre of a picture at another size, against a computation in double
// precision from the definition.

#include "gan_models/data/image_resize.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>
#include <vector>

#include "gtest/gtest.h"
#include "tests/gan_models/picture_files.h"

namespace gossamer {
namespace image_resize_test {

double Lanczos3(double x) {
  const auto sinc = [](double v) {
    return v == 0 ? 1 : std::sin(std::numbers::pi * v) / (std::numbers::pi * v);
  };
  return std::abs(x) < 3 ? sinc(x) * sinc(x / 3) : 0;
}

// The value of one output pixel: the sum over all pixels of the square, each
// weighted by both directions' filters.
double Expected(const DecodedImage& image, int side, int x, int y, int c) {
  const int square = std::min(image.width, image.height);
  const int left = (image.width - square) / 2;
  const int top = (image.height - square) / 2;
  const double ratio = static_cast<double>(square) / side;
  const double stretch = std::max(ratio, 1.0);
  double sum = 0, weights = 0;
  for (int v = 0; v < square; ++v) {
    const double wv = Lanczos3((v + 0.5 - (y + 0.5) * ratio) / stretch);
    for (int u = 0; u < square && wv != 0; ++u) {
      const double w = wv * Lanczos3((u + 0.5 - (x + 0.5) * ratio) / stretch);
      sum += w * image.rgb[3 * ((top + v) * image.width + left + u) + c];
      weights += w;
    }
  }
  return std::clamp(sum / weights, 0.0, 255.0);
}

TEST(ImageResizeTest, AgreesWithTheDefinition) {
  const struct {
    int width, height, side;
  } kCases[] = {{50, 37, 16}, {37, 50, 16},  {40, 40, 40}, {20, 31, 64},
                {1, 9, 8},    {200, 90, 32}, {65, 64, 32}};
  for (const auto& [width, height, side] : kCases) {
    const DecodedImage image = SomePicture(width, height, 1);
    std::vector<uint8_t> out(3 * side * side);
    ResizeCentre(image, side, out);
    for (int c = 0; c < 3; ++c) {
      for (int y = 0; y < side; ++y) {
        for (int x = 0; x < side; ++x) {
          // Rounding to a level, and float sums.
          ASSERT_NEAR(out[(c * side + y) * side + x],
                      Expected(image, side, x, y, c), 0.502)
              << width << "x" << height << " to " << side << " at " << x << ","
              << y << "," << c;
        }
      }
    }
  }
}

TEST(ImageResizeTest, AReducedPictureShowsTheSamePlace) {
  // Sizes that are no multiples of the reduction: a shift by half a pixel would
  // show.
  for (const auto& [width, height] :
       {std::pair(500, 375), {375, 500}, {347, 261}, {1001, 751}, {400, 400}}) {
    const auto file =
        ToJpeg(SomePicture(width, height, 3), JpegKind::kColour, 95);
    std::vector<uint8_t> full(3 * 64 * 64), reduced(full.size());
    ResizeCentre(*DecodeImage(file, {}), 64, full);
    const auto image = DecodeImage(file, {.min_side = 128});
    EXPECT_GT(image->reduction, 1);
    ResizeCentre(*image, 64, reduced);
    double sum = 0;
    for (size_t i = 0; i < full.size(); ++i) {
      const double d = int{full[i]} - int{reduced[i]};
      sum += d * d;
    }
    EXPECT_LT(std::sqrt(sum / static_cast<double>(full.size())), 2)
        << width << "x" << height;
  }
}

TEST(ImageResizeTest, TheSameSizeIsTheSamePicture) {
  const DecodedImage image = SomePicture(32, 32, 2);
  std::vector<uint8_t> out(3 * 32 * 32);
  ResizeCentre(image, 32, out);
  for (size_t p = 0; p < 32 * 32; ++p) {
    for (size_t c = 0; c < 3; ++c) {
      EXPECT_EQ(out[c * 1024 + p], image.rgb[3 * p + c]);
    }
  }
}

TEST(ImageResizeTest, AFineCheckerboardBecomesGrey) {
  // Without a stretched filter it would alias into black and white.
  DecodedImage image = {.width = 256, .height = 256, .rgb = {}};
  for (int y = 0; y < 256; ++y) {
    for (int x = 0; x < 256; ++x) {
      image.rgb.insert(image.rgb.end(), 3, (x + y) % 2 == 0 ? 0 : 255);
    }
  }
  std::vector<uint8_t> out(3 * 32 * 32);
  ResizeCentre(image, 32, out);
  for (const uint8_t level : out) EXPECT_NEAR(level, 127.5, 2);
}

TEST(ImageResizeTest, WeightsOfEveryPixelAddUpToOne) {
  for (const auto& [from, to] :
       {std::pair(500, 128), {128, 128}, {7, 128}, {1, 8}, {1024, 8}}) {
    for (const ResizeTap& tap :
         LanczosTaps({0, static_cast<double>(from)}, from, to)) {
      double sum = 0;
      for (const float w : tap.weights) sum += w;
      EXPECT_NEAR(sum, 1, 1e-6);
      EXPECT_GE(tap.first, 0);
      EXPECT_LE(tap.first + static_cast<int>(tap.weights.size()), from);
    }
  }
}

}  // namespace image_resize_test
}  // namespace gossamer
