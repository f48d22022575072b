// The peak of this process's memory.

#ifndef GOSSAMER_TESTS_TESTING_PEAK_MEMORY_H_
#define GOSSAMER_TESTS_TESTING_PEAK_MEMORY_H_

#include <cstdint>
#include <fstream>
#include <string>

namespace gossamer {

// Returns the peak in kilobytes since ResetPeakMemory().
inline int64_t PeakMemory() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stoll(line.substr(6));
  }
  return 0;
}
// A sanitizer keeps freed memory, and a shadow of it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int64_t kPeakFactor = 8;
// The kilobytes that refusing a bomb of 256 MiB may take.
inline constexpr int64_t kBombRefusal = 128 << 10;
#else
inline constexpr int64_t kPeakFactor = 1;
inline constexpr int64_t kBombRefusal = 64 << 10;
#endif
inline void ResetPeakMemory() { std::ofstream("/proc/self/clear_refs") << "5"; }

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_TESTING_PEAK_MEMORY_H_
