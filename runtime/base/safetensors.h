// Files of named tensors in the safetensors format: checkpoints, exported
// models.
//
// The reader accepts files from untrusted sources: it allocates nothing that
// the bytes at hand do not cover, and refuses gaps, overlaps and duplicate
// names.  This header knows nothing of players, layouts or the meaning of a
// tensor.

#ifndef GOSSAMER_RUNTIME_BASE_SAFETENSORS_H_
#define GOSSAMER_RUNTIME_BASE_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gossamer {

struct FloatTensor {
  std::vector<int64_t> shape;  // row-major; {} is a scalar
  std::vector<float> values;
};

// The contents of a file: F32 tensors of any shape, one-dimensional U8 tensors
// for states with a format of their own, and text about them.
struct Safetensors {
  std::map<std::string, FloatTensor> floats;
  std::map<std::string, std::vector<std::byte>> bytes;
  std::map<std::string, std::string> metadata;
};

// The contents of a file to be written, without copying the values.
struct SafetensorsView {
  struct Floats {
    std::string name;
    std::vector<int64_t> shape;  // product: values.size()
    std::span<const float> values;
  };
  struct Bytes {
    std::string name;
    std::span<const std::byte> values;
  };
  std::vector<Floats> floats;
  std::vector<Bytes> bytes;
  std::map<std::string, std::string> metadata;
};

// Writes beside `path`, syncs, and renames onto it: readers see the old file or
// the whole new one.  Returns kInvalidArgument for a shape that does not fit
// its values, or a name that is repeated, empty, reserved or not printable
// ASCII. Returns kResourceExhausted for a full disk or quota, otherwise the
// code of absl::ErrnoToStatus; no other file is left.  `written` as in
// WriteDurably.
absl::Status WriteSafetensors(
    const std::string& path, const SafetensorsView& tensors,
    const std::function<void(std::string_view)>& written = nullptr);

// Returns the bytes of such a file, or kInvalidArgument as above.
absl::StatusOr<std::string> FormatSafetensors(const SafetensorsView& tensors);

// Returns kDataLoss unless the bytes are a whole, well-formed file of F32 and
// U8 tensors.
absl::StatusOr<Safetensors> ParseSafetensors(std::span<const std::byte> file);

// Reads and parses a file.  Returns kNotFound without it.  Messages begin with
// the path.
absl::StatusOr<Safetensors> ReadSafetensors(const std::string& path);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_SAFETENSORS_H_
