// The problems of a part's settings, all of them at once.
//
// The part that a setting belongs to finds its problems, under the setting's
// name; a configuration, from which the settings were made, says where each was
// written.  This header knows nothing of files.

#ifndef GOSSAMER_ALGORITHMS_BASE_PROBLEMS_H_
#define GOSSAMER_ALGORITHMS_BASE_PROBLEMS_H_

#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace gossamer {

struct Problem {
  std::string key;   // "mixing.codec"
  std::string what;  // goes on after it: "is \"x\"; known: ..."
};

class Problems {
 public:
  template <typename... Parts>
  void Refuse(std::string_view key, const Parts&... what) {
    found_.push_back({std::string(key), absl::StrCat(Text(what)...)});
  }
  // Each of these refuses a value that is not as the name says; NaN is never.
  template <typename T>
  void Range(std::string_view key, T value, T least, T most) {
    if (value >= least && value <= most) return;
    Refuse(key, "is ", value, "; it must lie between ", least, " and ", most);
  }
  void Positive(std::string_view key, double value) {
    if (value > 0 && std::isfinite(value)) return;
    Refuse(key, "is ", value, "; it must be above 0");
  }
  void NotNegative(std::string_view key, double value) {
    if (value >= 0 && std::isfinite(value)) return;
    Refuse(key, "is ", value, "; it must be 0 or more");
  }
  void OneOf(std::string_view key, std::string_view value,
             std::span<const std::string_view> known);

  // The problems of a part whose settings stand under `prefix`, "game.gan.",
  // but for keys that have one already.
  void Add(std::string_view prefix, Problems part);

  bool empty() const { return found_.empty(); }
  std::vector<Problem> Take() { return std::move(found_); }
  // kInvalidArgument with a line for each, or OK.
  absl::Status ToStatus() const;

 private:
  template <typename T>
  static const T& Text(const T& part) {
    return part;
  }
  // Debian's Abseil does not concatenate std::string_view.
  static std::string Text(std::string_view part) { return std::string(part); }

  std::vector<Problem> found_;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_BASE_PROBLEMS_H_
