#include "gan_models/data/image_decoder.h"

#include <png.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "algorithms/base/plain_text.h"
#include "algorithms/base/status_macros.h"
#include "gan_models/data/jpeg_decoder.h"

namespace gossamer {
namespace {

bool BeginsWith(std::span<const uint8_t> file,
                std::span<const uint8_t> signature) {
  return file.size() >= signature.size() &&
         std::equal(signature.begin(), signature.end(), file.begin());
}

// Frees what libpng holds, at any way out.
struct PngImage : png_image {
  PngImage() : png_image{} { version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(this); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
};

absl::StatusOr<DecodedImage> DecodePng(std::span<const uint8_t> file,
                                       const DecodeOptions& options) {
  PngImage png;
  if (!png_image_begin_read_from_memory(&png, file.data(), file.size())) {
    return absl::DataLossError(absl::StrCat("PNG: ", png.message));
  }
  GOSSAMER_RETURN_IF_ERROR(CheckImageSize(png.width, png.height, options));
  // libpng takes 16 bits without a gamma for linear light; cameras and painting
  // programs do not write such files.
  png.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  png.format = PNG_FORMAT_RGB;
  DecodedImage image = {
      static_cast<int>(png.width), static_cast<int>(png.height), {}};
  image.rgb.resize(PNG_IMAGE_SIZE(png));
  const png_color white = {255, 255, 255};
  if (!png_image_finish_read(&png, &white, image.rgb.data(), /*row_stride=*/0,
                             /*colormap=*/nullptr)) {
    return absl::DataLossError(absl::StrCat("PNG: ", png.message));
  }
  return image;
}

}  // namespace

absl::Status CheckImageSize(uint64_t width, uint64_t height,
                            const DecodeOptions& options) {
  // No format has sides of more than 31 bits, so the product fits.
  if (width > 0 && height > 0 && width * height <= options.max_pixels) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat("claims ", width, "x", height,
                                          " pixels; a picture has 1 to ",
                                          options.max_pixels));
}

absl::StatusOr<DecodedImage> DecodeImage(std::span<const uint8_t> file,
                                         const DecodeOptions& options) {
  // The name of a file says nothing certain: ImageNet has a PNG file with the
  // name of a JPEG.
  constexpr uint8_t kJpeg[] = {0xff, 0xd8, 0xff};
  constexpr uint8_t kPng[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  if (BeginsWith(file, kJpeg)) return DecodeJpeg(file, options);
  if (BeginsWith(file, kPng)) return DecodePng(file, options);
  if (file.empty()) return absl::DataLossError("the file is empty");
  const std::string begin(reinterpret_cast<const char*>(file.data()),
                          std::min<size_t>(file.size(), 12));
  return absl::DataLossError(absl::StrCat(
      "neither JPEG nor PNG; it begins with \"", PlainText(begin), "\""));
}

}  // namespace gossamer
