#include "algorithms/privacy/vote_message.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_format.h"
#include "algorithms/base/little_endian.h"

namespace gossamer {
namespace {

absl::Status WrongSize(const char* what, size_t size, size_t wanted) {
  return absl::DataLossError(
      absl::StrFormat("%s of %d bytes, not %d", what, size, wanted));
}

}  // namespace

std::vector<std::byte> EncodeImages(const ImageBatch& batch) {
  const size_t labels = batch.labels.size();
  std::vector<std::byte> bytes(labels + sizeof(float) * batch.images.size());
  std::memcpy(bytes.data(), batch.labels.data(), labels);
  std::memcpy(bytes.data() + labels, batch.images.data(),
              sizeof(float) * batch.images.size());
  return bytes;
}

absl::StatusOr<ImageBatch> DecodeImages(std::span<const std::byte> bytes,
                                        int batch, int dimensions,
                                        int classes) {
  const auto labels = static_cast<size_t>(batch);
  const size_t values = labels * static_cast<size_t>(dimensions);
  if (bytes.size() != labels + sizeof(float) * values) {
    return WrongSize("images", bytes.size(), labels + sizeof(float) * values);
  }
  ImageBatch read{.labels = std::vector<uint8_t>(labels),
                  .images = std::vector<float>(values)};
  std::memcpy(read.labels.data(), bytes.data(), labels);
  std::memcpy(read.images.data(), bytes.data() + labels,
              sizeof(float) * values);
  for (const uint8_t label : read.labels) {
    if (label >= classes) {
      return absl::DataLossError(
          absl::StrFormat("an image of class %d of %d", label, classes));
    }
  }
  for (const float value : read.images) {
    if (!(std::abs(value) <= 1)) {
      return absl::DataLossError(
          absl::StrFormat("an image with a value of %g", value));
    }
  }
  return read;
}

std::vector<std::byte> EncodeVotes(std::span<const int16_t> sums) {
  std::vector<std::byte> bytes(sizeof(int16_t) * sums.size());
  std::memcpy(bytes.data(), sums.data(), bytes.size());
  return bytes;
}

absl::Status AddVotes(std::span<const std::byte> bytes, int teachers,
                      std::span<int32_t> sums) {
  if (bytes.size() != sizeof(int16_t) * sums.size()) {
    return WrongSize("votes", bytes.size(), sizeof(int16_t) * sums.size());
  }
  for (size_t j = 0; j < sums.size(); ++j) {
    const auto sum = Get<int16_t>(bytes, sizeof(int16_t) * j);
    if (std::abs(static_cast<int>(sum)) > teachers) {
      return absl::DataLossError(absl::StrFormat(
          "a vote of %d by %d teachers at %d", sum, teachers, j));
    }
  }
  for (size_t j = 0; j < sums.size(); ++j) {
    sums[j] += Get<int16_t>(bytes, sizeof(int16_t) * j);
  }
  return absl::OkStatus();
}

}  // namespace gossamer
