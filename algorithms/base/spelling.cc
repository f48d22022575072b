#include "algorithms/base/spelling.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gossamer {
namespace {

// Levenshtein's distance with one row of the table: `diagonal` is what the row
// before had one place to the left.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

}  // namespace

std::string Listed(std::span<const std::string_view> names) {
  const std::vector<std::string> all(names.begin(), names.end());
  return absl::StrJoin(all, ", ");
}

std::string Nearest(std::string_view word,
                    std::span<const std::string_view> known) {
  std::string_view best;
  // Two letters, or a third of the word, may be wrong; a name that is further
  // away is no likely meaning, and to suggest it would mislead.
  size_t least = std::max<size_t>(2, word.size() / 3) + 1;
  for (std::string_view name : known) {
    const size_t distance = EditDistance(word, name);
    if (distance < least) {
      least = distance;
      best = name;
    }
  }
  return std::string(best);
}

std::string Suggestion(std::string_view word,
                       std::span<const std::string_view> known) {
  const std::string nearest = Nearest(word, known);
  if (!nearest.empty()) return absl::StrCat("did you mean \"", nearest, "\"?");
  return absl::StrCat("known: ", Listed(known));
}

std::string KnownAndNearest(std::string_view word,
                            std::span<const std::string_view> known) {
  const std::string nearest = Nearest(word, known);
  return absl::StrCat("known: ", Listed(known),
                      nearest.empty()
                          ? ""
                          : absl::StrCat(" (did you mean \"", nearest, "\"?)"));
}

}  // namespace gossamer
