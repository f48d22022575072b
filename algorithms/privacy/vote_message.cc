#include "algorithms/privacy/vote_message.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_format.h"
#include "algorithms/base/little_endian.h"

namespace gossamer {
namespace {

constexpr uint32_t kMagic = 0x31564c44;  // "DLV1"

absl::Status WrongSize(const char* what, size_t size, size_t wanted) {
  return absl::DataLossError(
      absl::StrFormat("%s of %d bytes, not %d", what, size, wanted));
}

}  // namespace

std::vector<std::byte> Encode(const VoteHead& head) {
  std::vector<std::byte> bytes(kVoteHeadBytes);
  Put(bytes, 0, kMagic);
  Put(bytes, 4, static_cast<uint32_t>(head.kind));
  Put(bytes, 8, head.fingerprint);
  Put(bytes, 16, head.step);
  Put(bytes, 24, head.first);
  Put(bytes, 28, head.count);
  Put(bytes, 32, uint64_t{head.keep});
  return bytes;
}

absl::StatusOr<VoteHead> DecodeVoteHead(std::span<const std::byte> bytes) {
  if (bytes.size() != kVoteHeadBytes) {
    return WrongSize("a head", bytes.size(), kVoteHeadBytes);
  }
  const auto kind = Get<uint32_t>(bytes, 4);
  const auto keep = Get<uint64_t>(bytes, 32);
  if (Get<uint32_t>(bytes, 0) != kMagic || kind < 1 || kind > 5 || keep > 1) {
    return absl::DataLossError("a head that is not of a DataLens message");
  }
  return VoteHead{.kind = static_cast<VoteHead::Kind>(kind),
                  .fingerprint = Get<uint64_t>(bytes, 8),
                  .step = Get<uint64_t>(bytes, 16),
                  .first = Get<uint32_t>(bytes, 24),
                  .count = Get<uint32_t>(bytes, 28),
                  .keep = keep == 1};
}

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

std::vector<std::byte> EncodeText(std::string_view text) {
  const auto bytes =
      std::as_bytes(std::span(text.substr(0, kMostRefusalBytes)));
  return {bytes.begin(), bytes.end()};
}

std::string TextOf(std::span<const std::byte> bytes) {
  const size_t size = std::min(bytes.size(), kMostRefusalBytes);
  return {reinterpret_cast<const char*>(bytes.data()), size};
}

std::vector<std::byte> EncodeSteps(std::span<const uint64_t> steps) {
  std::vector<std::byte> bytes(sizeof(uint64_t) * steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    Put(bytes, sizeof(uint64_t) * i, steps[i]);
  }
  return bytes;
}

absl::StatusOr<std::vector<uint64_t>> DecodeSteps(
    std::span<const std::byte> bytes) {
  const size_t count = bytes.size() / sizeof(uint64_t);
  if (bytes.size() % sizeof(uint64_t) != 0 || count < 1 ||
      count > kMostOfferedSteps) {
    return absl::DataLossError(
        absl::StrFormat("steps of %d bytes", bytes.size()));
  }
  std::vector<uint64_t> steps;
  for (size_t i = 0; i < count; ++i) {
    const auto step = Get<uint64_t>(bytes, sizeof(uint64_t) * i);
    if (!steps.empty() && step <= steps.back()) {
      return absl::DataLossError("steps that do not ascend");
    }
    steps.push_back(step);
  }
  return steps;
}

}  // namespace gossamer
