// Words in printed commands, as a shell reads them back.

#include "runtime/cli/shell_word.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace gossamer {
namespace shell_word_test {

// Returns what a shell hands to a program as the first of `words`.
std::string FirstAsAShellReads(const std::string& words) {
  const std::string command = "printf '%s' " + words;
  std::FILE* shell = popen(command.c_str(), "r");
  if (shell == nullptr) return "no shell";
  std::string text;
  for (int c = std::fgetc(shell); c != EOF; c = std::fgetc(shell)) {
    text += static_cast<char>(c);
  }
  pclose(shell);
  return text;
}

TEST(ShellWordTest, LeavesPlainWordsAsTheyAre) {
  for (const std::string word :
       {"deploy/configs/ring-4.textproto", "mixing.codec=choco-topk:k=32",
        "0ms,100ms", "dp-oadam+mixing.codec=dense-f32"}) {
    EXPECT_EQ(ShellWord(word), word);
  }
}

TEST(ShellWordTest, QuotesWhatAShellWouldChange) {
  EXPECT_EQ(ShellWord(""), "''");
  EXPECT_EQ(ShellWord("two words"), "'two words'");
  EXPECT_EQ(ShellWord("mine's"), "'mine'\\''s'");
  for (const std::string word :
       {"two words", "mine's", "'", "''", "a\"b", "$HOME", "`id`", "a;b",
        "a\\b", "~", "*", "a#b", "[a]", "{a,b}", "a\nb", "a\tb", "!", "a?",
        "%s"}) {
    EXPECT_EQ(FirstAsAShellReads(ShellWord(word)), word);
  }
}

}  // namespace shell_word_test
}  // namespace gossamer
