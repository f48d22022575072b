// Bytes of the wire that stay until a version number changes:
// tests/golden/wire/TARGET/NAME.bin, which are also inputs of that target.

#ifndef GOSSAMER_TESTS_FUZZ_GOLDEN_WIRE_H_
#define GOSSAMER_TESTS_FUZZ_GOLDEN_WIRE_H_

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/algorithms/golden_file.h"

namespace gossamer {

inline void ExpectGoldenWire(const std::string& name,
                             std::span<const std::byte> bytes) {
  SCOPED_TRACE(name);
  std::filesystem::create_directories("tests/golden/wire/" +
                                      name.substr(0, name.find('/')));
  const std::string kept = GoldenBytes("wire/" + name, bytes);
  const std::string now(reinterpret_cast<const char*>(bytes.data()),
                        bytes.size());
  EXPECT_TRUE(kept == now)
      << "other bytes on the wire need another version number, and then "
         "GOSSAMER_WRITE_GOLDEN=1 once";
}

inline std::vector<std::byte> BytesOf(const std::string& text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

// Appends a length of two bytes and the piece, as fuzz::Input takes it.
inline void AppendPiece(std::span<const std::byte> piece,
                        std::vector<std::byte>& to) {
  to.push_back(static_cast<std::byte>(piece.size() & 0xff));
  to.push_back(static_cast<std::byte>(piece.size() >> 8));
  to.insert(to.end(), piece.begin(), piece.end());
}

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_FUZZ_GOLDEN_WIRE_H_
