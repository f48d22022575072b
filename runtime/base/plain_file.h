// Makes folders and files that need not outlast a power loss.
//
// Knows nothing of what is in them; durable_file.h is for those that must last.

#ifndef GOSSAMER_RUNTIME_BASE_PLAIN_FILE_H_
#define GOSSAMER_RUNTIME_BASE_PLAIN_FILE_H_

#include <string>

#include "absl/status/status.h"

namespace gossamer {

// Makes the folder and those above it, unless it is there.  kUnavailable.
absl::Status MakeFolder(const std::string& path);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_PLAIN_FILE_H_
