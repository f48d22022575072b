#include "runtime/lab/units.h"

#include <cctype>
#include <cmath>
#include <optional>
#include <span>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

namespace gossamer {
namespace {

struct Unit {
  std::string_view name;  // in lower case
  double factor;
};

// Units of bits a second, as factors in bytes.
constexpr Unit kRates[] = {
    {"bit", 1.0 / 8}, {"kbit", 1e3 / 8}, {"mbit", 1e6 / 8}, {"gbit", 1e9 / 8}};
constexpr Unit kSizes[] = {{"b", 1},    {"kb", 1e3},   {"mb", 1e6},
                           {"gb", 1e9}, {"kib", 1024}, {"mib", 1024 * 1024}};

// Returns 100 times "mbit" for "100mbit"; nothing if the text is not a number
// and a unit.
std::optional<double> Parse(std::string_view text,
                            std::span<const Unit> units) {
  const size_t end = text.find_first_not_of("0123456789.");
  if (end == 0 || end == std::string_view::npos) return std::nullopt;
  double number = 0;
  if (!absl::SimpleAtod(std::string(text.substr(0, end)), &number)) {
    return std::nullopt;
  }
  const std::string unit = absl::AsciiStrToLower(
      absl::StripAsciiWhitespace(std::string(text.substr(end))));
  for (const Unit& u : units) {
    if (u.name == unit) return number * u.factor;
  }
  return std::nullopt;
}

absl::Status Refuse(std::string_view text, std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("is \"", std::string(text), "\"; ", std::string(what)));
}

}  // namespace

absl::StatusOr<uint64_t> ParseRate(std::string_view text) {
  if (text == "unlimited") return 0;
  const std::optional<double> rate = Parse(text, kRates);
  if (!rate) {
    return Refuse(text,
                  "write bits per second with a unit (bit, kbit, mbit, gbit), "
                  "such as 100mbit, or unlimited");
  }
  if (*rate == 0) {
    return Refuse(text,
                  "a link without any rate carries nothing: write unlimited, "
                  "or an outage");
  }
  // The comparison is false for NaN.
  if (!(*rate >= 125 && *rate <= 125e9)) {
    return Refuse(text, "it must lie between 1kbit and 1000gbit");
  }
  return static_cast<uint64_t>(std::llround(*rate));
}

absl::StatusOr<uint64_t> ParseQueueSize(std::string_view text) {
  const std::optional<double> size = Parse(text, kSizes);
  if (!size) {
    return Refuse(text,
                  "write bytes with a unit (KB, MB, GB, KiB, MiB), such "
                  "as 8MB");
  }
  if (!(*size >= 64e3 && *size <= 1e9)) {
    return Refuse(text, "it must lie between 64KB and 1GB");
  }
  return static_cast<uint64_t>(std::llround(*size));
}

absl::StatusOr<int64_t> ParseNanos(std::string_view text, double max_seconds) {
  absl::Duration duration;
  if (!absl::ParseDuration(std::string(text), &duration)) {
    return Refuse(text, "write a duration with a unit, such as 40ms or 2m30s");
  }
  if (duration < absl::ZeroDuration()) {
    return Refuse(text, "it cannot be negative");
  }
  if (duration > absl::Seconds(max_seconds)) {
    return Refuse(
        text, absl::StrCat("it can be at most ",
                           absl::FormatDuration(absl::Seconds(max_seconds))));
  }
  return absl::ToInt64Nanoseconds(duration);
}

std::string RateText(uint64_t bytes_per_second) {
  if (bytes_per_second == 0) return "unlimited";
  const double bits = 8.0 * static_cast<double>(bytes_per_second);
  if (bits >= 1e9) return absl::StrFormat("%.4g Gbit/s", bits / 1e9);
  if (bits >= 1e6) return absl::StrFormat("%.4g Mbit/s", bits / 1e6);
  return absl::StrFormat("%.4g kbit/s", bits / 1e3);
}

std::string MillisText(int64_t nanos) {
  return absl::StrFormat("%.6g ms", static_cast<double>(nanos) * 1e-6);
}

}  // namespace gossamer
