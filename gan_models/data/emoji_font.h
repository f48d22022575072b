// Glyphs of a colour bitmap font, by sequence of code points.
//
// This header knows nothing of classes or data sets.

#ifndef GOSSAMER_GAN_MODELS_DATA_EMOJI_FONT_H_
#define GOSSAMER_GAN_MODELS_DATA_EMOJI_FONT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gossamer {

// A glyph as the font has it, before any scaling.
struct Glyph {
  int width = 0, height = 0;
  std::vector<uint8_t> bgra;  // [height, width, 4], premultiplied by alpha
};

// An open font.  It shapes sequences of code points as a text renderer does, so
// that joined emoji come out as one glyph.
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
