// Pictures of people: files to decode, and the file that gossamer data build
// makes of them.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "algorithms/base/crc32c.h"
#include "algorithms/base/little_endian.h"
#include "gan_models/data/image_cache.h"
#include "gan_models/data/image_decoder.h"
#include "gan_models/data/image_resize.h"
#include "tests/fuzz/folder.h"
#include "tests/fuzz/fuzz.h"

namespace gossamer::fuzz {
namespace {

// libjpeg keeps the coefficients of a progressive picture in rows of its
// largest blocks, 32 pixels high however flat the picture is.
constexpr uint64_t kPixels = 1 << 14;
constexpr size_t kCoefficients = 8 << 20;

void Picture(Bytes input) {
  const std::span file(reinterpret_cast<const uint8_t*>(input.data()),
                       input.size());
  for (const int min_side : {0, 8}) {
    const auto image =
        DecodeImage(file, {.min_side = min_side, .max_pixels = kPixels});
    if (!image.ok()) continue;
    const auto pixels = static_cast<uint64_t>(image->width) *
                        static_cast<uint64_t>(image->height);
    Require(pixels > 0 && pixels <= kPixels, "a picture has bounds");
    Require(image->rgb.size() == 3 * pixels, "every pixel has three colours");
    std::vector<uint8_t> centre(3 * 8 * 8);
    ResizeCentre(*image, 8, centre);
  }
}

// The input is the header's numbers and then the tables.  Checksums are made
// right, and the file as long as it claims, so that what comes after them is
// reached.
void PictureFile(Bytes input) {
  constexpr size_t kHead = 60;
  constexpr uint64_t kLargest = 1 << 20;
  std::vector<std::byte> file(ImageCacheHeader::kBytes);
  const Bytes head = input.first(std::min(input.size(), kHead));
  const Bytes tables = input.subspan(head.size());
  std::copy(head.begin(), head.end(), file.begin());
  const auto seal = [&file] {
    Put(std::span(file), 56, Crc32c(std::span(file).first(56)));
  };
  seal();
  auto header = ImageCacheHeader::Parse(file);
  const bool fits = header.ok() && header->names_at() + header->names_bytes -
                                           ImageCacheHeader::kBytes <=
                                       tables.size();
  if (fits) {
    const size_t entries = header->names_at() - ImageCacheHeader::kBytes;
    Put(std::span(file), 48, Crc32c(tables.first(entries)));
    Put(std::span(file), 52,
        Crc32c(tables.subspan(entries, header->names_bytes)));
    seal();
  }
  file.insert(file.end(), tables.begin(), tables.end());
  const std::string path = Write("pictures", file);
  if (header.ok() && header->file_bytes() <= kLargest) {
    std::filesystem::resize_file(path, header->file_bytes());
  }
  const auto cache = ImageCache::Open(path);
  if (!cache.ok()) return;
  Require(!cache->class_names().empty(), "there is a class");
  for (size_t i = 0; i < cache->size(); ++i) {
    Require(cache->class_of(i) < static_cast<int>(cache->class_names().size()),
            "a picture is of a class");
    (void)cache->whole(i);
  }
}

}  // namespace

std::span<const Target> PictureTargets() {
  static constexpr Target kTargets[] = {{"picture", Picture, kCoefficients},
                                        {"picture-file", PictureFile, 2 << 20}};
  return kTargets;
}

}  // namespace gossamer::fuzz
