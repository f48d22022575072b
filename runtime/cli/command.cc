#include "runtime/cli/command.h"

#include <filesystem>
#include <iostream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "gan_models/gan_spec.h"

namespace gossamer {

int PrintError(const std::string& command, const absl::Status& status) {
  std::cerr << "gossamer " << command << ": " << status.message() << "\n";
  // Scripts tell by the code whether trying again may help, so a command gives
  // kInvalidArgument only for what the person has written.
  return absl::IsInvalidArgument(status) ? kUsage : kFailed;
}

absl::StatusOr<std::string> DataFolder(const RunConfig& config,
                                       const std::string& flag) {
  const bool digits = config.game().has_datalens();
  if (!config.game().has_gan() && !digits) return "";
  const DataConfig& data = config.game().gan().data();
  const std::string name = digits ? "digits" : data.name();
  const DataSource source = digits ? DataSource::kFolder : SourceOf(name);
  if (source == DataSource::kNone) return "";
  const bool one_file = source == DataSource::kFile;
  const std::string& own =
      digits ? config.game().datalens().path() : data.path();
  const std::string folder = flag.empty() ? own : flag;
  const std::string advice =
      digits ? "fetch them with: deploy/digits.sh"
      : name.starts_with("emoji-")
          ? absl::StrCat(
                "make them with: gossamer-models render-emoji --out "
                "data/",
                name,
                name == "emoji-32" ? ""
                                   : absl::StrCat(" --size ", name.substr(6)))
      : one_file ? "make it with: gossamer data build --from FOLDER --out FILE "
                   "--resolution N"
                 : absl::StrCat("unpack the binary version of ", name,
                                " and pass its folder");
  if (folder.empty()) {
    return absl::InvalidArgumentError(
        one_file
            ? absl::StrCat("--data FILE is needed, of ", name, "; ", advice)
            : absl::StrCat("--data DIR is needed, the folder of the ", name,
                           " files; ", advice));
  }
  std::error_code error;
  if (one_file ? !std::filesystem::is_regular_file(folder, error)
               : !std::filesystem::is_directory(folder, error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--data ", folder, ": no such ", one_file ? "file" : "folder", " for ",
        one_file ? name : absl::StrCat("the ", name, " files"), "; ", advice));
  }
  // Peers are started with other working folders.
  return std::filesystem::absolute(folder).lexically_normal().string();
}

void SetDataFolder(const std::string& folder, RunConfig& config) {
  if (folder.empty()) return;
  GameConfig& game = *config.mutable_game();
  if (game.has_datalens()) {
    game.mutable_datalens()->set_path(folder);
  } else {
    game.mutable_gan()->mutable_data()->set_path(folder);
  }
}

void AddServiceQuery(Command& command, ServiceQuery& query) {
  command.AddOption("--topology", &query.topology,
                    "topology service; of several instances all",
                    {.required = true, .value_name = "HOST:PORT[,...]"});
  command.AddOption("--certs", &query.exposure.certificates,
                    "folder of an operator's or a peer's certificates",
                    {.value_name = "DIR"});
  command.AddOption("--insecure", &query.exposure.insecure,
                    "ask beyond this machine without certificates");
  command.AddOption("--run", &query.run,
                    "name of the run; the service's only one if not given");
  command.AddOption("--json", &query.json, "answer as JSON");
}

void AddTrainingOptions(Command& command, TrainingOptions& options,
                        const std::string& name_help, bool config_required) {
  command.AddOption(
      "--config", &options.config,
      config_required ? "configuration file" : "train with this configuration",
      {.required = config_required, .value_name = "FILE"});
  command.AddOption("--set", &options.set,
                    "change one field, as in mixing.codec=innov-int8; may be "
                    "given again",
                    {.value_name = "FIELD=VALUE", .one_at_a_time = true});
  command.AddOption("--data", &options.data,
                    "folder of the training data, or file of image-folder",
                    {.value_name = "DIR"});
  command.AddOption("--runs", &options.runs, "folder of all runs",
                    {.show_default = true, .value_name = "DIR"});
  command.AddOption("--name", &options.name, name_help);
  command.AddOption("--json", &options.json, "results as JSON on stdout");
}

}  // namespace gossamer
