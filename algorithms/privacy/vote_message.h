// The messages between student and teachers, as bytes.
//
// Little-endian, a head of 40 bytes and a body; every length is known from the
// settings, and nothing is allocated from one that a peer sent.  Knows nothing
// of transports.

#ifndef GOSSAMER_ALGORITHMS_PRIVACY_VOTE_MESSAGE_H_
#define GOSSAMER_ALGORITHMS_PRIVACY_VOTE_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gossamer {

// Generated images with the classes they were asked to be of.
struct ImageBatch {
  std::vector<uint8_t> labels;
  std::vector<float> images;  // [labels, dimensions], in [-1, 1]
};

struct VoteHead {
  enum class Kind : uint32_t {
    kQuestion = 1,  // body: labels, then images as float32
    kVotes = 2,     // body: sums as int16, [labels, dimensions]
    kEnd = 3,       // no body: the student has ended, in good order
    kRefusal = 4,   // body: why the sender cannot go on, text
    kReady = 5,     // body: steps after which a group can go on
  };
  Kind kind = Kind::kQuestion;
  uint64_t fingerprint = 0;  // of the settings
  uint64_t step = 0;         // from 1 on
  uint32_t first = 0;        // teachers that a sum is of
  uint32_t count = 0;
  // In a question: the state after it is to be durable before the answer goes
  // out.  In a kReady: this group can do that.
  bool keep = false;
};
inline constexpr size_t kVoteHeadBytes = 40;
inline constexpr size_t kMostRefusalBytes = 1024;
inline constexpr size_t kMostOfferedSteps = 8;  // that a group may offer

std::vector<std::byte> Encode(const VoteHead& head);
// kDataLoss: not such a head.
absl::StatusOr<VoteHead> DecodeVoteHead(std::span<const std::byte> bytes);

std::vector<std::byte> EncodeImages(const ImageBatch& batch);
// kDataLoss: another size, a class that is not below `classes`, a value that is
// not in [-1, 1].
absl::StatusOr<ImageBatch> DecodeImages(std::span<const std::byte> bytes,
                                        int batch, int dimensions, int classes);

std::vector<std::byte> EncodeVotes(std::span<const int16_t> sums);
// kDataLoss: another size, or a sum that `teachers` cannot have.
absl::Status AddVotes(std::span<const std::byte> bytes, int teachers,
                      std::span<int32_t> sums);

// Of a refusal: as much of `text` as it may carry, and what came, at most that.
std::vector<std::byte> EncodeText(std::string_view text);
std::string TextOf(std::span<const std::byte> bytes);

// `steps` ascend, and are at most kMostOfferedSteps.
std::vector<std::byte> EncodeSteps(std::span<const uint64_t> steps);
// kDataLoss: none, too many, half a step, or steps that do not ascend.
absl::StatusOr<std::vector<uint64_t>> DecodeSteps(
    std::span<const std::byte> bytes);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_PRIVACY_VOTE_MESSAGE_H_
