// Reads bytes that must never change from tests/golden/NAME.bin in the source
// tree.  This header knows nothing of their formats.

#ifndef GOSSAMER_TESTS_ALGORITHMS_GOLDEN_FILE_H_
#define GOSSAMER_TESTS_ALGORITHMS_GOLDEN_FILE_H_

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include "gtest/gtest.h"

namespace gossamer {

// Returns the file's bytes.  With GOSSAMER_WRITE_GOLDEN, writes `bytes` there
// first.
inline std::string GoldenBytes(const std::string& name,
                               std::span<const std::byte> bytes) {
  const std::string path = "tests/golden/" + name + ".bin";
  if (std::getenv("GOSSAMER_WRITE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path << " cannot be read; run in the source tree";
  return {std::istreambuf_iterator<char>(file),
          std::istreambuf_iterator<char>()};
}

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_ALGORITHMS_GOLDEN_FILE_H_
