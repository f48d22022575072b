// Files of tensors come back bit for bit, and damaged or hostile ones are
// refused.

#include "runtime/base/safetensors.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "algorithms/base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::byte> File(absl::string_view header, size_t data_size) {
  const uint64_t length = header.size();
  std::vector<std::byte> file(sizeof(length) + header.size() + data_size);
  std::memcpy(file.data(), &length, sizeof(length));
  std::memcpy(file.data() + sizeof(length), header.data(), header.size());
  return file;
}

std::string Tensor(absl::string_view name, absl::string_view dtype,
                   absl::string_view shape, absl::string_view offsets) {
  return absl::StrCat("\"", name, "\":{\"dtype\":\"", dtype, "\",\"shape\":[",
                      shape, "],\"data_offsets\":[", offsets, "]}");
}

class SafetensorsTest : public testing::Test {
 protected:
  SafetensorsTest() { std::filesystem::create_directories(folder_); }
  ~SafetensorsTest() override { std::filesystem::remove_all(folder_); }
  std::string Path(absl::string_view name) const {
    return absl::StrCat(folder_, "/", name);
  }

 private:
  const std::string folder_ = absl::StrCat(
      testing::TempDir(), "/safetensors.",
      testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(SafetensorsTest, ReturnsWhatWasWrittenBitForBit) {
  const std::vector<float> matrix = {1, -0.0f, 1e-45f, 3e38f, INFINITY, NAN};
  const std::vector<float> scalar = {0.1f};
  const std::vector<std::byte> blob = {std::byte{0}, std::byte{255}};
  SafetensorsView view;
  view.floats = {
      {"matrix", {2, 3}, matrix}, {"scalar", {}, scalar}, {"none", {0, 4}, {}}};
  view.bytes = {{"blob", blob}};
  view.metadata = {{"round", "17"}, {"text", "a \"quote\""}};
  ASSERT_TRUE(WriteSafetensors(Path("a"), view).ok());

  const auto read = ReadSafetensors(Path("a"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->metadata, view.metadata);
  EXPECT_EQ(read->bytes.at("blob"), blob);
  EXPECT_THAT(read->floats.at("matrix").shape, ElementsAre(2, 3));
  EXPECT_EQ(std::memcmp(read->floats.at("matrix").values.data(), matrix.data(),
                        matrix.size() * sizeof(float)),
            0);
  EXPECT_EQ(read->floats.at("scalar").values, scalar);
  EXPECT_TRUE(read->floats.at("scalar").shape.empty());
  EXPECT_TRUE(read->floats.at("none").values.empty());
  EXPECT_FALSE(std::filesystem::exists(Path("a.partial")));
}

TEST_F(SafetensorsTest, DataBeginsAtAMultipleOfEight) {
  const std::vector<float> one = {1};
  for (const char* name : {"a", "ab", "abc", "abcdefgh"}) {
    ASSERT_TRUE(WriteSafetensors(Path("f"), {{{name, {1}, one}}, {}, {}}).ok());
    EXPECT_EQ(std::filesystem::file_size(Path("f")) % 8, 4u);
  }
}

TEST_F(SafetensorsTest, RefusesToWriteWhatCouldNotBeRead) {
  const std::vector<float> two = {1, 2};
  const auto code = [&](SafetensorsView view) {
    return WriteSafetensors(Path("f"), view).code();
  };
  EXPECT_EQ(code({{{"a", {3}, two}}, {}, {}}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{{"a", {-1, -2}, two}}, {}, {}}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{{"a", {2}, two}, {"a", {2}, two}}, {}, {}}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{{"", {2}, two}}, {}, {}}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{{"__metadata__", {2}, two}}, {}, {}}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{{"\xff", {2}, two}}, {}, {}}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(Path("f")));
}

TEST_F(SafetensorsTest, ErrorsNameTheFile) {
  const auto missing = ReadSafetensors(Path("missing"));
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("missing"));
  std::ofstream(Path("short")) << "abc";
  const auto cut = ReadSafetensors(Path("short"));
  EXPECT_EQ(cut.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(cut.status().message()), HasSubstr("short"));
  EXPECT_EQ(ReadSafetensors(Path(".")).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST_F(SafetensorsTest, AFullDiskIsNamedAndLeavesWhatWasThere) {
  const std::vector<float> values = {1, 2, 3};
  const std::string path = Path("kept");
  SafetensorsView view;
  view.floats = {{"x", {3}, values}};
  ASSERT_TRUE(WriteSafetensors(path, view).ok());
  // /dev/full has no space for any write.
  std::filesystem::create_symlink("/dev/full", path + ".partial");
  view.floats[0].name = "y";
  const absl::Status full = WriteSafetensors(path, view);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
  const auto kept = ReadSafetensors(path);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_TRUE(kept->floats.contains("x"));
}

TEST(ParseSafetensorsTest, AcceptsTheFormatsOwnExample) {
  const auto file = File("{" + Tensor("a", "F32", "2,1", "0,8") + ",\n" +
                             Tensor("b", "U8", "3", "8,11") +
                             ",\"__metadata__\":{\"k\":\"v\"}}   ",
                         11);
  const auto read = ParseSafetensors(file);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->floats.at("a").values.size(), 2u);
  EXPECT_EQ(read->bytes.at("b").size(), 3u);
}

// A file that must be refused: its header, and the bytes of data behind it.
struct HostileFile {
  const char* why;
  std::string header;
  size_t data;
};

TEST(ParseSafetensorsTest, RefusesHostileFiles) {
  const std::string a = Tensor("a", "F32", "1", "0,4");
  const HostileFile files[] = {
      {"no JSON", "{", 0},
      {"no object", "[1]", 0},
      {"text after the object", "{" + a + "}x", 4},
      {"same name twice", "{" + a + "," + a + "}", 4},
      {"same key twice in a tensor",
       "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],"
       "\"data_offsets\":[0,4]}}",
       4},
      {"overlap", "{" + a + "," + Tensor("b", "F32", "1", "0,4") + "}", 4},
      {"partial overlap", "{" + a + "," + Tensor("b", "F32", "1", "2,6") + "}",
       6},
      {"gap", "{" + a + "," + Tensor("b", "F32", "1", "8,12") + "}", 12},
      {"beyond the end", "{" + Tensor("a", "F32", "2", "0,8") + "}", 4},
      {"left-over bytes", "{" + a + "}", 5},
      {"offsets backwards", "{" + Tensor("a", "F32", "1", "4,0") + "}", 4},
      {"offsets and shape differ", "{" + Tensor("a", "F32", "2", "0,4") + "}",
       4},
      {"product overflows to 4",
       "{" + Tensor("a", "F32", "4294967296,4294967296,1", "0,4") + "}", 4},
      {"huge dimension",
       "{" + Tensor("a", "F32", "18446744073709551615", "0,4") + "}", 4},
      {"negative dimension", "{" + Tensor("a", "F32", "-1", "0,4") + "}", 4},
      {"fractional dimension", "{" + Tensor("a", "F32", "1.0", "0,4") + "}", 4},
      {"other dtype", "{" + Tensor("a", "F16", "2", "0,4") + "}", 4},
      {"matrix of bytes", "{" + Tensor("a", "U8", "2,2", "0,4") + "}", 4},
      {"three offsets", "{" + Tensor("a", "F32", "1", "0,4,8") + "}", 4},
      {"many dimensions",
       "{" + Tensor("a", "F32", "1,1,1,1,1,1,1,1,1", "0,4") + "}", 4},
      {"deep nesting", "{\"a\":" + std::string(100000, '[') + "}", 0},
      {"metadata with a number", "{\"__metadata__\":{\"k\":1}}", 0},
      {"unknown key in a tensor",
       "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],"
       "\"more\":1}}",
       4},
  };
  for (const HostileFile& f : files) {
    const auto read = ParseSafetensors(File(f.header, f.data));
    EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss) << f.why;
  }
}

TEST(ParseSafetensorsTest, HeaderLengthIsBounded) {
  for (uint64_t length : {uint64_t{9}, uint64_t{1} << 40, ~uint64_t{0}}) {
    std::vector<std::byte> file(16);
    std::memcpy(file.data(), &length, sizeof(length));
    EXPECT_EQ(ParseSafetensors(file).status().code(),
              absl::StatusCode::kDataLoss);
  }
}

// A changed file gives an error, or tensors whose sizes fit their shapes.
TEST(ParseSafetensorsTest, SurvivesDamagedFiles) {
  const auto good = File("{" + Tensor("a", "F32", "2,3", "0,24") + "," +
                             Tensor("b", "U8", "8", "24,32") + "}",
                         32);
  const RngKey key(1);
  for (uint64_t i = 0; i < 20000; ++i) {
    auto file = good;
    const RngKey k = key.Fold(i);
    for (uint64_t j = 0; j <= k.Below(3, 0); ++j) {
      file[k.Below(file.size(), 3 * j + 1)] = std::byte(k.Bits(3 * j + 2));
    }
    if (k.Below(8, 100) == 0) file.resize(k.Below(file.size(), 101));
    const auto read = ParseSafetensors(file);
    if (!read.ok()) continue;
    for (const auto& [name, tensor] : read->floats) {
      size_t n = 1;
      for (int64_t d : tensor.shape) n *= static_cast<size_t>(d);
      EXPECT_EQ(n, tensor.values.size());
    }
  }
}

}  // namespace
}  // namespace gossamer
