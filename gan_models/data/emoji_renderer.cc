#include "gan_models/data/emoji_renderer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/status_macros.h"
#include "gan_models/data/emoji_font.h"
#include "gan_models/data/emoji_list.h"

namespace gossamer {
namespace {

// Twins of one emoji.
using Family = std::vector<Glyph>;

struct Part {
  std::vector<Family> train, held_out;
};

// Every kHeldOut-th family of a class is held out.  The list has like emoji
// side by side, so this takes some of every kind.
constexpr size_t kHeldOut = 5;

// Families of each class in the order of the list.
absl::StatusOr<std::vector<std::vector<Family>>> LoadFamilies(
    const EmojiSpec& spec) {
  std::ifstream list(spec.list);
  if (!list) {
    return absl::NotFoundError(
        absl::StrCat(spec.list, " is missing; apt-get install unicode-data"));
  }
  auto emoji = ParseEmojiList(list);
  if (!emoji.ok()) {
    return absl::DataLossError(
        absl::StrCat(spec.list, ": ", emoji.status().message()));
  }
  GOSSAMER_ASSIGN_OR_RETURN(const auto font, EmojiFont::Open(spec.font));
  std::vector<std::vector<Family>> families(EmojiClassNames().size());
  std::map<std::pair<int, std::u32string>, size_t> index;
  for (const Emoji& e : *emoji) {
    std::optional<Glyph> glyph = font->Draw(e.code_points);
    if (!glyph) continue;
    std::vector<Family>& of_class = families[e.emoji_class];
    const auto [at, is_new] =
        // Twins differ in skin tone or gender only.  They stay together, so
        // that none of them is in train while another is held out.
        index.try_emplace({e.emoji_class, e.base}, of_class.size());
    if (is_new) of_class.emplace_back();
    of_class[at->second].push_back(std::move(*glyph));
  }
  return families;
}

absl::StatusOr<std::vector<Part>> LoadGlyphs(const EmojiSpec& spec,
                                             RngKey key) {
  GOSSAMER_ASSIGN_OR_RETURN(auto families, LoadFamilies(spec));
  std::vector<Part> parts(families.size());
  for (size_t c = 0; c < parts.size(); ++c) {
    if (families[c].size() < kHeldOut) {
      return absl::DataLossError(
          absl::StrCat(spec.font, " draws too few emoji of class ",
                       std::string(EmojiClassNames()[c])));
    }
    if (spec.families_per_class > 0) {
      families[c].resize(
          std::min<size_t>(families[c].size(), spec.families_per_class));
    }
    const uint64_t offset = key.Below(kHeldOut, c);
    for (size_t i = 0; i < families[c].size(); ++i) {
      (i % kHeldOut == offset ? parts[c].held_out : parts[c].train)
          .push_back(std::move(families[c][i]));
    }
  }
  return parts;
}

// The part of each source pixel that lies in each of the `side` cells of a
// window that begins at `begin` and is `length` long, in source pixels.
struct Coverage {
  int first = 0;
  std::vector<float> weights;  // of source pixels first, first + 1, ...
};
std::vector<Coverage> CoverWindow(double begin, double length, int side,
                                  int source) {
  std::vector<Coverage> cells(side);
  const double step = length / side;
  for (int i = 0; i < side; ++i) {
    const double from = begin + i * step, to = from + step;
    const int first = std::max(0, static_cast<int>(std::floor(from)));
    const int last = std::min(source, static_cast<int>(std::ceil(to)));
    cells[i].first = first;
    for (int p = first; p < last; ++p) {
      // An exact area filter: picking single pixels would leave thin strokes
      // out at some sizes.
      const double part = std::min(to, p + 1.0) - std::max(from, double(p));
      cells[i].weights.push_back(
          static_cast<float>(std::max(0.0, part) / step));
    }
  }
  return cells;
}

// [side, side, 4] in [0, 255], premultiplied: the mean of the window's pixels,
// with nothing outside the glyph.  Rows first, then columns.
std::vector<float> Shrink(const Glyph& glyph, double left, double top,
                          double window, int side) {
  const auto columns = CoverWindow(left, window, side, glyph.width);
  const auto rows = CoverWindow(top, window, side, glyph.height);
  const auto length = static_cast<size_t>(side) * 4;  // of a row
  std::vector<float> narrow(static_cast<size_t>(glyph.height) * length);
  for (int y = 0; y < glyph.height; ++y) {
    const uint8_t* const from = glyph.bgra.data() + size_t{4} * y * glyph.width;
    for (int x = 0; x < side; ++x) {
      float* const to = narrow.data() + length * y + size_t{4} * x;
      for (size_t k = 0; k < columns[x].weights.size(); ++k) {
        const float weight = columns[x].weights[k];
        const uint8_t* const pixel = from + 4 * (columns[x].first + k);
        for (int c = 0; c < 4; ++c) to[c] += weight * pixel[c];
      }
    }
  }
  std::vector<float> small(side * length);
  for (int y = 0; y < side; ++y) {
    for (size_t k = 0; k < rows[y].weights.size(); ++k) {
      const float weight = rows[y].weights[k];
      const float* const from = narrow.data() + length * (rows[y].first + k);
      float* const to = small.data() + length * y;
      for (size_t i = 0; i < length; ++i) to[i] += weight * from[i];
    }
  }
  return small;
}

using Colour = std::array<float, 3>;  // red, green, blue

// A turn about the grey axis (Rodrigues' formula with axis (1, 1, 1)/sqrt(3)).
Colour TurnHue(const Colour& c, float cosine, float sine) {
  const float grey = (c[0] + c[1] + c[2]) / 3;
  const float s = sine / std::sqrt(3.0f);
  return {grey + cosine * (c[0] - grey) + s * (c[2] - c[1]),
          grey + cosine * (c[1] - grey) + s * (c[0] - c[2]),
          grey + cosine * (c[2] - grey) + s * (c[1] - c[0])};
}

Colour PickBackground(Background background, RngKey key) {
  const bool white = background == Background::kWhite ||
                     (background == Background::kMixed && key.Below(2, 0) == 0);
  if (white) return {255, 255, 255};
  Colour c;
  for (int i = 0; i < 3; ++i) {
    c[i] = static_cast<float>(200 + 55 * key.Uniform(i + 1));
  }
  return c;
}

void DrawImage(const Glyph& glyph, bool may_mirror, Background background,
               RngKey key, int side, std::vector<uint8_t>& pixels) {
  constexpr double kSmallest = 136, kLargest = 155, kHue = 0.2;
  // Each property has a draw of its own number, so that a change to one leaves
  // the others as they are.
  const double window = kSmallest + (kLargest - kSmallest) * key.Uniform(0);
  const double left = -key.Uniform(1) * std::max(0.0, window - glyph.width);
  const double top = -key.Uniform(2) * std::max(0.0, window - glyph.height);
  const double angle = kHue * (2 * key.Uniform(3) - 1);
  const bool mirror = may_mirror && key.Below(2, 4) == 1;
  const Colour behind = PickBackground(background, key.Fold("background"));
  const auto cosine = static_cast<float>(std::cos(angle));
  const auto sine = static_cast<float>(std::sin(angle));

  const std::vector<float> small = Shrink(glyph, left, top, window, side);
  const size_t begin = pixels.size();
  pixels.resize(begin + ImageBytes(side));
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const float* const bgra =
          small.data() + (side * y + (mirror ? side - 1 - x : x)) * 4;
      const Colour c = TurnHue({bgra[2], bgra[1], bgra[0]}, cosine, sine);
      for (int i = 0; i < 3; ++i) {
        // The glyph is premultiplied by its alpha, so the background only fills
        // what is left.
        const float value = c[i] + (1 - bgra[3] / 255) * behind[i];
        pixels[begin + (side * i + y) * side + x] =
            static_cast<uint8_t>(std::lround(std::clamp(value, 0.0f, 255.0f)));
      }
    }
  }
}

void DrawClass(const std::vector<Family>& families, int label, int count,
               Background background, RngKey key, ImageSet& set) {
  for (int i = 0; i < count; ++i) {
    const RngKey image = key.Fold(i);
    const Family& family =
        // A family first and then one of its twins: a family with many skin
        // tones is drawn no more often than another.
        families[image.Fold("family").Below(families.size(), 0)];
    const Glyph& glyph = family[image.Fold("twin").Below(family.size(), 0)];
    DrawImage(glyph, MayMirror(label), background, image.Fold("view"), set.side,
              set.pixels);
    set.labels.push_back(label);
  }
}

// Classes follow each other in the order they are drawn in; files hold them
// mixed.
void Shuffle(ImageSet& set, RngKey key) {
  ImageSet mixed;
  mixed.side = set.side;
  mixed.pixels.reserve(set.pixels.size());
  for (int i : key.Permutation(static_cast<int>(set.size()))) {
    const auto image = set.image(i);
    mixed.pixels.insert(mixed.pixels.end(), image.begin(), image.end());
    mixed.labels.push_back(set.labels[i]);
  }
  set = std::move(mixed);
}

}  // namespace

absl::StatusOr<ImageData> RenderEmoji(
    const EmojiSpec& spec, const std::function<void(int, int)>& progress) {
  constexpr int kMax = 100000;
  if (spec.train_per_class < 5 || spec.train_per_class > kMax ||
      spec.train_per_class % 5 != 0 || spec.held_out_per_class < 1 ||
      spec.held_out_per_class > kMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("images per class: ", spec.train_per_class,
                     " to train and ", spec.held_out_per_class,
                     " held out; the first must be a multiple of "
                     "5, both 1 to ",
                     kMax));
  }
  if (spec.families_per_class != 0 &&
      spec.families_per_class < static_cast<int>(kHeldOut)) {
    return absl::InvalidArgumentError(
        absl::StrCat(spec.families_per_class, " families of emoji per class; ",
                     kHeldOut, " or more, or 0 for all"));
  }
  if (spec.side != 32 && spec.side != 64 && spec.side != 128) {
    return absl::InvalidArgumentError(absl::StrCat(
        "images of ", spec.side, " pixels a side; known: 32, 64, 128"));
  }
  // The same for all sizes, so that the sets show the same.
  const RngKey key = RngKey(spec.seed).Fold("emoji-32");
  GOSSAMER_ASSIGN_OR_RETURN(const std::vector<Part> parts,
                            LoadGlyphs(spec, key.Fold("held out")));
  ImageData data;
  data.train.side = data.test.side = spec.side;
  const auto classes = static_cast<int>(parts.size());
  for (int c = 0; c < classes; ++c) {
    progress(c, classes);
    data.class_names.emplace_back(EmojiClassNames()[c]);
    data.classes.push_back(c);
    DrawClass(parts[c].train, c, spec.train_per_class, spec.background,
              key.Fold("train").Fold(c), data.train);
    DrawClass(parts[c].held_out, c, spec.held_out_per_class, spec.background,
              key.Fold("test").Fold(c), data.test);
  }
  progress(classes, classes);
  Shuffle(data.train, key.Fold("train order"));
  Shuffle(data.test, key.Fold("test order"));
  return data;
}

}  // namespace gossamer
