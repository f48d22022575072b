#include "tests/gan_models/picture_files.h"

#include <zlib.h>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
// libjpeg's header needs the ones above.
#include <jpeglib.h>

#include "absl/strings/str_cat.h"
#include "algorithms/base/rng.h"

namespace gossamer {

DecodedImage SomePicture(int width, int height, uint64_t seed) {
  const RngKey key = RngKey(seed).Fold("picture");
  DecodedImage image = {.width = width, .height = height, .rgb = {}};
  image.rgb.resize(size_t{3} * static_cast<size_t>(width) *
                   static_cast<size_t>(height));
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) {
        const double wave =
            std::sin((x * (3 + key.Uniform(c)) + y * (1 + c)) / 17.0) +
            0.5 * std::cos((x - 2.0 * y) / 5.0 + static_cast<double>(seed));
        const auto at = static_cast<size_t>(3 * (y * width + x) + c);
        image.rgb[at] = static_cast<uint8_t>(
            128 + 70 * wave + 20 * (key.Uniform(1000 + at) - 0.5));
      }
    }
  }
  return image;
}

std::vector<uint8_t> ToJpeg(const DecodedImage& image, JpegKind kind,
                            int quality) {
  jpeg_compress_struct info = {};
  jpeg_error_mgr errors = {};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.image_height = static_cast<JDIMENSION>(image.height);
  const int channels = kind == JpegKind::kGrey   ? 1
                       : kind == JpegKind::kInks ? 4
                                                 : 3;
  info.input_components = channels;
  info.in_color_space = channels == 1   ? JCS_GRAYSCALE
                        : channels == 4 ? JCS_CMYK
                                        : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  if (kind == JpegKind::kProgressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  std::vector<uint8_t> row(static_cast<size_t>(image.width * channels));
  while (info.next_scanline < info.image_height) {
    const uint8_t* const from =
        image.rgb.data() + size_t{3} * info.next_scanline * info.image_width;
    for (size_t x = 0; x < info.image_width; ++x) {
      for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
        // Inverted inks: the colour itself, and no black.
        row[x * static_cast<size_t>(channels) + c] =
            c == 3 ? 255 : from[3 * x + c];
      }
    }
    JSAMPROW pointer = row.data();
    jpeg_write_scanlines(&info, &pointer, 1);
  }
  jpeg_finish_compress(&info);
  std::vector<uint8_t> file(bytes, bytes + size);
  jpeg_destroy_compress(&info);
  std::free(bytes);
  return file;
}

std::vector<uint8_t> RawPng(const PngParts& parts) {
  std::vector<uint8_t> file = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  const auto number = [](std::vector<uint8_t>& to, uint32_t v) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      to.push_back(static_cast<uint8_t>(v >> shift));
    }
  };
  const auto chunk = [&](const char* name, std::vector<uint8_t> content) {
    number(file, static_cast<uint32_t>(content.size()));
    content.insert(content.begin(), name, name + 4);
    file.insert(file.end(), content.begin(), content.end());
    number(file, static_cast<uint32_t>(crc32(
                     0, content.data(), static_cast<uInt>(content.size()))));
  };
  std::vector<uint8_t> head;
  number(head, parts.width);
  number(head, parts.height);
  head.insert(head.end(), {parts.depth, parts.colour_type, 0, 0, 0});
  chunk("IHDR", head);
  if (!parts.palette.empty()) chunk("PLTE", parts.palette);
  std::vector<uint8_t> rows;
  for (size_t at = 0; at < parts.samples.size(); at += parts.row_bytes) {
    rows.push_back(0);  // no filter
    rows.insert(rows.end(), parts.samples.begin() + at,
                parts.samples.begin() + at + parts.row_bytes);
  }
  std::vector<uint8_t> packed(compressBound(rows.size()));
  uLongf size = packed.size();
  compress(packed.data(), &size, rows.data(), rows.size());
  packed.resize(size);
  chunk("IDAT", packed);
  chunk("IEND", {});
  return file;
}

std::vector<uint8_t> ToPng(const DecodedImage& image, PngKind kind) {
  const auto width = static_cast<size_t>(image.width);
  const size_t pixels = width * static_cast<size_t>(image.height);
  PngParts parts = {.width = static_cast<uint32_t>(image.width),
                    .height = static_cast<uint32_t>(image.height)};
  std::vector<uint8_t>& samples = parts.samples;
  for (size_t p = 0; p < pixels; ++p) {
    const bool left = p % width < width / 2;
    const uint8_t* const rgb = image.rgb.data() + 3 * p;
    switch (kind) {
      case PngKind::kRgb:
        samples.insert(samples.end(), rgb, rgb + 3);
        break;
      case PngKind::kGrey:
        samples.push_back(rgb[0]);
        break;
      case PngKind::kAlpha:
        samples.insert(samples.end(), rgb, rgb + 3);
        samples.push_back(left ? 0 : 255);
        break;
      case PngKind::kPalette:
        samples.push_back(left ? 0 : 1);
        break;
      case PngKind::kSixteenBits:
        // 257 v in 16 bits is v in 8.
        for (size_t c = 0; c < 3; ++c) samples.insert(samples.end(), 2, rgb[c]);
        break;
    }
  }
  parts.row_bytes = samples.size() / static_cast<size_t>(image.height);
  parts.depth = kind == PngKind::kSixteenBits ? 16 : 8;
  parts.colour_type = kind == PngKind::kGrey      ? 0
                      : kind == PngKind::kPalette ? 3
                      : kind == PngKind::kAlpha   ? 6
                                                  : 2;
  if (kind == PngKind::kPalette) {
    parts.palette.assign(image.rgb.begin(), image.rgb.begin() + 3);
    parts.palette.insert(parts.palette.end(), image.rgb.end() - 3,
                         image.rgb.end());
  }
  return RawPng(parts);
}

void WriteBytes(const std::string& path, const std::vector<uint8_t>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

void MakeClasses(const std::string& folder, int classes, int count) {
  for (int c = 0; c < classes; ++c) {
    const std::string name = absl::StrCat(folder, "/class", c);
    std::filesystem::create_directories(name);
    for (int i = 0; i < count; ++i) {
      WriteBytes(absl::StrCat(name, "/", i, ".jpg"),
                 ToJpeg(SomePicture(40, 30, 1000 * c + i), JpegKind::kColour));
    }
  }
}

}  // namespace gossamer
