// The messages of a student and its teachers: images, sums of votes.

#include <cmath>
#include <cstdlib>
#include <vector>

#include "algorithms/privacy/vote_message.h"
#include "tests/fuzz/fuzz.h"

namespace gossamer::fuzz {
namespace {

constexpr int kBatch = 3, kDimensions = 5, kClasses = 10, kTeachers = 40;

void Images(Bytes input) {
  const auto batch = DecodeImages(input, kBatch, kDimensions, kClasses);
  if (!batch.ok()) return;
  Require(batch->labels.size() == kBatch &&
              batch->images.size() == size_t{kBatch} * kDimensions,
          "a batch has the size that was asked for");
  for (const uint8_t label : batch->labels) {
    Require(label < kClasses, "a label is a class");
  }
  for (const float x : batch->images) {
    Require(std::abs(x) <= 1, "a value is in [-1, 1]");
  }
}

void Votes(Bytes input) {
  std::vector<int32_t> sums(size_t{kBatch} * kDimensions, 7);
  const std::vector<int32_t> before = sums;
  const bool taken = AddVotes(input, kTeachers, sums).ok();
  for (size_t i = 0; i < sums.size(); ++i) {
    const int32_t added = sums[i] - before[i];
    Require(taken ? std::abs(added) <= kTeachers : added == 0,
            "so many teachers can have voted so, or nothing is added");
  }
}

}  // namespace

std::span<const Target> VoteTargets() {
  static constexpr Target kTargets[] = {{"vote-images", Images},
                                        {"vote-sums", Votes}};
  return kTargets;
}

}  // namespace gossamer::fuzz
