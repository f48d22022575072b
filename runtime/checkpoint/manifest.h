// The text form of a checkpoint's manifest.textproto.  Its last line has the
// SHA-256 of all lines before it, so that no change goes unnoticed.
//
// This header is pure and knows nothing of files.

#ifndef GOSSAMER_RUNTIME_CHECKPOINT_MANIFEST_H_
#define GOSSAMER_RUNTIME_CHECKPOINT_MANIFEST_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/checkpoint.pb.h"
#include "runtime/checkpoint/checkpoint.h"

namespace gossamer {

// Returns the manifest without its files.
wire::CheckpointManifest ManifestOf(const Checkpoint& checkpoint);
CheckpointId IdOf(const wire::CheckpointManifest& manifest);

std::string FormatManifest(const wire::CheckpointManifest& manifest);
// Returns kDataLoss for damage, kFailedPrecondition for another version.
// Manifests of earlier programs lack the last line and are accepted as they
// are.
absl::StatusOr<wire::CheckpointManifest> ParseManifest(const std::string& text);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CHECKPOINT_MANIFEST_H_
