// The bytes of a picture as the values that networks see.
//
// This header knows nothing of files, shards or labels.

#ifndef GOSSAMER_GAN_MODELS_DATA_IMAGE_VALUES_H_
#define GOSSAMER_GAN_MODELS_DATA_IMAGE_VALUES_H_

#include <cstdint>
#include <span>

#include "algorithms/base/rng.h"

namespace gossamer {

// Bytes to [-1, 1] as Gulrajani et al.'s code does: 2 (b / 256 - 1/2).  `image`
// and `out` are planes [3, side, side]; the side is a multiple of 4.

// With U(0, 1/128) on top, so that the data have a density, and mirrored left
// to right if `flip`.
void FillForTraining(std::span<const uint8_t> image, int side, bool flip,
                     RngKey noise, std::span<float> out);

// The middle of each level, as no noise is added: scores of the same pictures
// are then the same.
void FillForScores(std::span<const uint8_t> image, std::span<float> out);

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_DATA_IMAGE_VALUES_H_
