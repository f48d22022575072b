// The variants that gossamer compare sets side by side: algorithms and methods
// by name, and what each changes in a file's configuration.
//
// This header knows nothing of networks, seeds or folders.

#ifndef GOSSAMER_RUNTIME_CLI_VARIANTS_H_
#define GOSSAMER_RUNTIME_CLI_VARIANTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/run.pb.h"

namespace gossamer {

// In place of names: every method.
inline constexpr std::string_view kAllMethods = "all";

struct Variant {
  std::string name;                  // as given
  std::vector<std::string> changes;  // as of --set, in order
};

// The algorithms that are compared if none is named.
std::vector<std::string> UsualAlgorithms();

// `given` is what the file and --set say, unresolved.  An entry of the
// catalogue changes the file's algorithm, unless it is one.  An algorithm that
// is not the file's brings its own defaults (Method::defaults); the optimizer
// stays the file's where both have the same by default; a centralized one takes
// the fastest all-reduce unless `given` or the name says another.
//
// kInvalidArgument: an unknown method, "all" beside others, or a name twice.
absl::StatusOr<std::vector<Variant>> VariantsOf(
    const std::vector<std::string>& algorithms,
    const std::vector<std::string>& methods, const RunConfig& given);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_VARIANTS_H_
