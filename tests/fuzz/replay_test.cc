// Every kept input runs through its target, and so do its neighbours: cut short
// at any place, and with single bits flipped.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/largest_allocation.h"

namespace gossamer::fuzz {
namespace replay_test {

// Neighbours of each kind, spread over the input.
constexpr size_t kNeighbours = 400;

constexpr const char* kFolders[] = {"tests/fuzz/seeds/", "tests/golden/wire/"};

std::vector<std::string> Seeds(std::string_view target) {
  std::vector<std::string> seeds;
  for (const std::string parent : kFolders) {
    const std::string folder = parent + std::string(target);
    if (!std::filesystem::exists(folder)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::ifstream file(entry.path(), std::ios::binary);
      seeds.emplace_back(std::istreambuf_iterator<char>(file),
                         std::istreambuf_iterator<char>());
    }
  }
  std::sort(seeds.begin(), seeds.end());
  return seeds;
}

void RunOn(const Target& target, const std::string& input) {
  target.run(std::as_bytes(std::span(input)));
}

TEST(FuzzReplayTest, KeptInputsAndTheirNeighboursAreSurvived) {
  for (const Target& target : AllTargets()) {
    SCOPED_TRACE(target.name);
    const std::vector<std::string> seeds = Seeds(target.name);
    EXPECT_FALSE(seeds.empty()) << "a target without a seed finds little";
    ResetLargestAllocation();
    RunOn(target, "");
    for (const std::string& seed : seeds) {
      RunOn(target, seed);
      const size_t step = std::max<size_t>(1, seed.size() / kNeighbours);
      for (size_t i = 0; i < seed.size(); i += step) {
        RunOn(target, seed.substr(0, i));
        std::string turned = seed;
        turned[i] = static_cast<char>(turned[i] ^ (1 << i % 8));
        RunOn(target, turned);
      }
    }
    EXPECT_LE(LargestAllocation(), target.largest_allocation);
  }
}

TEST(FuzzReplayTest, EverySeedHasATarget) {
  std::set<std::string> names;
  for (const Target& target : AllTargets()) names.emplace(target.name);
  for (const char* folder : kFolders) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      EXPECT_THAT(names, testing::Contains(entry.path().filename().string()));
    }
  }
}

}  // namespace replay_test
}  // namespace gossamer::fuzz
