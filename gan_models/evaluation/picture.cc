#include "gan_models/evaluation/picture.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace gossamer {
namespace {

using Colour = std::array<uint8_t, 3>;

Picture Blank(int width, int height) {
  return {width, height,
          std::vector<uint8_t>(static_cast<size_t>(width) * height * 3, 255)};
}

void Fill(Picture& picture, int x, int y, int size, Colour colour) {
  for (int v = std::max(y, 0); v < std::min(y + size, picture.height); ++v) {
    for (int u = std::max(x, 0); u < std::min(x + size, picture.width); ++u) {
      std::copy(colour.begin(), colour.end(),
                picture.rgb.begin() +
                    3 * (static_cast<ptrdiff_t>(v) * picture.width + u));
    }
  }
}

uint8_t Level(float v) {
  return static_cast<uint8_t>(
      std::lround(127.5f * (std::clamp(v, -1.0f, 1.0f) + 1)));
}

void Dots(Picture& picture, std::span<const float> points, double extent,
          Colour colour) {
  const auto place = [&](double v) {
    const double at = (v / extent + 1) / 2 * picture.width;
    // A diverging generator makes points that no int holds; beyond the margin
    // they are not seen anyway.
    return static_cast<int>(std::clamp(at, -10.0, picture.width + 10.0));
  };
  for (size_t i = 0; i + 1 < points.size(); i += 2) {
    // Rows of a picture go down, the second coordinate goes up.
    Fill(picture, place(points[i]) - 1, place(-points[i + 1]) - 1, 3, colour);
  }
}

}  // namespace

Picture ImageGrid(std::span<const float> images, int size, int columns,
                  int scale) {
  const auto area = static_cast<size_t>(size) * size;
  const auto count = static_cast<int>(images.size() / (3 * area));
  const int rows = (count + columns - 1) / columns;
  // The margin is as wide as a pixel, so that neighbouring pictures are told
  // apart at any scale.
  const int margin = scale, cell = size * scale + margin;
  Picture picture = Blank(columns * cell + margin, rows * cell + margin);
  for (int i = 0; i < count; ++i) {
    const auto image = images.subspan(3 * area * i, 3 * area);
    const int left = margin + i % columns * cell;
    const int top = margin + i / columns * cell;
    for (size_t p = 0; p < area; ++p) {
      Fill(picture, left + static_cast<int>(p % size) * scale,
           top + static_cast<int>(p / size) * scale, scale,
           {Level(image[p]), Level(image[area + p]),
            Level(image[2 * area + p])});
    }
  }
  return picture;
}

Picture Scatter(std::span<const float> reference,
                std::span<const float> samples, double extent, int size) {
  Picture picture = Blank(size, size);
  // The reference first: where both lie, the samples are seen.
  Dots(picture, reference, extent, {190, 190, 190});
  Dots(picture, samples, extent, {20, 90, 200});
  return picture;
}

absl::Status WritePng(const Picture& picture, const std::string& path) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = PNG_FORMAT_RGB;
  if (!png_image_write_to_file(&image, path.c_str(), /*convert_to_8bit=*/0,
                               picture.rgb.data(), /*row_stride=*/0,
                               /*colormap=*/nullptr)) {
    return absl::InternalError(
        absl::StrCat("cannot write ", path, ": ", image.message));
  }
  return absl::OkStatus();
}

}  // namespace gossamer
