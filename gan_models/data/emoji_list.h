// The emoji of Unicode's emoji-test.txt, in ten classes, with their twins.
//
// This header knows code points and names; nothing of fonts or pixels.

#ifndef GOSSAMER_GAN_MODELS_DATA_EMOJI_LIST_H_
#define GOSSAMER_GAN_MODELS_DATA_EMOJI_LIST_H_

#include <cstdint>
#include <istream>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace gossamer {

// One emoji of the list, with its class and the name of its family.
struct Emoji {
  std::u32string code_points;
  int emoji_class = 0;  // index in EmojiClassNames()
  std::u32string base;  // equal for those that differ in skin tone or gender
};

std::span<const std::string_view> EmojiClassNames();
// Symbols and flags mean something else, or nothing, in a mirror.
bool MayMirror(int emoji_class);

// The fully qualified emoji of a file in the format of emoji-test.txt (UTS
// #51), in its order; left out are components (bare skin tones and hair) and
// the middle finger.  kDataLoss if a line cannot be read.
absl::StatusOr<std::vector<Emoji>> ParseEmojiList(std::istream& file);

// The rest of a sequence without skin tones and presentation, and with
// every gendered person made a person.
std::u32string BaseOf(std::u32string_view code_points);

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_DATA_EMOJI_LIST_H_
