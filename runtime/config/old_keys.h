// The keys that configurations had once, each with what to write instead.
//
// A table of words; knows nothing of files.

#ifndef GOSSAMER_RUNTIME_CONFIG_OLD_KEYS_H_
#define GOSSAMER_RUNTIME_CONFIG_OLD_KEYS_H_

#include <string_view>

namespace gossamer {

// The advice for `key` of `message`, as in "MixingConfig" and "schedule"; empty
// if there was no such key.
std::string_view KeyReplacement(std::string_view message, std::string_view key);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CONFIG_OLD_KEYS_H_
