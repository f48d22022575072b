#include "runtime/datalens/run_text.h"

#include <array>
#include <charconv>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "algorithms/base/spelling.h"

namespace gossamer {
namespace {

constexpr size_t kMostProblems = 10;

std::vector<RunSetting> AllSettings(DataLensRun& run) {
  std::vector<RunSetting> all = SharedSettings(run);
  for (RunSetting& setting : StudentSettings(run)) {
    all.push_back(std::move(setting));
  }
  return all;
}

std::string TextOf(const std::string& value) { return value; }
std::string TextOf(int value) { return absl::StrCat(value); }
std::string TextOf(uint64_t value) { return absl::StrCat(value); }
// Returns the fewest digits that read back as the same number.
std::string TextOf(double value) {
  std::array<char, 32> digits;
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return {digits.data(), end};
}
std::string TextOf(const std::optional<uint64_t>& value) {
  return value ? TextOf(*value) : "";
}

// The lines of a file, each of which sets one value.
class Lines {
 public:
  Lines(std::string_view file, std::vector<RunSetting> settings)
      : file_(file), settings_(std::move(settings)) {}

  void Read(int number, std::string_view line) {
    const size_t space = line.find_first_of(" \t");
    const std::string name(line.substr(0, space));
    const std::string value(absl::StripAsciiWhitespace(
        space == std::string_view::npos ? ""
                                        : std::string(line.substr(space))));
    const std::string problem = Set(number, name, value);
    if (problem.empty() || problems_.size() >= kMostProblems) return;
    problems_.push_back(absl::StrCat(file_, ":", number, ": ", problem));
  }
  absl::Status status() const {
    return problems_.empty()
               ? absl::OkStatus()
               : absl::InvalidArgumentError(absl::StrJoin(problems_, "\n"));
  }

 private:
  std::string Set(int number, const std::string& name,
                  const std::string& value) {
    std::vector<std::string_view> known;
    for (const RunSetting& setting : settings_) {
      known.push_back(setting.name);
      if (setting.name != name) continue;
      const auto [before, fresh] = lines_.emplace(name, number);
      if (!fresh) {
        return absl::StrCat("\"", name, "\" is in line ", before->second,
                            ", too");
      }
      if (value.empty()) {
        return absl::StrCat("\"", name, "\" has no value; write \"", name,
                            " VALUE\"");
      }
      const absl::Status assigned = std::visit(
          [&](auto* target) {
            return AssignOption(name, value, target, setting.rules);
          },
          setting.value);
      return std::string(assigned.message());
    }
    return absl::StrCat("there is no \"", name, "\"; ",
                        Suggestion(name, known));
  }

  const std::string file_;
  const std::vector<RunSetting> settings_;
  std::map<std::string, int> lines_;  // line numbers of the names so far
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<RunSetting> SharedSettings(DataLensRun& run) {
  DataLensSettings& s = run.settings;
  return {
      {"data", &run.data, "digits.csv"},
      {"epsilon", &s.budget.epsilon, "the budget"},
      {"delta", &s.budget.delta, "of the budget"},
      {"teachers", &s.teachers, "on disjoint shards"},
      {"top", &s.top, "coordinates that a teacher votes on (k)"},
      {"sigma", &s.sigma, "deviation of the noise on a sum of votes"},
      {"threshold", &s.threshold,
       "votes needed, as a share of the teachers (beta)"},
      {"clip", &s.clip, "a gradient this large votes for certain (c)"},
      {"step-size", &s.step_size, "of an image (alpha)"},
      {"batch", &s.batch, "images that are asked about at once"},
      {"discriminator-steps", &s.discriminator_steps,
       "of every teacher before it votes"},
      {"student-steps", &s.student_steps,
       "towards the moved images of a batch"},
      {"teacher-rate", &s.teacher_rate, "learning rate"},
      {"student-rate", &s.student_rate, "learning rate"},
      {"average", &s.average, "of the student's parameters over steps"},
      {"teacher-width", &s.teacher_width, "hidden units"},
      {"student-width", &s.student_width, "hidden units"},
      {"latent", &s.latent, "numbers a sample is made from"},
      {"seed", &s.seed, "of everything but the noise"},
      {"groups", &run.groups, "that the teachers sit in"},
      {"patience",
       &run.patience,
       "seconds to wait for the others",
       {.show_default = true, .range = {{0.1, 86400}}}},
  };
}

std::vector<RunSetting> StudentSettings(DataLensRun& run) {
  return {
      {"steps", &run.steps,
       "at most so many, over all lives; 0: the whole budget"},
      {"checkpoint-every", &run.checkpoint_every,
       "steps; 0: only when stopped and at the end"},
      {"noise-seed",
       &run.noise_seed,
       "for tests: the noise can be repeated, and so taken off",
       {}},
  };
}

absl::Status ReadRunText(std::string_view text, std::string_view file,
                         DataLensRun& run) {
  Lines lines(file, AllSettings(run));
  int number = 0;
  for (const absl::string_view whole :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    ++number;
    const absl::string_view line = absl::StripAsciiWhitespace(whole);
    if (line.empty() || line.front() == '#') continue;
    lines.Read(number, {line.data(), line.size()});
  }
  return lines.status();
}

std::string RunText(const DataLensRun& run) {
  DataLensRun copy = run;
  std::string text;
  for (const RunSetting& setting : AllSettings(copy)) {
    const std::string value = std::visit(
        [](const auto* target) { return TextOf(*target); }, setting.value);
    if (!value.empty()) absl::StrAppend(&text, setting.name, " ", value, "\n");
  }
  return text;
}

}  // namespace gossamer
