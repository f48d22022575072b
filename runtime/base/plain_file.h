// Makes folders and files that need not outlast a power loss.
//
// This header knows nothing of what is in them; durable_file.h is for those
// that must last.

#ifndef GOSSAMER_RUNTIME_BASE_PLAIN_FILE_H_
#define GOSSAMER_RUNTIME_BASE_PLAIN_FILE_H_

#include <string>

#include "absl/status/status.h"

namespace gossamer {

// Makes the folder and those above it, unless it is there.  kUnavailable.
absl::Status MakeFolder(const std::string& path);

// Replaces the file in one step.  Returns kInternal with the system's reason.
absl::Status WriteTextFile(const std::string& path, const std::string& text);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_PLAIN_FILE_H_
