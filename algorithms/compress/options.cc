#include "algorithms/compress/options.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

// Debian's Abseil has a string_view of its own.
std::string Quoted(std::string_view text) {
  return absl::StrCat("\"", std::string(text), "\"");
}

std::string_view TakeItem(std::string_view& text) {
  const std::string_view item = text.substr(0, text.find(','));
  text.remove_prefix(std::min(text.size(), item.size() + 1));
  return item;
}

absl::Status Refused(std::string_view name, const Option& option,
                     const std::string& value) {
  return absl::InvalidArgumentError(
      absl::StrCat("option ", std::string(option.key), " of ", Quoted(name),
                   " is ", value, "; it may be ", option.allowed));
}

}  // namespace

double NumberIn(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end ? value : std::nan("");
}

std::string WrittenNumber(double value) { return absl::StrCat(value); }

std::string WholeRange(int64_t least, int64_t most) {
  return absl::StrCat("a whole number from ", least, " to ", most);
}

std::string RealRange(double least, double most) {
  return absl::StrCat("a number from ", least, " to ", most);
}

Option RealOption(std::string_view key, double* value, double least,
                  double most) {
  const auto may_be = [=](double number) {  // not if it is NaN
    return number >= least && number <= most;
  };
  return {.key = key,
          .allowed = RealRange(least, most),
          .read =
              [=](std::string_view text) {
                const double number = NumberIn(text);
                if (!may_be(number)) return false;
                *value = number;
                return true;
              },
          .valid = [=] { return may_be(*value); },
          .written = [=] { return WrittenNumber(*value); }};
}

Option FlagOption(std::string_view key, bool* value) {
  return WholeOption(key, value, 0, 1);
}

CompressorText SplitCompressorText(std::string_view text) {
  const size_t colon = std::min(text.find(':'), text.size());
  return {.whole = text,
          .name = text.substr(0, colon),
          .options = text.substr(std::min(colon + 1, text.size()))};
}

absl::Status ReadOptions(const CompressorText& text,
                         std::span<const Option> options) {
  std::vector<std::string> given;
  for (std::string_view rest = text.options; !rest.empty();) {
    const std::string_view item = TakeItem(rest);
    const size_t equals = std::min(item.find('='), item.size());
    const std::string key(item.substr(0, equals));
    const auto option = std::ranges::find(options, key, &Option::key);
    if (option == options.end()) {
      std::vector<std::string> keys;
      for (const Option& o : options) keys.emplace_back(o.key);
      if (!text.taken.empty()) keys.emplace_back(text.taken);
      return absl::InvalidArgumentError(absl::StrCat(
          Quoted(text.name), " has no option ", Quoted(key),
          "; known: ", keys.empty() ? "none" : absl::StrJoin(keys, ", ")));
    }
    if (std::ranges::find(given, key) != given.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "option ", key, " of ", Quoted(text.name), " is given twice"));
    }
    given.push_back(key);
    const std::string_view value =
        item.substr(std::min(equals + 1, item.size()));
    if (!option->read(value)) return Refused(text.name, *option, Quoted(value));
  }
  return absl::OkStatus();
}

absl::Status CheckOptions(std::string_view name,
                          std::span<const Option> options) {
  for (const Option& option : options) {
    if (!option.valid()) return Refused(name, option, option.written());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> TakeOption(const CompressorText& text,
                                       const Option& option) {
  std::vector<std::string> own, others;
  for (std::string_view rest = text.options; !rest.empty();) {
    const std::string_view item = TakeItem(rest);
    const bool is_own = item.substr(0, item.find('=')) == option.key;
    (is_own ? own : others).emplace_back(item);
  }
  CompressorText taken = text;
  const std::string joined = absl::StrJoin(own, ",");
  taken.options = joined;
  GOSSAMER_RETURN_IF_ERROR(ReadOptions(taken, std::span(&option, 1)));
  return absl::StrJoin(others, ",");
}

absl::Status CheckPartFits(std::string_view name, std::string_view key,
                           size_t value, size_t largest) {
  if (largest == 0 || value <= largest) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "option ", std::string(key), " of ", Quoted(name), " is ", value,
      ", but the largest segment that it divides has ", largest,
      " values: more would be sent than it says; take at most ", largest));
}

}  // namespace gossamer
