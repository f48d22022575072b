// report.html: a comparison as one page that needs nothing else to be read.
//
// Made from numbers and PNG files; knows nothing of how the runs were done.

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

// What is said of one game.
struct ReportGame {
  Comparison comparison;
  std::vector<ReportPicture> curves, samples;
  std::string configuration;  // text, as of its first run
  // Of each other algorithm: what is different in its configuration, a line
  // each.
  std::vector<std::pair<std::string, std::string>> differences;
};

struct Report {
  std::string title;
  std::vector<ReportGame> games;
  std::string command;  // that makes it again
  // What it ran on: name and value.
  std::vector<std::pair<std::string, std::string>> machine;
};

// Pictures are embedded; nothing is fetched and no script runs.
std::string ReportHtml(const Report& report);

// Processor, cores, memory, kernel.
std::vector<std::pair<std::string, std::string>> DescribeMachine();

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_REPORT_H_
