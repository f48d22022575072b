// manifest.textproto of a checkpoint as text: its last line has the SHA-256 of
// all before it, so that no bit of it changes unnoticed.
//
// Pure.  Knows nothing of files.

#ifndef GOSSAMER_RUNTIME_CHECKPOINT_MANIFEST_H_
#define GOSSAMER_RUNTIME_CHECKPOINT_MANIFEST_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/checkpoint.pb.h"
#include "runtime/checkpoint/checkpoint.h"

namespace gossamer {

// Without its files.
wire::CheckpointManifest ManifestOf(const Checkpoint& checkpoint);
CheckpointId IdOf(const wire::CheckpointManifest& manifest);

std::string FormatManifest(const wire::CheckpointManifest& manifest);
// kDataLoss says what is wrong with it, kFailedPrecondition that it is of
// another version.  Manifests of earlier programs have no last line like that
// and are taken as they are.
absl::StatusOr<wire::CheckpointManifest> ParseManifest(const std::string& text);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CHECKPOINT_MANIFEST_H_
