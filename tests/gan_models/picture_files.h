// Picture files of any size and kind, made in memory, and files on the disk.
//
// This header knows nothing of what reads them.

#ifndef GOSSAMER_TESTS_GAN_MODELS_PICTURE_FILES_H_
#define GOSSAMER_TESTS_GAN_MODELS_PICTURE_FILES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gan_models/data/image_decoder.h"

namespace gossamer {

// A smooth picture with some texture, different for each seed.
DecodedImage SomePicture(int width, int height, uint64_t seed);

enum class JpegKind { kColour, kGrey, kInks, kProgressive };

// A JPEG file.  kInks has four components and Adobe's marker, as ImageNet's few
// have; its black is 0.
std::vector<uint8_t> ToJpeg(const DecodedImage& image, JpegKind kind,
                            int quality = 90);

enum class PngKind { kRgb, kGrey, kAlpha, kSixteenBits, kPalette };

// A PNG file.  kAlpha is transparent in its left half; kPalette has 2 colours,
// the first pixel's in the left half and the last pixel's in the right one.
std::vector<uint8_t> ToPng(const DecodedImage& image, PngKind kind);

// The parts of a PNG file, which claims what they say.
struct PngParts {
  uint32_t width = 0, height = 0;
  uint8_t depth = 8, colour_type = 2;
  std::vector<uint8_t> palette = {};
  std::vector<uint8_t> samples = {};  // rows of row_bytes each
  size_t row_bytes = 1;
};
std::vector<uint8_t> RawPng(const PngParts& parts);

void WriteBytes(const std::string& path, const std::vector<uint8_t>& bytes);

// Makes FOLDER/CLASS/N.jpg for `classes` classes ("class0", ...) of `count`
// pictures, 40x30 pixels each.
void MakeClasses(const std::string& folder, int classes, int count);

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_GAN_MODELS_PICTURE_FILES_H_
