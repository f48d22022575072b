// gossamer: train, compare and look at fleets.

#include <CLI/CLI.hpp>
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
  CLI::App app(kAbout, "gossamer");
  app.footer(kFooter);
  app.set_version_flag("--version", "gossamer " GOSSAMER_VERSION);
  app.require_subcommand(1);
  int code = gossamer::kOk;
  gossamer::AddTrain(app, code);
  gossamer::AddCompare(app, code);
  gossamer::AddSample(app, code);
  gossamer::AddEvaluate(app, code);
  gossamer::AddGraph(app, code);
  gossamer::AddDoctor(app, code);
  gossamer::AddStatus(app, code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // The library reports by throwing, help and version too.
    return app.exit(error) == 0 ? gossamer::kOk : gossamer::kUsage;
  }
  return code;
}
