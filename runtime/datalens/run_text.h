// What a DataLens run is told, under the same names on a command line and in
// a file: "--top 32", and the line "top 32".
//
// Pure: text in, settings out.  Knows nothing of files or of what the numbers
// do; algorithms/privacy/settings.h checks them.

#ifndef GOSSAMER_RUNTIME_DATALENS_RUN_TEXT_H_
#define GOSSAMER_RUNTIME_DATALENS_RUN_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/command_line.h"
#include "runtime/datalens/run.h"

namespace gossamer {

// A number or a path of a run, which outlives it.
struct RunSetting {
  std::string name;  // without "--"
  std::variant<std::string*, int*, uint64_t*, double*, std::optional<uint64_t>*>
      value;
  std::string help;
  OptionRules rules = {.show_default = true};
};

// What student and teachers must be told alike, and what they are told of the
// data and of each other.
std::vector<RunSetting> SharedSettings(DataLensRun& run);
// What the student alone makes use of.
std::vector<RunSetting> StudentSettings(DataLensRun& run);

inline constexpr size_t kMostRunTextBytes = 1 << 16;

// Sets what `text` says: a line "name value" for each, in any order; empty
// lines and lines that begin with # say nothing.  What is left out stays.
// kInvalidArgument, a line "file:line: ..." for each problem: a name that is
// not known (with the nearest that is), one twice, no value or a wrong one.
absl::Status ReadRunText(std::string_view text, std::string_view file,
                         DataLensRun& run);

// All of both lists, so that ReadRunText makes the same run of it; noise that
// is drawn from the system is no line.
std::string RunText(const DataLensRun& run);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DATALENS_RUN_TEXT_H_
