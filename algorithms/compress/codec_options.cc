#include "algorithms/compress/codec_options.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

// Debian's Abseil has a string_view of its own.
std::string Quoted(std::string_view text) {
  return absl::StrCat("\"", std::string(text), "\"");
}

// -1 if `text` is no number.
int64_t NumberIn(std::string_view text) {
  int64_t value = -1;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end ? value : -1;
}

// NaN if `text` is no number.
double RealIn(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end
             ? value
             : std::numeric_limits<double>::quiet_NaN();
}

// An option that is a real number, and those that it may be.
struct RealOption {
  std::string_view key;
  double* value;
  double least, most;
  const char* allowed;
};

// Below, dyna's step is lost in the rounding of parameters of about 1, or
// shrinks faster than the method converges, and the dual runs away; moniqua's,
// of 8 bits, is so short that 2^23 of it reach no further than 6.6.
const char* SetReal(const RealOption& option, std::string_view text) {
  const double real = RealIn(text);
  if (!(real >= option.least && real <= option.most)) return option.allowed;
  *option.value = real;
  return nullptr;
}

// Null if `value` is one that option `key` may have, else those that are.
const char* SetOption(std::string_view key, std::string_view value,
                      CodecOptions& options) {
  const RealOption reals[] = {
      {"scale", &options.unit.scale, 1e-6, 1e20, "1e-6 to 1e20"},
      {"decay", &options.unit.decay, 0.95, 0.999999,
       "0.95 to 0.999999, such as 0.99"},
      {"floor", &options.unit.floor, 1e-6, 1e20, "1e-6 to 1e20"},
      {"theta", &options.theta, 1e-4, 1e20, "1e-4 to 1e20"}};
  const auto* const real = std::ranges::find(reals, key, &RealOption::key);
  if (real != std::end(reals)) return SetReal(*real, value);
  const int64_t number = NumberIn(value);
  if (key == "k") {
    if (number < 1 || number > static_cast<int64_t>(kChunkSize)) {
      return "1 to 4096";
    }
    options.kept = static_cast<uint16_t>(number);
  } else if (key == "levels") {
    // Those that fill 2, 4 and 8 bits.
    if (number != 1 && number != 7 && number != 127) return "1, 7 or 127";
    options.levels = static_cast<uint8_t>(number);
  } else if (key == "bucket") {
    if (number < 128 || number > 32768 || number % 128 != 0) {
      return "a multiple of 128 up to 32768";
    }
    options.bucket = static_cast<uint16_t>(number);
  } else if (key == "least") {
    if (number < 1 || number > int64_t{1} << 30) return "1 to 1073741824";
    options.least = static_cast<size_t>(number);
  } else if (key == "raw") {
    if (value != "bf16" && value != "f32") return "bf16 or f32";
    options.raw = value == "f32" ? Coding::kF32 : Coding::kBf16;
  } else if (key == "bits") {
    if (number != 4 && number != 8) return "4 or 8";
    options.bits = static_cast<int>(number);
  } else if (key == "fragments") {
    if (number < 1 || number > 64) return "1 to 64";
    options.fragments = static_cast<int>(number);
  } else if (key == "coding") {
    if (value != "fixed" && value != "gamma" && value != "omega") {
      return "fixed, gamma or omega";
    }
    if (options.packing != Packing::kNone) return "left out next to zstd";
    if (value != "fixed") {
      options.packing = value == "gamma" ? Packing::kGamma : Packing::kOmega;
    }
  } else if (key == "zstd") {
    if (options.packing != Packing::kNone) return "left out next to coding";
    // Above, a context takes tens of megabytes and gains nothing on codes.
    if (number < 1 || number > 9) return "1 to 9";
    options.packing = Packing::kZstd;
    options.zstd_level = static_cast<int>(number);
  } else {
    if (value != "max" && value != "l2") return "max or l2";
    options.norm = value == "l2" ? Coding::kEuclidean : Coding::kMax;
  }
  return nullptr;
}

}  // namespace

float ShrinkingStep::StepOf(uint64_t round) const {
  // Multiplications only: a library's pow differs between machines.
  double power = 1;
  for (double factor = decay; round != 0; round >>= 1, factor *= factor) {
    if (round & 1) power *= factor;
  }
  return NearestScale(static_cast<float>(std::max(scale * power, floor) / 2),
                      1);
}

absl::StatusOr<CodecOptions> ParseCodecOptions(
    std::string_view codec, std::span<const std::string_view> known,
    std::string_view text) {
  CodecOptions options;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const size_t equals = std::min(item.find('='), item.size());
    const std::string_view key = item.substr(0, equals);
    if (std::ranges::find(known, key) == known.end()) {
      std::string names;
      for (const std::string_view name : known) {
        absl::StrAppend(&names, names.empty() ? "" : ", ", std::string(name));
      }
      return absl::InvalidArgumentError(absl::StrCat(
          "codec ", Quoted(codec), " has no option ", Quoted(key), "; ",
          names.empty() ? "it has none" : absl::StrCat("known: ", names)));
    }
    const std::string_view value =
        item.substr(std::min(equals + 1, item.size()));
    if (const char* allowed = SetOption(key, value, options)) {
      return absl::InvalidArgumentError(
          absl::StrCat("option ", std::string(key), " of codec ", Quoted(codec),
                       " is ", Quoted(value), "; it may be ", allowed));
    }
  }
  if (options.unit.scale <= options.unit.floor) {
    return absl::InvalidArgumentError(absl::StrCat(
        "option scale of codec ", Quoted(codec), " is ", options.unit.scale,
        "; it must be above the floor, ", options.unit.floor,
        ": the step begins there and shrinks to the floor"));
  }
  return options;
}

std::optional<CodecOptions> ModuloOptions(std::string_view name) {
  constexpr std::string_view kModulo = "moniqua";
  constexpr std::string_view kOptions[] = {"theta", "bits", "zstd", "least"};
  const size_t colon = std::min(name.find(':'), name.size());
  if (name.substr(0, colon) != kModulo) return std::nullopt;
  const auto options = ParseCodecOptions(
      kModulo, kOptions, name.substr(std::min(colon + 1, name.size())));
  if (!options.ok()) return std::nullopt;
  return *options;
}

}  // namespace gossamer
