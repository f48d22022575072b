// What gossamer compare sets side by side: algorithms and methods by name, and
// what each changes in a file's configuration.
//
// Knows nothing of networks, seeds or folders.

#ifndef GOSSAMER_RUNTIME_CLI_CONTENDERS_H_
#define GOSSAMER_RUNTIME_CLI_CONTENDERS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/run.pb.h"

namespace gossamer {

// In place of names: every method that a fleet of peers trains by.
inline constexpr std::string_view kAllMethods = "all";

struct Contender {
  std::string name;                  // as given
  std::vector<std::string> changes;  // as of --set, in order
};

// `given` is what the file and --set say, unresolved.  A method of the
// catalogue changes the file's algorithm, unless it is one.  What an algorithm
// implies is its own unless it is the file's; the optimizer stays the file's
// where neither algorithm is one; cp-oadam takes the fastest all-reduce unless
// `given` or the name says another.
//
// kInvalidArgument: an unknown method, one that is no run of a fleet, "all"
// beside others, or a name twice.
absl::StatusOr<std::vector<Contender>> ContendersOf(
    const std::vector<std::string>& algorithms,
    const std::vector<std::string>& methods, const RunConfig& given);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_CONTENDERS_H_
