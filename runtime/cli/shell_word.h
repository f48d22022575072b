// Words of the commands that the program prints for people to repeat.
//
// This header knows nothing of the commands.

#ifndef GOSSAMER_RUNTIME_CLI_SHELL_WORD_H_
#define GOSSAMER_RUNTIME_CLI_SHELL_WORD_H_

#include <string>

namespace gossamer {

// Returns `word` in the form that a POSIX shell takes for one word: as it is if
// nothing in it means anything to a shell, otherwise in single quotes.
std::string ShellWord(const std::string& word);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_SHELL_WORD_H_
