#include "algorithms/base/problems.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "algorithms/base/spelling.h"

namespace gossamer {

void Problems::OneOf(std::string_view key, std::string_view value,
                     std::span<const std::string_view> known) {
  if (std::ranges::find(known, value) != known.end()) return;
  const std::vector<std::string> names(known.begin(), known.end());
  const std::string nearest = Nearest(value, known);
  Refuse(key, "is \"", value, "\"; known: ", absl::StrJoin(names, ", "),
         nearest.empty() ? ""
                         : absl::StrCat(" (did you mean \"", nearest, "\"?)"));
}

void Problems::Add(std::string_view prefix, Problems part) {
  for (Problem& problem : part.found_) {
    problem.key.insert(0, prefix);
    const bool known = std::ranges::any_of(
        found_, [&](const Problem& p) { return p.key == problem.key; });
    if (!known) found_.push_back(std::move(problem));
  }
}

absl::Status Problems::ToStatus() const {
  if (found_.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrJoin(found_, "\n", [](std::string* out, const Problem& p) {
        absl::StrAppend(out, p.key, " ", p.what);
      }));
}

}  // namespace gossamer
