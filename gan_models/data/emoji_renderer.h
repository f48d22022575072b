// emoji-32, emoji-64 and emoji-128: image data sets made from the machine's own
// emoji font.
//
// Ten classes of colour images of that many pixels a side in CIFAR-10's file
// format, so that a first run needs no download.  This header knows nothing of
// training.

#ifndef GOSSAMER_GAN_MODELS_DATA_EMOJI_RENDERER_H_
#define GOSSAMER_GAN_MODELS_DATA_EMOJI_RENDERER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "gan_models/data/cifar_files.h"

namespace gossamer {

enum class Background { kWhite, kPastel, kMixed };

// The files, numbers and seed that a rendered data set is a function of.
struct EmojiSpec {
  std::string font = "/usr/share/fonts/truetype/noto/NotoColorEmoji.ttf";
  std::string list = "/usr/share/unicode/emoji/emoji-test.txt";
  int side = 32;                 // 32, 64 or 128 pixels
  int train_per_class = 2000;    // a multiple of 5
  int held_out_per_class = 400;  // from glyphs that train has no twin of
  // Of each class, the first in the list: fewer are more alike, and sooner
  // learnt.  A fifth of them is held out.  0: all.
  int families_per_class = 0;
  Background background = Background::kWhite;
  uint64_t seed = 1;
};

// Draws the images: a random glyph of the class at a random place and size
// (128 pixels of glyph in a window of 136 to 155), hue turned by up to 0.2
// radians, mirrored where that means the same.  A function of the spec and the
// font alone; sets that differ in `side` alone show the same.  `progress` hears
// of the classes drawn so far. Errors: kNotFound (font or list; names the
// Debian package), kDataLoss, kInvalidArgument.
absl::StatusOr<ImageData> RenderEmoji(
    const EmojiSpec& spec, const std::function<void(int, int)>& progress);

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_DATA_EMOJI_RENDERER_H_
