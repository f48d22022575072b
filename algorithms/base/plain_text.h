// Text from another machine, as part of one line of a log: short, and without
// what would end the line or steer a terminal.
//
// This header knows nothing of what the text says.

#ifndef GOSSAMER_ALGORITHMS_BASE_PLAIN_TEXT_H_
#define GOSSAMER_ALGORITHMS_BASE_PLAIN_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace gossamer {

// The first `most` bytes, and dots if there are more; what is not printable
// ASCII as "\x0a".
inline std::string PlainText(absl::string_view text, size_t most = 255) {
  std::string plain;
  for (const char c : text.substr(0, most)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      plain += c;
    } else {
      absl::StrAppend(&plain, "\\x", absl::Hex(byte, absl::kZeroPad2));
    }
  }
  if (text.size() > most) plain += "...";
  return plain;
}

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_BASE_PLAIN_TEXT_H_
