#include "algorithms/base/problems.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "algorithms/base/spelling.h"

namespace gossamer {

void Problems::OneOf(std::string_view key, std::string_view value,
                     std::span<const std::string_view> known) {
  if (std::ranges::find(known, value) != known.end()) return;
  Refuse(key, "is \"", value, "\"; ", KnownAndNearest(value, known));
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
