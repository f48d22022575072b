// A program's command line: options, subcommands, help and errors.
//
// Wraps CLI11, which takes longer to compile than most programs that use it.
// This header knows nothing of what any option means.
//
//   Command program({.name = "draw", .about = "Draws.", .run = [&] { ... }});
//   program.AddOption("--out", &out, "the picture", {.required = true});
//   return program.Run(argc, argv);

#ifndef GOSSAMER_RUNTIME_BASE_COMMAND_LINE_H_
#define GOSSAMER_RUNTIME_BASE_COMMAND_LINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gossamer {

// The variable that an option sets; its value before is the default.  bool: a
// flag, which takes no value.  std::optional: empty if the option is not given.
// std::vector: several values, after one flag or after several.
using OptionTarget =
    std::variant<bool*, std::string*, int*, uint32_t*, uint64_t*, double*,
                 std::optional<std::string>*, std::optional<int>*,
                 std::optional<uint64_t>*, std::optional<double>*,
                 std::vector<std::string>*, std::vector<uint64_t>*>;

// The rules that an option's value must keep, and their form in the help.
struct OptionRules {
  bool required = false;
  bool show_default = false;
  // Shown in help; empty: TEXT, INT, UINT or FLOAT.
  std::string value_name = {};
  bool positive = false;
  std::optional<std::pair<double, double>> range = {};  // both ends included
  std::vector<std::string> choices = {};                // empty: any text
  char delimiter = '\0';       // of a list: also splits a value
  bool one_at_a_time = false;  // of a list: one value after each flag
  std::string excludes = {};   // the name of an option added before
};

// Reads `text` as the value of option `name`.  Returns kInvalidArgument if it
// is no value or breaks the rules; the target is then unchanged.
absl::Status AssignOption(const std::string& name, const std::string& text,
                          OptionTarget target, const OptionRules& rules = {});

struct CommandSpec {
  std::string name;
  std::string about;
  // Shown after help; empty in a subcommand: the program's.
  std::string footer = {};
  // Printed by --version; empty: there is no such flag.
  std::string version = {};
  std::function<int()> run = {};  // returns the exit status
};

// A program or one of its subcommands.  An impossible declaration, such as a
// name that is used twice, ends the process.
class Command {
 public:
  explicit Command(CommandSpec spec) noexcept;
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // `name` is written as on the command line: "--peers".  `target` outlives the
  // command.
  void AddOption(const std::string& name, OptionTarget target,
                 const std::string& help, OptionRules rules = {}) noexcept;
  // A program with subcommands must be given exactly one.  The result belongs
  // to this command.
  Command& AddCommand(CommandSpec spec) noexcept;

  // Sets the targets.  Returns "", or the text that --help or --version asks
  // for.  kInvalidArgument says what is wrong.  Called at most once per
  // program.
  absl::StatusOr<std::string> Parse(int argc, const char* const* argv);
  // Parses and runs the chosen command.  Returns the exit status of `run`; 0
  // after help and version, on stdout; 2 for a wrong command line, with the
  // error on stderr.
  int Run(int argc, const char* const* argv);

 private:
  struct Impl;
  explicit Command(std::unique_ptr<Impl> impl);
  // Returns the subcommand that was given, or this.
  const Command& Chosen() const;

  const std::unique_ptr<Impl> impl_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_COMMAND_LINE_H_
