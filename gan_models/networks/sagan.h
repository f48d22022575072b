// The self-attention GAN: class-conditional residual networks with spectral
// normalisation and attention (Zhang et al., ICML 2019).
//
// This header knows nothing of losses or data.

#ifndef GOSSAMER_GAN_MODELS_NETWORKS_SAGAN_H_
#define GOSSAMER_GAN_MODELS_NETWORKS_SAGAN_H_

#include <cstdint>
#include <memory>

#include "gan_models/networks/network.h"

namespace gossamer {

// The sizes of both networks.  Width 64, latent 128, resolution 128 and 1,000
// classes are those of the paper; a smaller resolution leaves out the blocks at
// the side of the pictures and keeps the others' channels.
struct SaganShape {
  int64_t width = 64;  // of the largest features; a multiple of 4
  int64_t latent = 128;
  int64_t resolution = 128;  // 32, 64 or 128
  int64_t classes = 1000;
};

// Names of tensors are those of the published code's variables, with points for
// slashes; weights have libtorch's order of dimensions, [out, in, height,
// width].  Attention is at features of 32x32 pixels, or at 16x16 in pictures of
// 32x32.
std::unique_ptr<Network> MakeSaganGenerator(const SaganShape& shape);
// Scores by projection on the label's embedding (Miyato and Koyama, ICLR 2018).
std::unique_ptr<Network> MakeSaganDiscriminator(const SaganShape& shape);

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_NETWORKS_SAGAN_H_
