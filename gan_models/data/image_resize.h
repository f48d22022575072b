// The centre of a picture at another size.
//
// This header knows nothing of files.

#ifndef GOSSAMER_GAN_MODELS_DATA_IMAGE_RESIZE_H_
#define GOSSAMER_GAN_MODELS_DATA_IMAGE_RESIZE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "gan_models/data/image_decoder.h"

namespace gossamer {

// The weights of the source pixels [first, first + weights.size()) in one
// output pixel; their sum is 1.
struct ResizeTap {
  int first = 0;
  std::vector<float> weights;
};

// A part of a row of pixels, whose ends may lie within pixels.
struct ResizeRange {
  double begin = 0, size = 0;
};

// Lanczos' filter with three lobes that resamples `from`, of a row of `pixels`,
// to `to` pixels; it is stretched by their ratio where that is more than 1, so
// that nothing aliases.  A pixel that lies in no part in `from` has no weight.
std::vector<ResizeTap> LanczosTaps(ResizeRange from, int pixels, int to);

// The largest centred square of the picture in the file, resampled to planes
// [3, side, side] in `out`.  The same bits on every machine whose sine is.
void ResizeCentre(const DecodedImage& image, int side, std::span<uint8_t> out);

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_DATA_IMAGE_RESIZE_H_
