#include "runtime/daemon/decisions_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

namespace fs = std::filesystem;

// The disk space that even an empty file takes.
constexpr uint64_t kMinFileBytes = 4096;

struct EarlierDecisions {
  uint64_t began = 0;
  fs::path path;
  uint64_t bytes = 0;
  friend bool operator<(const EarlierDecisions& a, const EarlierDecisions& b) {
    return a.began < b.began;
  }
};

// Returns the files of processes that resumed, except this one's, `own`.  Their
// names have the times at which they began.
std::vector<EarlierDecisions> FindEarlierDecisions(const std::string& folder,
                                                   const fs::path& own) {
  std::vector<EarlierDecisions> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename();
    absl::string_view number = name;
    EarlierDecisions file{.path = it->path()};
    std::error_code gone;
    if (!absl::ConsumePrefix(&number, "decisions-") ||
        !absl::ConsumeSuffix(&number, ".log") ||
        !absl::SimpleAtoi(number, &file.began) || name == own.filename()) {
      continue;
    }
    const uintmax_t size = fs::file_size(file.path, gone);
    file.bytes = std::max<uint64_t>(gone ? 0 : size, kMinFileBytes);
    found.push_back(std::move(file));
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Removes the oldest of `files` until those left take `limit`, and returns
// those removed.  The first process's decisions.log is not among them: the run
// can be replayed from its beginning by it.
std::vector<std::string> KeepUnder(uint64_t limit,
                                   const std::vector<EarlierDecisions>& files) {
  uint64_t bytes = 0;
  for (const EarlierDecisions& file : files) bytes += file.bytes;
  std::vector<std::string> removed;
  for (const EarlierDecisions& file : files) {
    if (bytes <= limit) break;
    std::error_code error;
    if (!fs::remove(file.path, error)) continue;
    bytes -= file.bytes;
    removed.push_back(file.path);
  }
  return removed;
}

absl::StatusOr<Decisions> ReadDecisions(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--replay ", path,
        ": cannot be read; peers keep theirs in peer-N/decisions.log"));
  }
  absl::StatusOr<Decisions> decisions = Decisions::Replay(text.str());
  if (decisions.ok()) return decisions;
  return absl::InvalidArgumentError(
      absl::StrCat("--replay ", path, ": ", decisions.status().message()));
}

}  // namespace

absl::StatusOr<DecisionsFile> OpenDecisions(
    const DecisionsFileOptions& options,
    std::function<void(const std::string& line)> report) {
  DecisionsFile file;
  if (!options.replay.empty()) {
    // A replay keeps no log of its own: it would be the one that it repeats.
    GOSSAMER_ASSIGN_OR_RETURN(file.decisions, ReadDecisions(options.replay));
    return file;
  }
  const std::string own =
      options.resume ? absl::StrCat(options.folder, "/decisions-",
                                    absl::ToUnixSeconds(options.now), ".log")
                     : options.folder + "/decisions.log";
  if (options.limit != 0) {
    for (const std::string& removed :
         KeepUnder(options.limit, FindEarlierDecisions(options.folder, own))) {
      report(absl::StrCat("decisions: ", removed,
                          " of an earlier process is removed (--log-limit)"));
    }
  }
  GOSSAMER_ASSIGN_OR_RETURN(
      file.log,
      DecisionLog::Open(own, options.limit,
                        [report = std::move(report)](const absl::Status& why) {
                          report(absl::StrCat("decisions: ", why.message()));
                        }));
  file.decisions = Decisions(
      [log = file.log.get()](const std::string& line) { log->Add(line); });
  return file;
}

}  // namespace gossamer
