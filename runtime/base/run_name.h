// The names that a run may have.
//
// This header knows nothing of runs.

#ifndef GOSSAMER_RUNTIME_BASE_RUN_NAME_H_
#define GOSSAMER_RUNTIME_BASE_RUN_NAME_H_

#include "absl/strings/string_view.h"

namespace gossamer {

// A run's name becomes a folder and a part of a URI, so it has no slash, no dot
// or dash in front and nothing to escape: 1 to 100 letters, digits and ._-
inline bool IsRunName(absl::string_view name) {
  return !name.empty() && name.size() <= 100 && name[0] != '.' &&
         name[0] != '-' &&
         name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyz"
             "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == name.npos;
}

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_RUN_NAME_H_
