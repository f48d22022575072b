// The declarations that the subcommands of `gossamer` share: exit codes,
// options, and the functions that add them to the command line.
//
// Exit codes: 0 for success; 1 for a failure, with the reason on stderr; 2 for
// a wrong command line or configuration.  This header knows nothing of what a
// command does.

#ifndef GOSSAMER_RUNTIME_CLI_COMMAND_H_
#define GOSSAMER_RUNTIME_CLI_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/run.pb.h"
#include "runtime/base/command_line.h"
#include "runtime/identity/certificate_folder.h"

namespace gossamer {

inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;

// Each adds one subcommand; AddStatus two: status and stop.
void AddTrain(Command& program);
void AddLab(Command& program);
void AddCompare(Command& program);
void AddSample(Command& program);
void AddEvaluate(Command& program);
void AddCheckpoint(Command& program);
void AddGraph(Command& program);
void AddMethods(Command& program);
void AddConfig(Command& program);
void AddData(Command& program);
void AddPlan(Command& program);
void AddDoctor(Command& program);
void AddStatus(Command& program);
void AddMeasure(Command& program);
void AddCerts(Command& program);

// Prints "gossamer COMMAND: message" to stderr.  Returns kUsage for
// kInvalidArgument, otherwise kFailed.
int PrintError(const std::string& command, const absl::Status& status);

// Returns the folder of training data, or the file of image-folder, as an
// absolute path: `flag`, or else the configuration's; "" for a game without
// files.  kInvalidArgument says how to
// get the data.
absl::StatusOr<std::string> DataFolder(const RunConfig& config,
                                       const std::string& flag);
// Sets what DataFolder has found.
void SetDataFolder(const std::string& folder, RunConfig& config);

// The options of every command that trains.
struct TrainingOptions {
  std::string config;
  std::vector<std::string> set;
  std::string data;
  std::string runs = "runs";
  std::string name;
  bool json = false;
};

// The fleet that a command asks its topology service about, and the access to
// it.
struct ServiceQuery {
  std::string topology;
  Exposure exposure;
  std::string run;
  bool json = false;
};
void AddServiceQuery(Command& command, ServiceQuery& query);

// `name_help` is the help of --name.
void AddTrainingOptions(Command& command, TrainingOptions& options,
                        const std::string& name_help,
                        bool config_required = true);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_COMMAND_H_
