// The text behind a compressor's name, "key=value,key=value", and the typed
// options of that compressor.
//
// A compressor describes its options as a list of fields, each with the values
// that it may have; the list reads a text and checks options that were set
// otherwise.  This header knows nothing of what an option means.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_OPTIONS_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_OPTIONS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gossamer {

// A compressor as a configuration names it: "innov-topk:k=32".
struct CompressorText {
  std::string_view whole;
  std::string_view name;     // before the first colon
  std::string_view options;  // behind it
  // An option that was taken from the text: messages name it, too.
  std::string_view taken = {};
};
CompressorText SplitCompressorText(std::string_view text);

// An option: how its value is read from a text, and whether it is one of those
// that it may have.
struct Option {
  std::string_view key;
  std::string allowed;  // "a whole number from 1 to 64"
  std::function<bool(std::string_view text)> read;
  std::function<bool()> valid;
  std::function<std::string()> written;  // its value as text
};

// NaN if `text` is no number.
double NumberIn(std::string_view text);
std::string WrittenNumber(double value);
std::string WholeRange(int64_t least, int64_t most);
std::string RealRange(double least, double most);

// A whole number from `least` to `most` for which `fits` holds; `allowed` says
// which these are.
template <typename T>
Option WholeOption(std::string_view key, T* value, int64_t least, int64_t most,
                   std::string allowed = "", bool (*fits)(int64_t) = nullptr) {
  const auto may_be = [=](double number) {
    return number >= static_cast<double>(least) &&
           number <= static_cast<double>(most) &&
           number == std::floor(number) &&
           (fits == nullptr || fits(static_cast<int64_t>(number)));
  };
  return {
      .key = key,
      .allowed = allowed.empty() ? WholeRange(least, most) : std::move(allowed),
      .read =
          [=](std::string_view text) {
            const double number = NumberIn(text);
            if (!may_be(number)) return false;
            *value = static_cast<T>(number);
            return true;
          },
      .valid = [=] { return may_be(static_cast<double>(*value)); },
      .written = [=] { return WrittenNumber(static_cast<double>(*value)); }};
}
// A number from `least` to `most`.
Option RealOption(std::string_view key, double* value, double least,
                  double most);
// 0 or 1.
Option FlagOption(std::string_view key, bool* value);
// A word.
template <typename T>
Option WordOption(std::string_view key, T* value,
                  std::initializer_list<std::pair<std::string_view, T>> words,
                  std::string allowed) {
  const std::vector<std::pair<std::string_view, T>> all(words);
  return {.key = key,
          .allowed = std::move(allowed),
          .read =
              [=](std::string_view text) {
                for (const auto& [word, meaning] : all) {
                  if (word != text) continue;
                  *value = meaning;
                  return true;
                }
                return false;
              },
          .valid =
              [=] {
                for (const auto& [word, meaning] : all) {
                  if (meaning == *value) return true;
                }
                return false;
              },
          .written =
              [=] {
                for (const auto& [word, meaning] : all) {
                  if (meaning == *value) return std::string(word);
                }
                return std::string("none of them");
              }};
}

// Reads what `text` gives; the others stay as they are.  kInvalidArgument for a
// key that is none of `options` (naming them) or was given before, and for a
// value that the option may not have.
absl::Status ReadOptions(const CompressorText& text,
                         std::span<const Option> options);

// kInvalidArgument for the first of `options` that has a value that it may not
// have; `name` is the compressor's.
absl::Status CheckOptions(std::string_view name,
                          std::span<const Option> options);

// Reads `option` if it is given; returns the text of the others.  Errors as of
// ReadOptions.
absl::StatusOr<std::string> TakeOption(const CompressorText& text,
                                       const Option& option);

// kInvalidArgument if option `key`, the size of a part, is larger than all that
// there is to divide, of which the largest is `largest`: more would be sent
// than asked for.  0: there is nothing.
absl::Status CheckPartFits(std::string_view name, std::string_view key,
                           size_t value, size_t largest);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_OPTIONS_H_
