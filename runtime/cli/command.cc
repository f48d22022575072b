#include "runtime/cli/command.h"

#include <filesystem>
#include <iostream>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace gossamer {

int Complain(const std::string& command, const absl::Status& status) {
  std::cerr << "gossamer " << command << ": " << status.message() << "\n";
  return absl::IsInvalidArgument(status) ? kUsage : kFailed;
}

absl::StatusOr<std::string> DataFolder(const RunConfig& config,
                                       const std::string& flag) {
  if (!config.game().has_gan()) return "";
  const DataConfig& data = config.game().gan().data();
  if (data.name() == "gaussian-mixture") return "";
  const std::string folder = flag.empty() ? data.path() : flag;
  const std::string advice =
      data.name() == "emoji-32"
          ? "make them with: gossamer-models render-emoji --out data/emoji-32"
          : absl::StrCat("unpack the binary version of ", data.name(),
                         " and pass its folder");
  if (folder.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--data DIR is needed, the folder of the ", data.name(),
                     " files; ", advice));
  }
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--data ", folder, ": no such folder for the ",
                     data.name(), " files; ", advice));
  }
  return std::filesystem::absolute(folder).lexically_normal().string();
}

}  // namespace gossamer
