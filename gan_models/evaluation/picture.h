// Pictures of samples: a grid of images, a scatter of points; as PNG files.
//
// This header knows nothing of generators or scores.

#ifndef GOSSAMER_GAN_MODELS_EVALUATION_PICTURE_H_
#define GOSSAMER_GAN_MODELS_EVALUATION_PICTURE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace gossamer {

// An image in memory, eight bits a channel.
struct Picture {
  int width = 0, height = 0;
  std::vector<uint8_t> rgb;  // [height, width, 3]
};

// Images [N, 3, size, size] in [-1, 1] in rows of `columns`, every pixel
// `scale` times as large, with a thin white margin around each.
Picture ImageGrid(std::span<const float> images, int size, int columns,
                  int scale);

// Points of the plane [N, 2] within [-extent, extent]^2: the reference in grey,
// the samples in colour on top.
Picture Scatter(std::span<const float> reference,
                std::span<const float> samples, double extent, int size);

// kInternal, naming the path and what the system said.
absl::Status WritePng(const Picture& picture, const std::string& path);

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_EVALUATION_PICTURE_H_
