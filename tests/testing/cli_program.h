// The program `gossamer`, run from a test: its exit code and its output.
//
// It runs in a folder of its own, which is removed at the end.

#ifndef GOSSAMER_TESTS_TESTING_CLI_PROGRAM_H_
#define GOSSAMER_TESTS_TESTING_CLI_PROGRAM_H_

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/testing/temporary_folder.h"

namespace gossamer {

// The end of a run of the program.
struct Result {
  int code = -1;
  std::string out;  // stdout
  std::string err;
};

inline std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A test with a folder of its own, in which it writes files and runs the
// program.
class Cli : public ::testing::Test {
 protected:
  Result Run(const std::string& arguments) {
    const std::string err = folder_.path() + "/stderr";
    const std::string command =
        absl::StrCat("cd ", folder_.path(), " && ", program_, " ", arguments,
                     " 2>", err, " </dev/null");
    std::FILE* pipe = ::popen(command.c_str(), "r");
    Result result;
    std::array<char, 4096> block;
    while (const size_t n = std::fread(block.data(), 1, block.size(), pipe)) {
      result.out.append(block.data(), n);
    }
    const int status = ::pclose(pipe);
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    result.err = ReadAll(err);
    return result;
  }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path() + "/" + name) << text;
  }

  const TemporaryFolder folder_;
  std::string program_ = GOSSAMER_PROGRAM;
};

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_TESTING_CLI_PROGRAM_H_
