// gossamer: train, compare and look at fleets.

#include <cstdlib>

#include "runtime/cli/command.h"

namespace {

constexpr char kAbout[] =
    "gossamer trains GANs on peers that talk only to their neighbours.";

constexpr char kFooter[] = R"(start here:
  gossamer doctor
  gossamer train --config deploy/configs/quickstart.textproto --data data/emoji-32

gossamer COMMAND --help has examples.  Exit codes: 0 done, 1 failed, 2 wrong
command line or configuration.)";

}  // namespace

int main(int argc, char** argv) {
  // gRPC's own log lines say less than the errors here; a setting of the user
  // stays.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  gossamer::Command program({.name = "gossamer",
                             .about = kAbout,
                             .footer = kFooter,
                             .version = "gossamer " GOSSAMER_VERSION});
  gossamer::AddTrain(program);
  gossamer::AddCompare(program);
  gossamer::AddLab(program);
  gossamer::AddSample(program);
  gossamer::AddEvaluate(program);
  gossamer::AddCheckpoint(program);
  gossamer::AddGraph(program);
  gossamer::AddMethods(program);
  gossamer::AddConfig(program);
  gossamer::AddData(program);
  gossamer::AddMeasure(program);
  gossamer::AddPlan(program);
  gossamer::AddDoctor(program);
  gossamer::AddStatus(program);
  gossamer::AddCerts(program);
  return program.Run(argc, argv);
}
