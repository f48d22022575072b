// gossamer data: a file of pictures from folders of picture files, and the
// check of such a file.

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "gan_models/data/image_build.h"
#include "gan_models/data/image_cache.h"
#include "nlohmann/json.hpp"
#include "runtime/base/steady_time.h"
#include "runtime/cli/command.h"
#include "runtime/telemetry/progress.h"

namespace gossamer {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kExamples[] = R"(examples:
  gossamer data build --from imagenet/train --held-out imagenet/val \
      --out imagenet-128.images --resolution 128
  gossamer data build --from photos --out photos-64.images --resolution 64 --json
  gossamer data check --data imagenet-128.images
  gossamer train --config RUN.textproto --set game.gan.data.name=image-folder \
      --data imagenet-128.images

build reads FOLDER/CLASS/*.{jpg,jpeg,png}, or FOLDER/* without classes.  Each
picture is cut to its centred square and resized.  The held-out part is a folder
with the same classes, or else every 20th picture of a class.  An interrupted
build leaves FILE.partial; the same command goes on with it.  Files that cannot
be decoded are left out, counted, and listed in FILE.refused.txt.

JSON keys of build: out, resolution, classes, train, held_out (pictures of
each), files, resumed, refused, refused_list, first_refused, notes, file_bytes,
was_there, seconds, files_per_second (of those decoded now).  Of check: data,
resolution, classes, train, held_out, refused, damaged (a list of numbers).)";

struct BuildOptions {
  ImageBuild build;
  bool json = false;
};

struct CheckOptions {
  std::string data;
  bool json = false;
};

// The progress of a build on stderr: a line that is written over on a terminal,
// a line in ten seconds anywhere else.
class BuildProgress {
 public:
  void Show(const ImageBuildProgress& p) {
    const absl::Duration elapsed = SteadyNow() - start_;
    const bool end = p.done == p.files;
    if (ended_ ||
        (!end && !terminal_ && elapsed - shown_ < absl::Seconds(10))) {
      return;
    }
    ended_ = end;
    shown_ = elapsed;
    const std::string line = Line(p, absl::ToDoubleSeconds(elapsed));
    std::fputs((terminal_ ? absl::StrCat("\r", line, "\033[K")
                          : absl::StrCat(line, "\n"))
                   .c_str(),
               stderr);
    std::fflush(stderr);
  }
  void Finish() const {
    if (terminal_ && shown_ > absl::ZeroDuration()) std::fputc('\n', stderr);
  }
  double seconds() const { return absl::ToDoubleSeconds(SteadyNow() - start_); }

 private:
  static std::string Line(const ImageBuildProgress& p, double seconds) {
    std::string line = absl::StrFormat("%d of %d pictures", p.done, p.files);
    const size_t decoded = p.done - p.resumed;
    const double rate =
        seconds > 0 ? static_cast<double>(decoded) / seconds : 0;
    if (rate > 0) {
      absl::StrAppendFormat(
          &line, ", %.0f/s, %s/s read", rate,
          HumanBytes(static_cast<double>(p.bytes_read) / seconds));
      // A picture that an earlier build has done is found much faster.
      if (p.done < p.files) {
        absl::StrAppend(&line, ", ",
                        HumanDuration(absl::Seconds(
                            static_cast<double>(p.files - p.done) / rate)),
                        " left");
      }
    }
    if (p.resumed > 0) absl::StrAppend(&line, ", ", p.resumed, " were there");
    if (p.refused > 0) absl::StrAppend(&line, ", ", p.refused, " refused");
    return line;
  }

  const absl::Time start_ = SteadyNow();
  absl::Duration shown_ = absl::ZeroDuration();
  bool ended_ = false;
  const bool terminal_ = ::isatty(STDERR_FILENO) != 0;
};

void PrintJson(const ImageBuild& build, const ImageBuildResult& r,
               double seconds) {
  const size_t decoded = r.progress.done - r.progress.resumed;
  Json json = {
      {"out", build.out},
      {"resolution", build.resolution},
      {"classes", r.classes},
      {"train", r.train},
      {"held_out", r.held_out},
      {"files", r.progress.files},
      {"resumed", r.progress.resumed},
      {"refused", r.progress.refused},
      {"refused_list", r.refused_list},
      {"first_refused", r.first_refused},
      {"notes", r.notes},
      {"file_bytes", r.file_bytes},
      {"was_there", r.was_there},
      {"seconds", seconds},
      {"files_per_second", r.was_there || seconds <= 0
                               ? 0
                               : static_cast<double>(decoded) / seconds}};
  // Names of files need not be UTF-8.
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

void PrintText(const ImageBuild& build, const ImageBuildResult& r,
               double seconds) {
  for (const std::string& note : r.notes) std::cerr << "note: " << note << "\n";
  if (!r.first_refused.empty()) {
    absl::FPrintF(stderr, "%d files are left out, all named in %s:\n",
                  r.progress.refused, r.refused_list);
    for (const std::string& line : r.first_refused) {
      std::cerr << "  " << line << "\n";
    }
  }
  absl::PrintF(
      "%s: %d pictures to train and %d held out, of %d classes, %dx%d, %s%s\n",
      build.out, r.train, r.held_out, r.classes, build.resolution,
      build.resolution, HumanBytes(static_cast<double>(r.file_bytes)),
      r.was_there
          ? "; it was there"
          : absl::StrCat("; made in ", HumanDuration(absl::Seconds(seconds))));
}

int RunBuild(const BuildOptions& options) {
  // A file beyond the shell's limit is then an error with a name, and not the
  // end of the program.
  std::signal(SIGXFSZ, SIG_IGN);
  BuildProgress progress;
  const auto result = BuildImages(
      options.build, [&](const ImageBuildProgress& p) { progress.Show(p); });
  progress.Finish();
  if (!result.ok()) return PrintError("data build", result.status());
  const double seconds = progress.seconds();
  if (options.json) {
    PrintJson(options.build, *result, seconds);
  } else {
    PrintText(options.build, *result, seconds);
  }
  return kOk;
}

// Reads every picture, and compares it with its checksum.
int RunCheck(const CheckOptions& options) {
  const auto cache = ImageCache::Open(options.data);
  if (!cache.ok()) return PrintError("data check", cache.status());
  size_t train = 0, held_out = 0, refused = 0;
  std::vector<size_t> damaged;
  for (size_t i = 0; i < cache->size(); ++i) {
    if (!cache->has(i)) {
      ++refused;
      continue;
    }
    ++(cache->held_out(i) ? held_out : train);
    cache->Prefetch(std::min(i + 16, cache->size() - 1));
    if (!cache->whole(i)) damaged.push_back(i);
  }
  if (options.json) {
    const Json json = {{"data", options.data},
                       {"resolution", cache->side()},
                       {"classes", cache->class_names().size()},
                       {"train", train},
                       {"held_out", held_out},
                       {"refused", refused},
                       {"damaged", damaged}};
    std::cout << json.dump(2) << "\n";
  } else {
    absl::PrintF(
        "%s: %d pictures to train and %d held out, of %d classes, %dx%d; "
        "%d files were refused\n",
        options.data, train, held_out, cache->class_names().size(),
        cache->side(), cache->side(), refused);
  }
  if (damaged.empty()) return kOk;
  absl::FPrintF(stderr,
                "gossamer data check: %d pictures differ from their checksums, "
                "the first is number %d; remove the file and build it anew\n",
                damaged.size(), damaged.front());
  return kFailed;
}

void AddBuild(Command& data) {
  auto options = std::make_shared<BuildOptions>();
  options->build.threads =
      static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  Command& c =
      data.AddCommand({.name = "build",
                       .about = "Decode and resize pictures into one file",
                       .footer = kExamples,
                       .run = [options] { return RunBuild(*options); }});
  ImageBuild& build = options->build;
  c.AddOption("--from", &build.from,
              "pictures, or a folder of them for each class",
              {.required = true, .value_name = "FOLDER"});
  c.AddOption("--held-out", &build.held_out,
              "pictures to compare with, in the same classes; without it every "
              "20th of --from",
              {.value_name = "FOLDER"});
  c.AddOption("--out", &build.out, "the file to make",
              {.required = true, .value_name = "FILE"});
  c.AddOption("--resolution", &build.resolution,
              "pixels of a picture's side, a multiple of 4",
              {.show_default = true});
  c.AddOption("--threads", &build.threads, "that decode; default: all cores",
              {.positive = true});
  c.AddOption("--most-refused", &build.max_refused,
              "share of the files that may be refused",
              {.show_default = true, .range = {{0, 1}}});
  c.AddOption("--json", &options->json, "result as JSON on stdout");
}

void AddCheck(Command& data) {
  auto options = std::make_shared<CheckOptions>();
  Command& c =
      data.AddCommand({.name = "check",
                       .about = "Compare every picture with its checksum",
                       .footer = kExamples,
                       .run = [options] { return RunCheck(*options); }});
  c.AddOption("--data", &options->data, "a file of gossamer data build",
              {.required = true, .value_name = "FILE"});
  c.AddOption("--json", &options->json, "result as JSON on stdout");
}

}  // namespace

void AddData(Command& program) {
  Command& data = program.AddCommand(
      {.name = "data",
       .about = "Make a data set of folders of pictures, and check it",
       .footer = kExamples});
  AddBuild(data);
  AddCheck(data);
}

}  // namespace gossamer
