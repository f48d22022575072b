// The centre of a picture at another size.
//
// Knows nothing of files.

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

// Lanczos' filter with three lobes that resamples a row of `from` pixels to
// `to`; it is stretched by from / to where that is more than 1, so that nothing
// aliases.
std::vector<ResizeTap> LanczosTaps(int from, int to);

// The largest centred square of `image`, resampled to planes [3, side, side] in
// `out`.  The same bits on every machine whose sine is.
void ResizeCentre(const DecodedImage& image, int side, std::span<uint8_t> out);

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_DATA_IMAGE_RESIZE_H_
