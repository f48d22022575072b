#include "algorithms/compress/method_options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

// Debian's Abseil has a string_view of its own.
std::string Quoted(std::string_view text) {
  return absl::StrCat("\"", std::string(text), "\"");
}

// NaN if `text` is no number.
double NumberIn(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end ? value : std::nan("");
}

std::string_view TakeItem(std::string_view& text) {
  const std::string_view item = text.substr(0, text.find(','));
  text.remove_prefix(std::min(text.size(), item.size() + 1));
  return item;
}

absl::Status SetOption(std::string_view method, const MethodOption& option,
                       std::string_view text) {
  const double value = NumberIn(text);
  const bool whole = option.real || value == std::floor(value);
  if (whole && value >= option.least && value <= option.most) {
    *option.value = value;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "option ", std::string(option.key), " of ", Quoted(method), " is ",
      Quoted(text), "; it may be a ", option.real ? "" : "whole ",
      "number from ", option.least, " to ", option.most));
}

}  // namespace

MethodName SplitMethodName(std::string_view text) {
  const size_t colon = std::min(text.find(':'), text.size());
  return {text.substr(0, colon), text.substr(std::min(colon + 1, text.size()))};
}

absl::Status ParseMethodOptions(const MethodName& name,
                                std::span<const MethodOption> options) {
  std::vector<std::string> given;
  for (std::string_view text = name.options; !text.empty();) {
    const std::string_view item = TakeItem(text);
    const size_t equals = std::min(item.find('='), item.size());
    const std::string key(item.substr(0, equals));
    const auto option = std::ranges::find(options, key, &MethodOption::key);
    if (option == options.end()) {
      std::vector<std::string> keys;
      for (const MethodOption& o : options) keys.emplace_back(o.key);
      if (!name.taken.empty()) keys.emplace_back(name.taken);
      return absl::InvalidArgumentError(absl::StrCat(
          Quoted(name.base), " has no option ", Quoted(key),
          "; known: ", keys.empty() ? "none" : absl::StrJoin(keys, ", ")));
    }
    if (std::ranges::find(given, key) != given.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "option ", key, " of ", Quoted(name.base), " is given twice"));
    }
    given.push_back(key);
    GOSSAMER_RETURN_IF_ERROR(SetOption(
        name.base, *option, item.substr(std::min(equals + 1, item.size()))));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> TakeMethodOption(const MethodName& name,
                                             const MethodOption& option) {
  std::vector<std::string> own, rest;
  for (std::string_view text = name.options; !text.empty();) {
    const std::string_view item = TakeItem(text);
    const bool is_own = item.substr(0, item.find('=')) == option.key;
    (is_own ? own : rest).emplace_back(item);
  }
  GOSSAMER_RETURN_IF_ERROR(ParseMethodOptions(
      {name.base, absl::StrJoin(own, ",")}, std::span(&option, 1)));
  return absl::StrJoin(rest, ",");
}

absl::Status CheckPartFits(const MethodName& name, std::string_view key,
                           double value, size_t largest) {
  if (largest == 0 || value <= static_cast<double>(largest)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "option ", std::string(key), " of ", Quoted(name.base), " is ", value,
      ", but the largest segment that it divides has ", largest,
      " values: more would be sent than it says; take at most ", largest));
}

}  // namespace gossamer
