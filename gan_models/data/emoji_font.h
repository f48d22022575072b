// Glyphs of a colour bitmap font, by sequence of code points.
//
// Knows nothing of classes or data sets.

#ifndef GOSSAMER_GAN_MODELS_DATA_EMOJI_FONT_H_
#define GOSSAMER_GAN_MODELS_DATA_EMOJI_FONT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace gossamer {

struct Glyph {
  int width = 0, height = 0;
  std::vector<uint8_t> bgra;  // [height, width, 4], premultiplied by alpha
};

class EmojiFont {
 public:
  // kNotFound, kDataLoss (no font with colour bitmaps).
  static absl::StatusOr<std::unique_ptr<EmojiFont>> Open(
      const std::string& path);
  ~EmojiFont();

  // Nothing if the font does not draw the sequence as one glyph.
  std::optional<Glyph> Draw(std::u32string_view code_points);

 private:
  struct Handles;
  explicit EmojiFont(std::unique_ptr<Handles> handles);
  const std::unique_ptr<Handles> handles_;
};

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_DATA_EMOJI_FONT_H_
