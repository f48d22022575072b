// The keys of a run's configuration: their types, their defaults and what they
// mean, as proto/run.proto says.
//
// The explanations are the comments of that file, which the build puts into the
// program: there is no second text to keep true.  This header knows nothing of
// which values are valid together.

#ifndef GOSSAMER_RUNTIME_CONFIG_CONFIG_KEYS_H_
#define GOSSAMER_RUNTIME_CONFIG_CONFIG_KEYS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace gossamer {

struct ConfigKey {
  std::string path;  // "mixing.codec"
  std::string type;  // "text", "number", "whole number", "yes or no",
                     // "a group of keys"; of a list, "list of texts"
  // Those of an enumeration, or the names that the part which owns the key
  // knows: "auto, 0, 1"; empty where any value of the type may be.
  std::string values;
  std::string default_value;  // as written in a file; may be empty
  std::string explanation;    // paragraphs, without line ends inside
};

// All keys that take a value, in the order of the file.
const std::vector<ConfigKey>& ConfigKeys();

// The key of this path, or the group of keys ("mixing") with its explanation.
// kNotFound names the nearest one.
absl::StatusOr<ConfigKey> FindConfigKey(std::string_view path);

// The first sentence of an explanation.
std::string FirstSentence(std::string_view explanation);

// The keys by group, a line each, for the end of a command's help.
std::string ConfigKeysHelp();

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CONFIG_CONFIG_KEYS_H_
