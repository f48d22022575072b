// A saved edge as bytes, for checkpoints; its vectors stay as they are.
//
// Little-endian; the file that holds it has the checksum.  This header knows
// nothing of files.

#ifndef GOSSAMER_ALGORITHMS_EDGE_SAVED_EDGE_H_
#define GOSSAMER_ALGORITHMS_EDGE_SAVED_EDGE_H_

#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "algorithms/edge/edge.h"

namespace gossamer {

// Name of a saved edge in a checkpoint: this and the other end's id.
inline constexpr absl::string_view kEdgePrefix = "edge.";

// All of it but EdgeCodecState::Saved::Vectors(): a checkpoint holds these by
// name, so that gigabytes are written from where they are.
std::vector<std::byte> EncodeSavedEdge(const SavedEdge& edge);
// An edge with empty vectors.  kDataLoss unless `bytes` is what EncodeSavedEdge
// writes.
absl::StatusOr<SavedEdge> DecodeSavedEdge(std::span<const std::byte> bytes);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_EDGE_SAVED_EDGE_H_
