// What follows the name of a gradient method: "key=value,key=value".
//
// Knows nothing of what the options mean.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_METHOD_OPTIONS_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_METHOD_OPTIONS_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gossamer {

// An option that is a number in [least, most], whole unless `real`.  `value` is
// its default before, and what was written after.
struct MethodOption {
  std::string_view key;
  double* value;
  double least, most;
  bool real = false;
};

// The part of `text` before the first colon, and what follows it.
struct MethodName {
  std::string_view base, options;
  // A key that has been taken from the options: one that it knows, too.
  std::string_view taken = {};
};
MethodName SplitMethodName(std::string_view text);

// kInvalidArgument for a key that is none of `options` (naming them) or was
// given before, and for a value that is no number of its range.
absl::Status ParseMethodOptions(const MethodName& name,
                                std::span<const MethodOption> options);

// Sets `option` if it is given; returns the other options.  kInvalidArgument as
// of ParseMethodOptions.
absl::StatusOr<std::string> TakeMethodOption(const MethodName& name,
                                             const MethodOption& option);

// kInvalidArgument if option `key`, the size of a part, is larger than all that
// there is to divide, of which the largest is `largest`: more would be sent
// than asked for.  0: there is nothing.
absl::Status CheckPartFits(const MethodName& name, std::string_view key,
                           double value, size_t largest);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_METHOD_OPTIONS_H_
