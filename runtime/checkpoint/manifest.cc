#include "runtime/checkpoint/manifest.h"

#include <cstddef>
#include <span>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "runtime/base/protobuf_errors.h"
#include "runtime/base/sha256.h"

namespace gossamer {
namespace {

constexpr uint32_t kVersion = 1;
constexpr char kChecksum[] = "checksum: ";

std::string ChecksumOf(const std::string& text) {
  return absl::BytesToHexString(Sha256(std::as_bytes(std::span(text))));
}

}  // namespace

wire::CheckpointManifest ManifestOf(const Checkpoint& checkpoint) {
  wire::CheckpointManifest manifest;
  manifest.set_version(kVersion);
  manifest.set_run_id(checkpoint.id.run_id);
  manifest.set_peer_id(checkpoint.id.peer_id);
  manifest.set_round(checkpoint.id.round);
  manifest.set_layout_fingerprint(checkpoint.id.layout_fingerprint);
  manifest.set_configuration_hash(checkpoint.id.configuration_hash);
  for (const auto& [name, value] : checkpoint.counters) {
    wire::CheckpointCounter* counter = manifest.add_counters();
    counter->set_key(name);
    counter->set_value(value);
  }
  return manifest;
}

CheckpointId IdOf(const wire::CheckpointManifest& manifest) {
  return {manifest.run_id(), manifest.peer_id(), manifest.round(),
          manifest.layout_fingerprint(), manifest.configuration_hash()};
}

std::string FormatManifest(const wire::CheckpointManifest& manifest) {
  std::string text;
  // The checksum line comes after the printed text and covers all of it, byte
  // for byte.
  (void)google::protobuf::TextFormat::PrintToString(manifest, &text);
  const std::string checksum = ChecksumOf(text);
  return absl::StrCat(text, kChecksum, "\"", checksum, "\"\n");
}

absl::StatusOr<wire::CheckpointManifest> ParseManifest(
    const std::string& text) {
  wire::CheckpointManifest manifest;
  google::protobuf::TextFormat::Parser parser;
  ParseErrors dropped;  // the returned status says enough
  parser.RecordErrorsTo(&dropped);
  if (!parser.ParseFromString(text, &manifest)) {
    return absl::DataLossError("not a manifest");
  }
  // The version comes before the checksum: another version may compute it
  // otherwise.
  if (manifest.version() != kVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "version ", manifest.version(), ", this program reads ", kVersion));
  }
  const size_t last = text.rfind(kChecksum);
  if (!manifest.checksum().empty() &&
      manifest.checksum() != ChecksumOf(text.substr(0, last))) {
    return absl::DataLossError("its checksum is not that of what it says");
  }
  return manifest;
}

}  // namespace gossamer
