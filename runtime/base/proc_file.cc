#include "runtime/base/proc_file.h"

#include <fstream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace gossamer {

std::string NetworkSetting(const std::string& name) {
  std::ifstream file("/proc/sys/net/" + name);
  std::string line;
  std::getline(file, line);
  return line;
}

int64_t LargestOfNetworkSetting(const std::string& name) {
  const std::string text = NetworkSetting(name);
  const std::vector<absl::string_view> values =
      absl::StrSplit(text, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  int64_t largest = 0;
  if (!values.empty() && absl::SimpleAtoi(values.back(), &largest)) {
    return largest;
  }
  return 0;
}

}  // namespace gossamer
