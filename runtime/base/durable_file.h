// Writes bytes durably: partial and interrupted writes go on, and nothing
// counts as written before it is synced and closed.
//
// This header knows nothing of formats or renames.

#ifndef GOSSAMER_RUNTIME_BASE_DURABLE_FILE_H_
#define GOSSAMER_RUNTIME_BASE_DURABLE_FILE_H_

#include <fcntl.h>
#include <sys/types.h>

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace gossamer {

// Writes the parts one after the other into a file that it creates or, with
// other `flags`, must not replace.  The name is durable only once its folder is
// synced.  Errors begin with the path and name the operation, with the code of
// absl::ErrnoToStatus; part of a file may then be left.  `written`, unless
// null, gets all bytes in order, in pieces, as they have been written.
absl::Status WriteDurably(
    const std::string& path, std::span<const std::string_view> parts,
    int flags = O_CREAT | O_TRUNC, mode_t mode = 0644,
    const std::function<void(std::string_view)>& written = nullptr);

// Makes the names in a folder durable; "" is the current folder.
absl::Status SyncFolder(const std::string& path);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_DURABLE_FILE_H_
