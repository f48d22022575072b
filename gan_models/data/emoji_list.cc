#include "gan_models/data/emoji_list.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace gossamer {
namespace {

enum Class {
  kFace,
  kPerson,
  kHand,
  kAnimal,
  kFoodAndPlant,
  kPlace,
  kLeisure,
  kObject,
  kSymbolAndHeart,
  kFlag,
  kClasses,
  kNoClass = -1
};

constexpr std::array<std::string_view, kClasses> kNames = {
    "face",  "person",  "hand",   "animal",           "food-and-plant",
    "place", "leisure", "object", "symbol-and-heart", "flag"};

// The first rule whose group and beginning of a subgroup fit.
struct Rule {
  std::string_view group, subgroup;
  Class emoji_class;
};
constexpr Rule kRules[] = {
    {"Smileys & Emotion", "face-costume", kLeisure},
    {"Smileys & Emotion", "face-", kFace},
    {"Smileys & Emotion", "cat-face", kAnimal},
    {"Smileys & Emotion", "monkey-face", kAnimal},
    {"Smileys & Emotion", "", kSymbolAndHeart},
    {"People & Body", "hand", kHand},
    {"People & Body", "body-parts", kHand},
    {"People & Body", "", kPerson},
    {"Component", "", kNoClass},
    {"Animals & Nature", "animal-", kAnimal},
    {"Animals & Nature", "", kFoodAndPlant},
    {"Food & Drink", "", kFoodAndPlant},
    {"Travel & Places", "time", kObject},
    {"Travel & Places", "", kPlace},
    {"Activities", "", kLeisure},
    {"Objects", "", kObject},
    {"Symbols", "", kSymbolAndHeart},
    {"Flags", "", kFlag},
};

constexpr char32_t kMiddleFinger = 0x1F595;
constexpr char32_t kJoiner = 0x200D, kEmojiPresentation = 0xFE0F;
constexpr char32_t kPerson_ = 0x1F9D1, kChild = 0x1F9D2, kOlder = 0x1F9D3;

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

Class FindClass(std::string_view group, std::string_view subgroup) {
  for (const Rule& rule : kRules) {
    if (rule.group == group && StartsWith(subgroup, rule.subgroup)) {
      return rule.emoji_class;
    }
  }
  return kNoClass;
}

bool IsSkinTone(char32_t c) { return c >= 0x1F3FB && c <= 0x1F3FF; }
bool IsGenderSign(char32_t c) { return c == 0x2640 || c == 0x2642; }

// Emoji of one gender that have a twin of another, as that of any gender.
char32_t WithoutGender(char32_t c) {
  switch (c) {
    case 0x1F468:  // man
    case 0x1F469:  // woman
    case 0x1F471:  // person with fair hair
    case 0x1F9D4:  // beard
      return kPerson_;
    case 0x1F466:  // boy
    case 0x1F467:  // girl
    case 0x1F476:  // baby
      return kChild;
    case 0x1F474:  // old man
    case 0x1F475:  // old woman
      return kOlder;
    case 0x1F478:  // princess
    case 0x1F934:  // prince
      return 0x1FAC5;
    case 0x1F936:  // Mrs. Claus
      return 0x1F385;
    case 0x1F57A:  // man dancing
      return 0x1F483;
    case 0x1F470:  // person with veil
      return 0x1F935;
    case 0x1F930:  // pregnant woman
    case 0x1FAC3:  // pregnant man
      return 0x1FAC4;
    case 0x1F46B:  // couples holding hands, kissing, in love, families
    case 0x1F46C:
    case 0x1F46D:
    case 0x1F48F:
    case 0x1F491:
      return 0x1F46A;
    default:
      return c;
  }
}

absl::Status BadLine(int number, const std::string& line) {
  return absl::DataLossError(
      absl::StrCat("line ", number, " is not \"code points; status\": ", line));
}

}  // namespace

std::span<const std::string_view> EmojiClassNames() { return kNames; }

bool MayMirror(int emoji_class) {
  return emoji_class != kSymbolAndHeart && emoji_class != kFlag;
}

std::u32string BaseOf(std::u32string_view code_points) {
  // Joined parts, each without tone, presentation and gender.
  std::vector<std::u32string> parts(1);
  for (char32_t c : code_points) {
    if (c == kJoiner) {
      parts.emplace_back();
    } else if (!IsSkinTone(c) && !IsGenderSign(c) && c != kEmojiPresentation) {
      parts.back() += WithoutGender(c);
    }
  }
  std::erase_if(parts, [](const auto& part) { return part.empty(); });
  if (parts.empty())
    return std::u32string(code_points);  // the signs themselves
  // Two or more people are a family or a couple, which also have emoji of one
  // code point.
  const auto people = std::count_if(parts.begin(), parts.end(), [](auto& part) {
    return part[0] == kPerson_ || part[0] == kChild;
  });
  if (people >= 2) return {0x1F46A};
  // A Claus of no gender is a person joined with a tree.
  if (parts.size() == 2 && parts[1] == U"\U0001F384") return {0x1F385};
  std::u32string base;
  for (const auto& part : parts) base += part;
  return base;
}

absl::StatusOr<std::vector<Emoji>> ParseEmojiList(std::istream& file) {
  std::vector<Emoji> emoji;
  std::string line, group, subgroup;
  for (int number = 1; std::getline(file, line); ++number) {
    constexpr std::string_view kGroup = "# group: ";
    constexpr std::string_view kSubgroup = "# subgroup: ";
    if (StartsWith(line, kGroup)) group = line.substr(kGroup.size());
    if (StartsWith(line, kSubgroup)) subgroup = line.substr(kSubgroup.size());
    if (line.empty() || line[0] == '#') continue;
    const size_t semicolon = line.find(';');
    if (semicolon == std::string::npos) return BadLine(number, line);
    const Class emoji_class = FindClass(group, subgroup);
    const bool qualified = StartsWith(
        std::string_view(line).substr(semicolon + 1), " fully-qualified ");
    // The list repeats emoji in forms without the presentation selector; the
    // fully qualified one stands for all.
    if (!qualified || emoji_class == kNoClass) continue;
    Emoji e;
    e.emoji_class = emoji_class;
    for (absl::string_view code :
         absl::StrSplit(line.substr(0, semicolon), ' ', absl::SkipEmpty())) {
      uint32_t c = 0;
      if (!absl::SimpleHexAtoi(code, &c)) return BadLine(number, line);
      e.code_points += static_cast<char32_t>(c);
    }
    if (e.code_points.empty()) return BadLine(number, line);
    if (e.code_points[0] == kMiddleFinger) continue;
    e.base = BaseOf(e.code_points);
    emoji.push_back(std::move(e));
  }
  return emoji;
}

}  // namespace gossamer
