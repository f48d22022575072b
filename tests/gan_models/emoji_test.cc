// The list of emoji and the pictures of them.  Emoji that differ in tone or
// gender count as one, so that none is in both the training and the held-out
// set.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "gan_models/data/emoji_list.h"
#include "gan_models/data/emoji_renderer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace emoji_test {

using ::testing::HasSubstr;

constexpr char kList[] = R"(# a comment
# group: Smileys & Emotion
# subgroup: face-smiling
1F600        ; fully-qualified     # grinning face
263A FE0F    ; fully-qualified     # smiling face
263A         ; unqualified         # smiling face

# subgroup: heart
2764 FE0F    ; fully-qualified     # red heart
# group: People & Body
# subgroup: hand-single-finger
1F595        ; fully-qualified     # middle finger
1F595 1F3FB  ; fully-qualified     # middle finger: light skin tone
1F448 1F3FB  ; fully-qualified     # pointing left: light skin tone
# group: Component
# subgroup: skin-tone
1F3FB        ; component           # light skin tone
# group: Flags
# subgroup: country-flag
1F1E8 1F1ED  ; fully-qualified     # flag: Switzerland
)";

TEST(EmojiListTest, TakesFullyQualifiedEmojiWithTheirClasses) {
  std::istringstream file(kList);
  const auto emoji = ParseEmojiList(file);
  ASSERT_TRUE(emoji.ok()) << emoji.status();
  std::vector<std::string> classes;
  for (const Emoji& e : *emoji) {
    classes.emplace_back(EmojiClassNames()[e.emoji_class]);
  }
  EXPECT_THAT(classes, testing::ElementsAre("face", "face", "symbol-and-heart",
                                            "hand", "flag"));
  EXPECT_EQ((*emoji)[4].code_points, U"\U0001F1E8\U0001F1ED");
}

TEST(EmojiListTest, BadLinesAreRefused) {
  for (const char* bad : {"# group: Flags\n1F600\n",
                          "# group: Flags\n1F6XX ; fully-qualified # x\n",
                          "# group: Flags\n ; fully-qualified # x\n"}) {
    std::istringstream file(bad);
    const auto emoji = ParseEmojiList(file);
    EXPECT_EQ(emoji.status().code(), absl::StatusCode::kDataLoss) << bad;
    EXPECT_THAT(std::string(emoji.status().message()), HasSubstr("line 2"));
  }
}

TEST(EmojiListTest, TwinsShareABase) {
  const auto same = [](std::u32string_view a, std::u32string_view b) {
    return BaseOf(a) == BaseOf(b);
  };
  // Thumbs up, without and with a tone.
  EXPECT_TRUE(same(U"\U0001F44D", U"\U0001F44D\U0001F3FF"));
  // A health worker: a person, and a man or woman with a tone.
  EXPECT_TRUE(same(U"\U0001F9D1\u200D\u2695\uFE0F",
                   U"\U0001F469\U0001F3FD\u200D\u2695\uFE0F"));
  // A runner, and a woman running.
  EXPECT_TRUE(same(U"\U0001F3C3", U"\U0001F3C3\u200D\u2640\uFE0F"));
  EXPECT_TRUE(same(U"\U0001F934", U"\U0001F478"));  // a prince and a princess
  // Santa Claus and Mx Claus.
  EXPECT_TRUE(same(U"\U0001F385", U"\U0001F9D1\u200D\U0001F384"));
  // A couple of one code point, and a family of three people.
  EXPECT_TRUE(
      same(U"\U0001F46B", U"\U0001F468\u200D\U0001F469\u200D\U0001F467"));
  EXPECT_FALSE(same(U"\U0001F600", U"\U0001F603"));
  // A health worker and a cook.
  EXPECT_FALSE(
      same(U"\U0001F9D1\u200D\u2695\uFE0F", U"\U0001F9D1\u200D\U0001F373"));
  EXPECT_FALSE(same(U"\U0001F1E8\U0001F1ED", U"\U0001F1E8\U0001F1F1"));
  // The gender signs themselves.
  EXPECT_FALSE(same(U"\u2640\uFE0F", U"\u2642\uFE0F"));
}

EmojiSpec Small() {
  EmojiSpec spec;
  spec.train_per_class = 20;
  spec.held_out_per_class = 6;
  return spec;
}

void Ignore(int, int) {}

TEST(EmojiRendererTest, DrawsEveryClassTheSameEachTime) {
  const auto a = RenderEmoji(Small(), Ignore);
  ASSERT_TRUE(a.ok()) << a.status();
  EXPECT_EQ(a->class_names.size(), 10u);
  EXPECT_EQ(a->train.size(), 200u);
  EXPECT_EQ(a->test.size(), 60u);
  std::map<int, int> count;
  for (int label : a->train.labels) ++count[label];
  for (const auto& [label, n] : count) EXPECT_EQ(n, 20) << label;
  const auto b = RenderEmoji(Small(), Ignore);
  EXPECT_EQ(a->train.pixels, b->train.pixels);
  EXPECT_EQ(a->test.labels, b->test.labels);
  EmojiSpec other = Small();
  other.seed = 2;
  EXPECT_NE(RenderEmoji(other, Ignore)->train.pixels, a->train.pixels);
}

// The mean of the four pixels of a larger picture that are one of a smaller.
double MeanOfFour(std::span<const uint8_t> image, int side, int plane, int y,
                  int x) {
  const uint8_t* const from = image.data() + (size_t{4} * side * side * plane) +
                              (size_t{4} * side * y) + (size_t{2} * x);
  return (from[0] + from[1] + from[2 * side] + from[2 * side + 1]) / 4.0;
}

TEST(EmojiRendererTest, LargerImagesShowTheSame) {
  EmojiSpec spec = Small();
  spec.train_per_class = 5;
  absl::StatusOr<ImageData> smaller = RenderEmoji(spec, Ignore);
  for (int side : {64, 128}) {
    SCOPED_TRACE(side);
    spec.side = side;
    const auto larger = RenderEmoji(spec, Ignore);
    ASSERT_TRUE(smaller.ok() && larger.ok());
    ASSERT_EQ(larger->train.side, side);
    EXPECT_EQ(larger->train.labels, smaller->train.labels);
    ASSERT_EQ(larger->train.pixels.size(), 4 * smaller->train.pixels.size());
    const int half = side / 2;
    double largest = 0, sum = 0;
    for (size_t i = 0; i < larger->train.size(); ++i) {
      const auto a = larger->train.image(i), b = smaller->train.image(i);
      for (size_t j = 0; j < b.size(); ++j) {
        const auto p = static_cast<int>(j);
        const double difference = std::abs(
            MeanOfFour(a, half, p / (half * half), p / half % half, p % half) -
            b[j]);
        largest = std::max(largest, difference);
        sum += difference;
      }
    }
    // Rounding, and colours that the turn of the hue takes out of range, which
    // are cut at each size by itself.
    EXPECT_LT(sum / static_cast<double>(smaller->train.pixels.size()), 0.5);
    EXPECT_LT(largest, 40);
    smaller = larger;
  }
}

TEST(EmojiRendererTest, ImagesHoldAGlyphOnTheirBackground) {
  EmojiSpec spec = Small();
  const auto white = RenderEmoji(spec, Ignore);
  spec.background = Background::kPastel;
  const auto pastel = RenderEmoji(spec, Ignore);
  ASSERT_TRUE(white.ok() && pastel.ok());
  int white_corners = 0, pastel_corners = 0;
  for (size_t i = 0; i < white->train.size(); ++i) {
    const auto image = white->train.image(i);
    const auto [low, high] = std::minmax_element(image.begin(), image.end());
    EXPECT_GT(*high - *low, 60) << i;
    white_corners +=
        image[0] == 255 && image[1024] == 255 && image[2048] == 255;
    const auto other = pastel->train.image(i);
    pastel_corners +=
        other[0] == 255 && other[1024] == 255 && other[2048] == 255;
  }
  EXPECT_GT(white_corners, 180);  // few glyphs reach a corner
  EXPECT_LT(pastel_corners, 5);
}

TEST(EmojiRendererTest, FacesAreYellow) {
  const auto data = RenderEmoji(Small(), Ignore);
  ASSERT_TRUE(data.ok());
  double red = 0, blue = 0;
  int faces = 0;
  for (size_t i = 0; i < data->train.size(); ++i) {
    if (data->class_names[data->train.labels[i]] != "face") continue;
    const auto image = data->train.image(i);
    red += image[16 * 32 + 10];
    blue += image[2048 + 16 * 32 + 10];
    ++faces;
  }
  ASSERT_EQ(faces, 20);
  EXPECT_GT(red / faces, blue / faces + 60);
}

// The distance of a class's pictures from their mean, over all classes.
double Spread(const ImageSet& set) {
  std::map<int, std::vector<size_t>> of_class;
  for (size_t i = 0; i < set.size(); ++i) of_class[set.labels[i]].push_back(i);
  double sum = 0;
  for (const auto& [label, images] : of_class) {
    for (size_t p = 0; p < ImageBytes(set.side); ++p) {
      double mean = 0, square = 0;
      for (const size_t i : images) {
        const double value = set.image(i)[p];
        mean += value / static_cast<double>(images.size());
        square += value * value / static_cast<double>(images.size());
      }
      sum += square - mean * mean;
    }
  }
  return sum;
}

TEST(EmojiRendererTest, FewFamiliesAreMoreAlike) {
  EmojiSpec spec = Small();
  const auto all = RenderEmoji(spec, Ignore);
  spec.families_per_class = 10000;
  const auto more = RenderEmoji(spec, Ignore);
  spec.families_per_class = 5;
  const auto few = RenderEmoji(spec, Ignore);
  ASSERT_TRUE(all.ok() && more.ok() && few.ok());
  EXPECT_EQ(more->train.pixels, all->train.pixels);
  EXPECT_EQ(few->train.size(), all->train.size());
  EXPECT_LT(Spread(few->train), 0.8 * Spread(all->train));
  // Each class has one family held out, whose twins alone are drawn.
  EXPECT_LT(Spread(few->test), 0.8 * Spread(all->test));
}

TEST(EmojiRendererTest, ErrorsSayWhatToInstall) {
  EmojiSpec spec = Small();
  spec.font = "/no/font.ttf";
  const auto no_font = RenderEmoji(spec, Ignore);
  EXPECT_EQ(no_font.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(no_font.status().message()),
              HasSubstr("fonts-noto-color-emoji"));
  spec = Small();
  spec.list = "/no/list.txt";
  EXPECT_THAT(std::string(RenderEmoji(spec, Ignore).status().message()),
              HasSubstr("unicode-data"));
  spec = Small();
  spec.font = spec.list;
  EXPECT_EQ(RenderEmoji(spec, Ignore).status().code(),
            absl::StatusCode::kDataLoss);
  spec = Small();
  spec.train_per_class = 7;
  EXPECT_EQ(RenderEmoji(spec, Ignore).status().code(),
            absl::StatusCode::kInvalidArgument);
  spec = Small();
  spec.families_per_class = 4;
  EXPECT_THAT(std::string(RenderEmoji(spec, Ignore).status().message()),
              HasSubstr("5 or more"));
  spec = Small();
  spec.side = 48;
  EXPECT_THAT(std::string(RenderEmoji(spec, Ignore).status().message()),
              HasSubstr("48 pixels"));
}

}  // namespace emoji_test
}  // namespace gossamer
