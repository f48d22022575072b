// JPEG files to pixels, over libjpeg-turbo.
//
// This header knows nothing of files, of other formats or of what becomes of
// the pixels.

#ifndef GOSSAMER_GAN_MODELS_DATA_JPEG_DECODER_H_
#define GOSSAMER_GAN_MODELS_DATA_JPEG_DECODER_H_

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "gan_models/data/image_decoder.h"

namespace gossamer {

// Decodes grey, YCbCr, RGB, CMYK and YCCK pictures of 8 bits.  Errors as of
// DecodeImage().
absl::StatusOr<DecodedImage> DecodeJpeg(std::span<const uint8_t> file,
                                        const DecodeOptions& options);

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_DATA_JPEG_DECODER_H_
