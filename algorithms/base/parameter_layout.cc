#include "algorithms/base/parameter_layout.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "algorithms/base/rng.h"

namespace gossamer {

ParameterLayout::ParameterLayout(std::vector<Segment> segments,
                                 std::vector<std::string> players)
    : segments_(std::move(segments)),
      players_(std::move(players)),
      extents_(players_.size()) {
  // Names, players and shapes in order; offsets follow from these.
  RngKey hash(0);
  size_t player = 0;
  for (Segment& s : segments_) {
    const auto of = static_cast<size_t>(s.player);
    assert(of >= player && of < players_.size() &&
           "segments come in the order of their players");
    // A player without segments has an empty extent between its neighbours', so
    // that extents always cover the vector in order.
    while (player < of) extents_[++player].offset = size_;
    size_t n = 1;
    hash = hash.Fold(s.name).Fold(static_cast<uint64_t>(s.player));
    for (int64_t d : s.shape) {
      n *= static_cast<size_t>(d);
      hash = hash.Fold(static_cast<uint64_t>(d));
    }
    s.extent = {size_, n};
    size_ += n;
    extents_[of].size += n;
  }
  while (++player < extents_.size()) extents_[player].offset = size_;
  fingerprint_ = hash.Bits(0);
}

std::string ParameterLayout::Text() const {
  std::string text;
  for (const Segment& s : segments_) {
    absl::StrAppend(&text, s.name, " ", absl::StrJoin(s.shape, ","), "\n");
  }
  return text;
}

std::string FirstDifference(const std::string& own, const std::string& others,
                            const std::string& other) {
  const std::vector<std::string> a = absl::StrSplit(own, '\n');
  const std::vector<std::string> b = absl::StrSplit(others, '\n');
  const auto quote = [](const std::vector<std::string>& lines, size_t i) {
    // The last line of a text is empty: the tensors end before it.
    return i + 1 < lines.size() ? absl::StrCat("\"", lines[i], "\"")
                                : std::string("no more");
  };
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i < a.size() && i < b.size() && a[i] == b[i]) continue;
    return absl::StrCat("tensor ", i + 1, " is ", quote(a, i),
                        " of this peer and ", quote(b, i), " of ", other);
  }
  return "";
}

const Segment& ParameterLayout::At(size_t index) const {
  assert(index < size_);
  // Offsets rise, so the segment is the one before the first that begins behind
  // `index`.
  auto it = std::upper_bound(
      segments_.begin(), segments_.end(), index,
      [](size_t i, const Segment& s) { return i < s.extent.offset; });
  return *std::prev(it);
}

}  // namespace gossamer
