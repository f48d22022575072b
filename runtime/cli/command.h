// What the subcommands of `gossamer` share: exit codes, and how each joins the
// command line.
//
// Exit codes: 0 done; 1 it failed, and the message says why; 2 the command
// line or the configuration is wrong.

#ifndef GOSSAMER_RUNTIME_CLI_COMMAND_H_
#define GOSSAMER_RUNTIME_CLI_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/run.pb.h"

namespace CLI {
class App;
}

namespace gossamer {

inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;

// Each adds one subcommand (AddStatus two: status and stop), which sets `code`
// when it runs.
void AddTrain(CLI::App& app, int& code);
void AddCompare(CLI::App& app, int& code);
void AddSample(CLI::App& app, int& code);
void AddEvaluate(CLI::App& app, int& code);
void AddGraph(CLI::App& app, int& code);
void AddDoctor(CLI::App& app, int& code);
void AddStatus(CLI::App& app, int& code);

// Prints "gossamer COMMAND: message" to stderr; kUsage for kInvalidArgument,
// else kFailed.
int Complain(const std::string& command, const absl::Status& status);

// The folder of training data as an absolute path: `flag`, else the
// configuration's; "" for a game without files.  kInvalidArgument says how to
// get the data.
absl::StatusOr<std::string> DataFolder(const RunConfig& config,
                                       const std::string& flag);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_COMMAND_H_
