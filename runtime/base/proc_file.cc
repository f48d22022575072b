#include "runtime/base/proc_file.h"

#include <fstream>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace gossamer {

std::string ReadNetSysctl(const std::string& name) {
  std::ifstream file("/proc/sys/net/" + name);
  std::string line;
  std::getline(file, line);
  return line;
}

int64_t LargestOfNetSysctl(const std::string& name) {
  const std::string text = ReadNetSysctl(name);
  const std::vector<absl::string_view> values =
      absl::StrSplit(text, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  int64_t largest = 0;
  if (!values.empty() && absl::SimpleAtoi(values.back(), &largest)) {
    return largest;
  }
  return 0;
}

std::string ProcValue(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (parts.size() == 2 && absl::StripAsciiWhitespace(parts[0]) == key) {
      return std::string(absl::StripAsciiWhitespace(parts[1]));
    }
  }
  return "";
}

std::optional<double> MemoryBytes(const std::string& key) {
  const std::string text = ProcValue("/proc/meminfo", key);
  double kilobytes = 0;
  if (!absl::SimpleAtod(absl::StripSuffix(text, " kB"), &kilobytes)) {
    return std::nullopt;
  }
  return 1024 * kilobytes;
}

}  // namespace gossamer
