#include "runtime/base/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>

namespace gossamer {
namespace {

// What POSIX promises, should the system not say.
constexpr rlim_t kLeast = 20;
constexpr rlim_t kUnlimited = rlim_t{1} << 30;

rlimit Read() {
  rlimit limit = {.rlim_cur = kLeast, .rlim_max = kLeast};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit;
}

}  // namespace

size_t DescriptorLimit() { return std::min(Read().rlim_cur, kUnlimited); }

size_t RaiseDescriptorLimit() {
  rlimit limit = Read();
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);  // where it fails the old one stays
  return DescriptorLimit();
}

}  // namespace gossamer
