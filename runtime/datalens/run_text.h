// The settings of a DataLens run, under the same names on a command line and in
// a file: "--top 32", and the line "top 32".
//
// Pure: text in, settings out.  Knows nothing of files or of the meaning of the
// numbers; algorithms/privacy/settings.h checks them.

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

// Returns the settings that student and teachers must share, and those of their
// data and their connections.
std::vector<RunSetting> SharedSettings(DataLensRun& run);
// Returns the settings that only the student uses.
std::vector<RunSetting> StudentSettings(DataLensRun& run);

inline constexpr size_t kMostRunTextBytes = 1 << 16;

// Sets the values of `text`: lines "name value" in any order; empty lines and
// lines that begin with # are ignored.  Missing values stay unchanged.  Returns
// kInvalidArgument with a line "file:line: ..." for each problem: an unknown
// name (with the nearest known one), a repeated one, or a missing or wrong
// value.
absl::Status ReadRunText(std::string_view text, std::string_view file,
                         DataLensRun& run);

// Returns all settings of both lists, from which ReadRunText makes the same
// run.  Noise that is drawn from the system has no line.
std::string RunText(const DataLensRun& run);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DATALENS_RUN_TEXT_H_
