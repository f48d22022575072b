#include "runtime/base/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gossamer {
namespace {

// The number that POSIX guarantees, used if the system gives none.
constexpr rlim_t kMin = 20;
// RLIM_INFINITY is no number to count by; nothing reaches this one.
constexpr rlim_t kUnlimited = rlim_t{1} << 30;

rlimit Read() {
  rlimit limit = {.rlim_cur = kMin, .rlim_max = kMin};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit;
}

}  // namespace

size_t DescriptorLimit() { return std::min(Read().rlim_cur, kUnlimited); }

size_t RaiseDescriptorLimit() {
  rlimit limit = Read();
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);  // the old limit stays if it fails
  return DescriptorLimit();
}

std::string DescribeShortage(size_t room, size_t wanted, absl::string_view of) {
  if (room >= wanted) return "";
  return absl::StrCat(
      "warning: ", DescriptorLimit(),
      " files may be open here, which leaves room for ", room, " of ", wanted,
      " ", of,
      " beside unauthenticated connections; raise the hard limit (ulimit -Hn, "
      "LimitNOFILE)");
}

}  // namespace gossamer
