// gossamer-datalens: a generator that learns from private data through votes.

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/command_line.h"
#include "runtime/datalens/run.h"
#include "runtime/datalens/run_files.h"
#include "runtime/datalens/run_text.h"

namespace gossamer {
namespace {

constexpr char kAbout[] =
    "Trains a generator on private images through votes of teachers that each\n"
    "see a shard of their own, within a budget of (epsilon, "
    "delta)-differential\n"
    "privacy (DataLens, CCS 2021).  When the budget is spent, training stops.\n"
    "With --checkpoints a run that was stopped or killed goes on, and what it\n"
    "spent stays spent.";

constexpr char kExamples[] = R"(Examples:
  gossamer-datalens train --epsilon 10 --samples digits.png
  gossamer-datalens train --epsilon 1 --sigma 2000 --seed 2 --json
  gossamer-datalens train --checkpoints runs/digits   # and again, to go on
  gossamer-datalens train --config deploy/configs/digits.txt --seed 2
  gossamer-datalens train --config runs/digits/config.txt --checkpoints runs/b
  gossamer-datalens student --listen 127.0.0.1:7900 --groups 2
  gossamer-datalens teachers --student 127.0.0.1:7900 --groups 2 --group 0
  gossamer-datalens teachers --student 127.0.0.1:7900 --groups 2 --group 1

A configuration has a line "name value" for each setting, named as its option:
those with defaults above, steps, checkpoint-every and noise-seed; # begins a
comment line. Options go over it, whatever their order. The folder of
--checkpoints keeps the whole of it in config.txt. With a noise-seed in it,
another run of it has the same bits; without one, noise of its own.

Student and teachers take the same settings and seed; what differs is refused.
deploy/digits.sh fetches the data.  Beyond this machine everybody needs --certs
of one authority (gossamer certs): the student is peer 1, group g peer g + 2.

Ctrl-C and SIGTERM end train and student after the step under way: state is kept,
what is spent is printed, and the exit status is 0; a second one ends them at
once. Teachers keep their state, too: started again before --patience is over,
they are asked on. The same command with the same --checkpoints goes on after the newest step
that student and teachers share; the student says when all keep their state.
Before votes are released, their price is on disk: after a crash the step under
way counts as spent, and steps that are taken again are paid for again. A run
whose budget is spent needs no teachers: it says so, draws its samples, exits 0.
Other settings, noise or data than the folder's are refused. Who deletes the
folder forgets what was spent; the data do not.

JSON keys: steps, images_asked_about, epsilon (spent), delta, epsilon_budget,
budget_spent, stopped (by a signal), private (false with --noise-seed),
teachers, images_per_teacher, accuracy (of a classifier that learnt from
samples, on held_out real images), held_out, samples (path of the picture or
"").)";

int Report(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "gossamer-datalens: %s\n",
               std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

void Add(Command& c, std::vector<RunSetting> settings) {
  for (RunSetting& s : settings) {
    std::visit(
        [&](auto* value) {
          c.AddOption("--" + s.name, value, s.help, std::move(s.rules));
        },
        s.value);
  }
}

void AddSettings(Command& c, DataLensRun& run, std::string& config) {
  c.AddOption("--config", &config, "read settings here first",
              {.value_name = "FILE"});
  Add(c, SharedSettings(run));
  c.AddOption("--checkpoints", &run.checkpoints,
              "keep state here, and go on from what is there",
              {.value_name = "DIR"});
  c.AddOption("--quiet", &run.quiet, "no progress");
}

void AddResults(Command& c, DataLensRun& run) {
  Add(c, StudentSettings(run));
  c.AddOption("--samples", &run.samples, "draw 100 samples",
              {.value_name = "PNG"});
  c.AddOption("--json", &run.json, "answer as JSON");
}

void AddDoor(Command& c, DataLensRun& run) {
  c.AddOption("--certs", &run.certificates, "folder of certificates",
              {.value_name = "DIR"});
  c.AddOption("--insecure", &run.insecure,
              "allow connections beyond this machine without certificates");
}

// `run` holds the values so far.  The command line overrides the configuration,
// so it is read twice: to find the file, and then over its values.
int Main(int argc, char** argv, DataLensRun run, bool configured) {
  Command program(
      {.name = "gossamer-datalens", .about = kAbout, .footer = kExamples});
  std::string config;
  const auto once_configured =
      [&](absl::Status (*command)(const DataLensRun&)) -> std::function<int()> {
    return [&, command] {
      if (config.empty() || configured) return Report(command(run));
      DataLensRun said;
      const absl::Status read = ReadConfiguration(config, said);
      return read.ok() ? Main(argc, argv, std::move(said), true) : Report(read);
    };
  };
  Command& train =
      program.AddCommand({.name = "train",
                          .about = "Student and teachers in this process",
                          .run = once_configured(TrainHere)});
  AddSettings(train, run, config);
  AddResults(train, run);
  Command& student =
      program.AddCommand({.name = "student",
                          .about = "The generator; waits for its teachers",
                          .run = once_configured(RunStudent)});
  AddSettings(student, run, config);
  AddResults(student, run);
  student.AddOption("--listen", &run.listen,
                    "host:port for teachers; port 0 takes a free one",
                    {.show_default = true});
  student.AddOption("--port-file", &run.port_file,
                    "write the port here when ready");
  AddDoor(student, run);
  Command& teachers =
      program.AddCommand({.name = "teachers",
                          .about = "One group of teachers, with their data",
                          .run = once_configured(RunTeachers)});
  AddSettings(teachers, run, config);
  teachers.AddOption("--student", &run.student, "host:port of the student",
                     {.required = true});
  teachers.AddOption("--group", &run.group, "which, from 0 on", {});
  AddDoor(teachers, run);
  return program.Run(argc, argv);
}

}  // namespace
}  // namespace gossamer

int main(int argc, char** argv) {
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  return gossamer::Main(argc, argv, {}, /*configured=*/false);
}
