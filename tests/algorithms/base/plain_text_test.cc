// Text from outside becomes one short line that cannot steer a terminal.

#include "algorithms/base/plain_text.h"

#include <gtest/gtest.h>

#include <string>

namespace gossamer {
namespace {

TEST(PlainTextTest, PrintableTextStaysAsItIs) {
  EXPECT_EQ(PlainText(""), "");
  EXPECT_EQ(PlainText("run \"a\" at 10.0.0.2:7"), "run \"a\" at 10.0.0.2:7");
}

TEST(PlainTextTest, ControlAndNonAsciiBytesAreEscaped) {
  EXPECT_EQ(PlainText("a\nb\r\x1b[2J\x7f"), "a\\x0ab\\x0d\\x1b[2J\\x7f");
  EXPECT_EQ(PlainText(std::string("\0\xc2\x9b", 3)), "\\x00\\xc2\\x9b");
}

TEST(PlainTextTest, ALongTextIsCut) {
  EXPECT_EQ(PlainText("abcdef", 3), "abc...");
  EXPECT_EQ(PlainText(std::string(100'000, '\n')).size(), 255 * 4 + 3);
}

}  // namespace
}  // namespace gossamer
