// report.html: a comparison as one self-contained page.
//
// Made from numbers and PNG files; knows nothing of how the runs were made.

#ifndef GOSSAMER_RUNTIME_CLI_REPORT_H_
#define GOSSAMER_RUNTIME_CLI_REPORT_H_

#include <string>
#include <utility>
#include <vector>

#include "runtime/cli/comparison.h"

namespace gossamer {

struct ReportPicture {
  std::string caption;
  std::string path;  // of a PNG; left out if it cannot be read
};

// The part of the page about one game.
struct ReportGame {
  Comparison comparison;
  std::vector<ReportPicture> curves, samples;
  std::string configuration;  // the configuration of its first run, as text
  // For each other algorithm, the differences of its configuration, a line
  // each.
  std::vector<std::pair<std::string, std::string>> differences;
};

struct Report {
  std::string title;
  std::vector<ReportGame> games;
  std::string command;  // the command that makes the report again
  // The machine of the runs: names and values.
  std::vector<std::pair<std::string, std::string>> machine;
};

// Returns the page.  Pictures are embedded; nothing is fetched and no script
// runs.
std::string ReportHtml(const Report& report);

// Returns processor, cores, memory and kernel.
std::vector<std::pair<std::string, std::string>> DescribeMachine();

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_REPORT_H_
