// gossamer-datalens: a generator that learns from private data through votes.

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "runtime/base/command_line.h"
#include "runtime/datalens/run.h"

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
  gossamer-datalens student --listen 127.0.0.1:7900 --groups 2
  gossamer-datalens teachers --student 127.0.0.1:7900 --groups 2 --group 0
  gossamer-datalens teachers --student 127.0.0.1:7900 --groups 2 --group 1

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

void AddSettings(Command& c, DataLensRun& run) {
  const OptionRules shown = {.show_default = true};
  DataLensSettings& s = run.settings;
  c.AddOption("--data", &run.data, "digits.csv", shown);
  c.AddOption("--epsilon", &s.budget.epsilon, "the budget", shown);
  c.AddOption("--delta", &s.budget.delta, "of the budget", shown);
  c.AddOption("--teachers", &s.teachers, "on disjoint shards", shown);
  c.AddOption("--top", &s.top, "coordinates that a teacher votes on (k)",
              shown);
  c.AddOption("--sigma", &s.sigma, "deviation of the noise on a sum of votes",
              shown);
  c.AddOption("--threshold", &s.threshold,
              "votes needed, as a share of the teachers (beta)", shown);
  c.AddOption("--clip", &s.clip, "a gradient this large votes for certain (c)",
              shown);
  c.AddOption("--step-size", &s.step_size, "of an image (alpha)", shown);
  c.AddOption("--batch", &s.batch, "images that are asked about at once",
              shown);
  c.AddOption("--discriminator-steps", &s.discriminator_steps,
              "of every teacher before it votes", shown);
  c.AddOption("--student-steps", &s.student_steps,
              "towards the moved images of a batch", shown);
  c.AddOption("--teacher-rate", &s.teacher_rate, "learning rate", shown);
  c.AddOption("--student-rate", &s.student_rate, "learning rate", shown);
  c.AddOption("--average", &s.average, "of the student's parameters over steps",
              shown);
  c.AddOption("--teacher-width", &s.teacher_width, "hidden units", shown);
  c.AddOption("--student-width", &s.student_width, "hidden units", shown);
  c.AddOption("--latent", &s.latent, "numbers a sample is made from", shown);
  c.AddOption("--seed", &s.seed, "of everything but the noise", shown);
  c.AddOption("--groups", &run.groups, "that the teachers sit in", shown);
  c.AddOption("--patience", &run.patience, "seconds to wait for the others",
              {.show_default = true, .range = {{0.1, 86400}}});
  c.AddOption("--checkpoints", &run.checkpoints,
              "keep state here, and go on from what is there",
              {.value_name = "DIR"});
  c.AddOption("--quiet", &run.quiet, "no progress");
}

void AddResults(Command& c, DataLensRun& run) {
  c.AddOption("--steps", &run.steps,
              "at most so many, over all lives; 0: the whole budget",
              {.show_default = true});
  c.AddOption("--checkpoint-every", &run.checkpoint_every,
              "steps; 0: only when stopped and at the end",
              {.show_default = true});
  c.AddOption("--noise-seed", &run.noise_seed,
              "for tests: the noise can be repeated, and so taken off");
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

int Main(int argc, char** argv) {
  Command program(
      {.name = "gossamer-datalens", .about = kAbout, .footer = kExamples});
  DataLensRun run;
  run.data = "data/digits/digits.csv";
  run.listen = "127.0.0.1:7900";
  Command& train =
      program.AddCommand({.name = "train",
                          .about = "Student and teachers in this process",
                          .run = [&run] { return Report(TrainHere(run)); }});
  AddSettings(train, run);
  AddResults(train, run);
  Command& student =
      program.AddCommand({.name = "student",
                          .about = "The generator; waits for its teachers",
                          .run = [&run] { return Report(RunStudent(run)); }});
  AddSettings(student, run);
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
                          .run = [&run] { return Report(RunTeachers(run)); }});
  AddSettings(teachers, run);
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
  return gossamer::Main(argc, argv);
}
