#include "gan_models/data/digits.h"

#include <cstddef>
#include <fstream>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace gossamer {
namespace {

// scikit-learn's pixels are counts from 0 to 16.
constexpr int kLargest = 16;
constexpr size_t kMaxLines = 100000;
constexpr int kHeldOutEvery = 5;

bool ParseLine(const std::string& line, ImageBatch& to) {
  std::vector<float> pixels;
  int label = -1;
  for (absl::string_view field : absl::StrSplit(line, ',')) {
    int value = 0;
    if (!absl::SimpleAtoi(field, &value) || value < 0 || value > kLargest) {
      return false;
    }
    // The last field of a line is the class.
    if (pixels.size() == kDigitPixels) {
      if (label >= 0 || value >= kDigitClasses) return false;
      label = value;
    } else {
      pixels.push_back(static_cast<float>(value) * 2 / kLargest - 1);
    }
  }
  if (label < 0) return false;
  to.labels.push_back(static_cast<uint8_t>(label));
  to.images.insert(to.images.end(), pixels.begin(), pixels.end());
  return true;
}

}  // namespace

absl::StatusOr<Digits> ReadDigits(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat(path, ": cannot be read; deploy/digits.sh fetches it"));
  }
  Digits digits;
  std::string line;
  for (size_t number = 1; std::getline(file, line); ++number) {
    ImageBatch& to =
        // The line's number decides, and not chance, so that all runs and seeds
        // are held against the same images.
        number % kHeldOutEvery == 0 ? digits.held_out : digits.train;
    if (number > kMaxLines || !ParseLine(line, to)) {
      return absl::DataLossError(
          absl::StrCat(path, ":", number,
                       ": not 64 values from 0 to 16 and a class from 0 to 9"));
    }
  }
  if (!digits.held_out.labels.empty()) return digits;
  return absl::DataLossError(
      absl::StrCat(path, ": fewer than ", kHeldOutEvery, " images"));
}

}  // namespace gossamer
