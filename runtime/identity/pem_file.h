// Files of certificates and keys, written so that a reader sees all of a file
// or none and a power loss takes nothing back.
//
// Internal to runtime/identity; knows nothing of what is in them.

#ifndef GOSSAMER_RUNTIME_IDENTITY_PEM_FILE_H_
#define GOSSAMER_RUNTIME_IDENTITY_PEM_FILE_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"

namespace gossamer {

inline constexpr mode_t kSecret = 0600;
inline constexpr mode_t kPublic = 0644;

// Durable when it returns OK.  A file of `mode` kSecret is not open to others,
// not for a moment.  kUnavailable.
absl::Status WriteFile(const std::string& path, const std::string& text,
                       mode_t mode);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_IDENTITY_PEM_FILE_H_
