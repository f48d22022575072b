#include "gan_models/data/class_choice.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gossamer {

absl::StatusOr<std::vector<ImageClass>> ChooseClasses(
    std::span<const std::string> names,
    const std::vector<std::string>& classes) {
  // Names that an error lists.
  constexpr size_t kListed = 100;
  std::vector<bool> wanted(names.size(), classes.empty());
  for (const std::string& c : classes) {
    // A name goes before a number: a class may be called by digits.
    size_t number = std::find(names.begin(), names.end(), c) - names.begin();
    if (number == names.size() && !absl::SimpleAtoi(c, &number)) {
      number = names.size();
    }
    if (number >= names.size()) {
      const auto listed = names.first(std::min(names.size(), kListed));
      return absl::InvalidArgumentError(absl::StrCat(
          "game.gan.data.classes has \"", c, "\"; known: ",
          absl::StrJoin(listed, ", "), names.size() > kListed ? ", ..." : "",
          ", or a number below ", names.size()));
    }
    wanted[number] = true;
  }
  std::vector<ImageClass> chosen;
  for (size_t i = 0; i < names.size(); ++i) {
    if (wanted[i]) chosen.push_back({static_cast<int>(i), names[i]});
  }
  return chosen;
}

}  // namespace gossamer
