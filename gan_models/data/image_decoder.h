// Picture files to pixels: JPEG and PNG, told apart by their first bytes.
//
// This header knows nothing of folders, resizing or labels.  A file is
// untrusted: what it claims is checked before memory is allocated for it.

#ifndef GOSSAMER_GAN_MODELS_DATA_IMAGE_DECODER_H_
#define GOSSAMER_GAN_MODELS_DATA_IMAGE_DECODER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gossamer {

struct DecodedImage {
  int width = 0, height = 0;
  std::vector<uint8_t> rgb;  // [height, width, 3]
  // The size in the file.  A picture that was decoded at 1 / reduction of it
  // has its last row and column filled up if that is no whole number.
  int full_width = width, full_height = height;
  int reduction = 1;
};

struct DecodeOptions {
  // A JPEG may be decoded at 1/2, 1/4 or 1/8 of its size as long as its shorter
  // side has this many pixels; 0: at its full size.
  int min_side = 0;
  // Pixels of a picture at its full size; 2^26 are 192 MB.
  uint64_t max_pixels = uint64_t{1} << 26;
};

// Decodes a whole file.  Every picture becomes 8-bit RGB: grey is repeated,
// inks (CMYK) become light without a colour profile, palettes are looked up, 16
// bits are rounded to 8, and what is transparent shows white.  Orientation tags
// are not followed.
// kDataLoss: not a picture, cut, damaged, or larger than `max_pixels`.
absl::StatusOr<DecodedImage> DecodeImage(std::span<const uint8_t> file,
                                         const DecodeOptions& options);

// Returns kDataLoss for a picture without pixels or with too many.
absl::Status CheckImageSize(uint64_t width, uint64_t height,
                            const DecodeOptions& options);

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_DATA_IMAGE_DECODER_H_
