#include "gan_models/data/emoji_font.h"

#include <ft2build.h>
#include <hb-ft.h>
#include <hb.h>
#include FT_FREETYPE_H

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace gossamer {

struct EmojiFont::Handles {
  ~Handles() {
    // The shaper refers to the face, and the face to the library.
    hb_font_destroy(shaper);
    if (face != nullptr) FT_Done_Face(face);
    if (library != nullptr) FT_Done_FreeType(library);
  }
  FT_Library library = nullptr;
  FT_Face face = nullptr;
  hb_font_t* shaper = nullptr;
};

EmojiFont::EmojiFont(std::unique_ptr<Handles> handles)
    : handles_(std::move(handles)) {}
EmojiFont::~EmojiFont() = default;

absl::StatusOr<std::unique_ptr<EmojiFont>> EmojiFont::Open(
    const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return absl::NotFoundError(absl::StrCat(
        path, " is missing; apt-get install fonts-noto-color-emoji"));
  }
  auto handles = std::make_unique<Handles>();
  if (FT_Init_FreeType(&handles->library) != 0 ||
      FT_New_Face(handles->library, path.c_str(), 0, &handles->face) != 0 ||
      // Glyphs are copied as colour bitmaps, and a font of outlines has none.
      !FT_HAS_COLOR(handles->face) ||
      FT_Select_Size(handles->face, /*strike_index=*/0) != 0) {
    return absl::DataLossError(
        absl::StrCat(path, " is not a font with colour bitmaps"));
  }
  handles->shaper = hb_ft_font_create_referenced(handles->face);
  return std::unique_ptr<EmojiFont>(new EmojiFont(std::move(handles)));
}

std::optional<Glyph> EmojiFont::Draw(std::u32string_view code_points) {
  const std::vector<uint32_t> text(code_points.begin(), code_points.end());
  const auto length = static_cast<int>(text.size());
  hb_buffer_t* const buffer = hb_buffer_create();
  hb_buffer_add_utf32(buffer, text.data(), length, 0, length);
  hb_buffer_guess_segment_properties(buffer);
  // Shaping joins a sequence (a person, a joiner, a profession) into one glyph,
  // as on a screen; several glyphs mean that the font does not have it.
  hb_shape(handles_->shaper, buffer, nullptr, 0);
  unsigned count = 0;
  const hb_glyph_info_t* const infos =
      hb_buffer_get_glyph_infos(buffer, &count);
  const FT_UInt index = count == 1 ? infos[0].codepoint : 0;
  hb_buffer_destroy(buffer);
  if (index == 0) return std::nullopt;
  const FT_Face face = handles_->face;
  if (FT_Load_Glyph(face, index, FT_LOAD_COLOR) != 0) return std::nullopt;
  const FT_Bitmap& bitmap = face->glyph->bitmap;
  if (bitmap.pixel_mode != FT_PIXEL_MODE_BGRA || bitmap.width == 0 ||
      bitmap.rows == 0) {
    return std::nullopt;
  }
  Glyph glyph{.width = static_cast<int>(bitmap.width),
              .height = static_cast<int>(bitmap.rows),
              .bgra = {}};
  const size_t row = 4 * static_cast<size_t>(glyph.width);
  for (int y = 0; y < glyph.height; ++y) {
    // Rows are `pitch` bytes apart, which may be more than they hold.
    const uint8_t* const from =
        bitmap.buffer + static_cast<ptrdiff_t>(y) * bitmap.pitch;
    glyph.bgra.insert(glyph.bgra.end(), from, from + row);
  }
  return glyph;
}

}  // namespace gossamer
