#include "runtime/plan/matrix_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gossamer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string ErrorOf(const std::string& text) {
  const auto matrix = ParseNetworkMatrix(text, "m.txt");
  EXPECT_FALSE(matrix.ok()) << text;
  EXPECT_EQ(matrix.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(matrix.status().message());
}

TEST(MatrixText, ReadsRowsNamesAndComments) {
  const auto m = ParseNetworkMatrix(
      "# three of us\n"
      "names a b c\r\n"
      "rtt_ms\n"
      "  -  90, 148.5\n\n"
      " 90   -  228  # far\n"
      "148.5 228 0\n"
      "mbit\n"
      "- 200 unlimited\n10 - 100\n150 0.5 -",
      "m.txt");
  ASSERT_TRUE(m.ok()) << m.status();
  EXPECT_THAT(m->names, ElementsAre("a", "b", "c"));
  EXPECT_THAT(m->rtt_ms[0], ElementsAre(0, 90, 148.5));
  EXPECT_THAT(m->mbit[0], ElementsAre(0, 200, 0));
  EXPECT_THAT(m->mbit[1], ElementsAre(10, 0, 100));
  EXPECT_THAT(m->mbit[2], ElementsAre(150, 0.5, 0));
}

TEST(MatrixText, OneValueHoldsForAllPairs) {
  const auto m =
      ParseNetworkMatrix("rtt_ms 200\nmbit\n- 10 20\n10 - 30\n20 30 -", "m");
  ASSERT_TRUE(m.ok()) << m.status();
  EXPECT_THAT(m->rtt_ms[1], ElementsAre(200, 0, 200));
  EXPECT_THAT(m->names, ElementsAre("host-0", "host-1", "host-2"));
  const auto n = ParseNetworkMatrix("names x y\nrtt_ms 5\nmbit unlimited", "m");
  ASSERT_TRUE(n.ok()) << n.status();
  EXPECT_THAT(n->mbit[0], ElementsAre(0, 0));
}

TEST(MatrixText, ErrorsHaveFileAndLine) {
  EXPECT_THAT(ErrorOf(""), StartsWith("m.txt: has no matrix"));
  EXPECT_THAT(ErrorOf("rtt_ms 5\nmbit 5"), StartsWith("m.txt: has no matrix"));
  EXPECT_THAT(ErrorOf("names a b\nrtt_ms 5"), HasSubstr("mbit is missing"));
  EXPECT_THAT(ErrorOf("names a b\nmbit 5"), HasSubstr("rtt_ms is missing"));
  EXPECT_THAT(ErrorOf("# x\nlatency 5"), StartsWith("m.txt:2: \"latency\" is"));
  EXPECT_THAT(ErrorOf("1 2 3"), StartsWith("m.txt:1: "));
  EXPECT_THAT(ErrorOf("rtt_ms\n- 1\n2 -\nmbit 5"),
              StartsWith("m.txt:3: from peer 1 to 0 and back takes 2 ms"));
  EXPECT_THAT(ErrorOf("rtt_ms\n- 1 2\n1 -"), StartsWith("m.txt:3: this row"));
  EXPECT_THAT(ErrorOf("rtt_ms\n- 1\n1 -\n1 1"), StartsWith("m.txt:4: row 2"));
  EXPECT_THAT(ErrorOf("rtt_ms\n- 1 2\n1 - 3\nmbit 5"),
              StartsWith("m.txt:1: rtt_ms has 2 rows of 3"));
  EXPECT_THAT(ErrorOf("rtt_ms\n5 1\n1 -"), StartsWith("m.txt:2: from peer 0"));
  EXPECT_THAT(ErrorOf("rtt_ms 5\n- 1"), StartsWith("m.txt:2: line 1 has"));
  EXPECT_THAT(ErrorOf("rtt_ms 5\nrtt_ms 6"), StartsWith("m.txt:2: rtt_ms is"));
  EXPECT_THAT(ErrorOf("rtt_ms 5 6"), StartsWith("m.txt:1: rtt_ms has one"));
  EXPECT_THAT(ErrorOf("names a a"), StartsWith("m.txt:1: two peers"));
  EXPECT_THAT(ErrorOf("names a \"b"), StartsWith("m.txt:1: the name"));
  EXPECT_THAT(ErrorOf("names a b c\nrtt_ms\n- 1\n1 -\nmbit 5"),
              StartsWith("m.txt:2: rtt_ms has 2 rows of 2, but there are 3"));
  EXPECT_THAT(ErrorOf("names a\nrtt_ms\n- 1\n1 -\nmbit 5"),
              StartsWith("m.txt:1: there are 1 names for 2 peers"));
  EXPECT_THAT(ErrorOf("names a\nrtt_ms 1\nmbit 1"), HasSubstr("2 to 200"));
}

TEST(MatrixText, ValuesAreStrict) {
  for (const char* value : {"-5", "1e3", "0x10", "nan", "inf", "5ms", "1.2.3",
                            "60001", "\"", "unlimited", "."}) {
    EXPECT_THAT(ErrorOf(std::string("names a b\nrtt_ms ") + value),
                StartsWith("m.txt:2: "))
        << value;
  }
  for (const char* value : {"0", "0.0001", "-1", "1000001", "many"}) {
    EXPECT_THAT(ErrorOf(std::string("names a b\nmbit ") + value),
                StartsWith("m.txt:2: "))
        << value;
  }
}

}  // namespace
}  // namespace gossamer
