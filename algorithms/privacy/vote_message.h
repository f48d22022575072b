// The bodies of the messages between student and teachers, as bytes.
//
// Little-endian; every length is known from the settings, and nothing is
// allocated from one that a peer sent.  This header knows nothing of
// transports.

#ifndef GOSSAMER_ALGORITHMS_PRIVACY_VOTE_MESSAGE_H_
#define GOSSAMER_ALGORITHMS_PRIVACY_VOTE_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gossamer {

// Generated images with the classes they were asked to be of.
struct ImageBatch {
  std::vector<uint8_t> labels;
  std::vector<float> images;  // [labels, dimensions], in [-1, 1]
};

// A question: labels, then images as float32.
std::vector<std::byte> EncodeImages(const ImageBatch& batch);
// kDataLoss: another size, a class that is not below `classes`, a value that is
// not in [-1, 1].
absl::StatusOr<ImageBatch> DecodeImages(std::span<const std::byte> bytes,
                                        int batch, int dimensions, int classes);

// An answer: sums of votes as int16, [labels, dimensions].
std::vector<std::byte> EncodeVotes(std::span<const int16_t> sums);
// kDataLoss: another size, or a sum that `teachers` cannot have; `sums` are
// then as before.
absl::Status AddVotes(std::span<const std::byte> bytes, int teachers,
                      std::span<int32_t> sums);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_PRIVACY_VOTE_MESSAGE_H_
