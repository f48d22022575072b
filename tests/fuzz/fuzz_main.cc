// libFuzzer's entry: gossamer-fuzz --target=NAME [options of libFuzzer] ...
// With --targets it prints a line for each target: its name and
// -malloc_limit_mb.

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/largest_allocation.h"

namespace {

const gossamer::fuzz::Target* chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view kFlag = "--target=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument = (*argv)[i];
    if (argument == "--targets") {
      for (const auto& target : gossamer::fuzz::AllTargets()) {
        std::printf("%s %zu\n", std::string(target.name).c_str(),
                    gossamer::fuzz::MallocLimitMib(target));
      }
      std::exit(0);
    }
    if (argument.substr(0, kFlag.size()) != kFlag) continue;
    static const auto targets = gossamer::fuzz::AllTargets();
    for (const auto& target : targets) {
      if (target.name == argument.substr(kFlag.size())) chosen = &target;
    }
  }
  if (chosen != nullptr) return 0;
  std::fprintf(stderr, "gossamer-fuzz: --target= one of");
  for (const auto& target : gossamer::fuzz::AllTargets()) {
    std::fprintf(stderr, " %s", std::string(target.name).c_str());
  }
  std::fprintf(stderr, "\n");
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  gossamer::fuzz::ResetLargestAllocation();
  chosen->run(std::as_bytes(std::span(data, size)));
  gossamer::fuzz::Require(
      gossamer::fuzz::LargestAllocation() <= chosen->largest_allocation,
      "no allocation is over the target's cap (fuzz.h)");
  return 0;
}
