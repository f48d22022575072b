#include "runtime/base/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdio>
#include <limits>
#include <sstream>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gossamer {
namespace {

constexpr int kUsage = 2;

template <typename Target>
struct TargetTraits {
  using Value = Target;
  static constexpr bool kOptional = false;
  static constexpr bool kList = false;
};
template <typename T>
struct TargetTraits<std::optional<T>> {
  using Value = T;
  static constexpr bool kOptional = true;
  static constexpr bool kList = false;
};
template <typename T>
struct TargetTraits<std::vector<T>> {
  using Value = T;
  static constexpr bool kOptional = false;
  static constexpr bool kList = true;
};

bool Read(const std::string& text, std::string& value) {
  value = text;
  return true;
}

// CLI11 would accept -1 for an unsigned number, read 010 as 8, and clip numbers
// that are too large.
template <std::integral T>
requires(!std::same_as<T, bool>) bool Read(const std::string& text, T& value) {
  return absl::StartsWithIgnoreCase(text, "0x")
             ? absl::SimpleHexAtoi(text, &value)
             : absl::SimpleAtoi(text, &value);
}

bool Read(const std::string& text, bool& value) {
  return absl::SimpleAtob(text, &value);
}

bool Read(const std::string& text, double& value) {
  return absl::SimpleAtod(text, &value) && std::isfinite(value);
}

template <typename T>
bool Allowed(const T& value, const OptionRules& rules) {
  if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
    if (rules.positive && !(value > 0)) return false;
    const auto number = static_cast<double>(value);
    return !rules.range ||
           (rules.range->first <= number && number <= rules.range->second);
  } else if constexpr (std::is_same_v<T, bool>) {
    return true;
  } else {
    return rules.choices.empty() ||
           std::ranges::find(rules.choices, value) != rules.choices.end();
  }
}

// Returns the description of the values that Read and Allowed accept.
template <typename T>
std::string Wanted(const OptionRules& rules) {
  if constexpr (std::is_same_v<T, bool>) {
    return "true or false";
  } else if constexpr (!std::is_arithmetic_v<T>) {
    return absl::StrCat("one of ", absl::StrJoin(rules.choices, ", "));
  } else {
    const char* kind = std::is_integral_v<T> ? "a whole number" : "a number";
    if (rules.positive) return absl::StrCat(kind, " above 0");
    if (rules.range) {
      return absl::StrCat(kind, " from ", rules.range->first, " to ",
                          rules.range->second);
    }
    if constexpr (std::is_integral_v<T>) {
      return absl::StrCat(kind, " from ", std::numeric_limits<T>::min(), " to ",
                          std::numeric_limits<T>::max());
    }
    return kind;
  }
}

template <typename Target>
absl::Status Assign(const std::string& name, const OptionRules& rules,
                    const std::vector<std::string>& texts, Target& target) {
  using Traits = TargetTraits<Target>;
  // All values are read before the target changes, so that an error leaves it
  // as it was.
  Target read = {};
  for (const std::string& text : texts) {
    typename Traits::Value value;
    if (!Read(text, value) || !Allowed(value, rules)) {
      return absl::InvalidArgumentError(absl::StrCat(
          name, " ", text, ": not ", Wanted<typename Traits::Value>(rules)));
    }
    if constexpr (Traits::kList) {
      read.push_back(std::move(value));
    } else {
      read = std::move(value);
    }
  }
  target = std::move(read);
  return absl::OkStatus();
}

template <typename Value>
std::string ValueName(const OptionRules& rules) {
  std::string name = std::is_same_v<Value, std::string> ? "TEXT"
                     : std::is_floating_point_v<Value>  ? "FLOAT"
                     : std::is_unsigned_v<Value>        ? "UINT"
                                                        : "INT";
  if (!rules.choices.empty()) name = absl::StrJoin(rules.choices, "|");
  if (!rules.value_name.empty()) name = rules.value_name;
  if (rules.positive) absl::StrAppend(&name, ":POSITIVE");
  if (rules.range) {
    absl::StrAppend(&name, " in [", rules.range->first, " - ",
                    rules.range->second, "]");
  }
  return name;
}

template <typename Target>
std::string DefaultText(const Target& target) {
  using Traits = TargetTraits<Target>;
  if constexpr (Traits::kList) {
    return absl::StrCat("[", absl::StrJoin(target, ","), "]");
  } else if constexpr (Traits::kOptional) {
    return target ? absl::StrCat(*target) : "";
  } else {
    return absl::StrCat(target);
  }
}

template <typename Target>
CLI::Option* Declare(CLI::App& app, const std::string& name, Target& target,
                     const std::string& help, const OptionRules& rules) {
  if constexpr (std::is_same_v<Target, bool>) {
    return app.add_flag(name, target, help);
  } else {
    using Traits = TargetTraits<Target>;
    CLI::Option* const option = app.add_option(
        name,
        // The texts are read here and not by CLI11, so that every program
        // refuses the same values with the same words.
        [name, rules, &target](const CLI::results_t& texts) {
          const absl::Status assigned = Assign(name, rules, texts, target);
          if (!assigned.ok()) {
            // CLI11 takes errors as exceptions; Command::Parse() catches them.
            throw CLI::ValidationError(std::string(assigned.message()));
          }
          return true;
        },
        help);
    option->type_name(ValueName<typename Traits::Value>(rules));
    if (rules.show_default) option->default_str(DefaultText(target));
    if constexpr (Traits::kList) {
      option->delimiter(rules.delimiter);
      if (rules.one_at_a_time) {
        option->take_all();
      } else {
        option->expected(CLI::detail::expected_max_vector_size);
      }
    }
    return option;
  }
}

std::string Explain(const CLI::App& app, const CLI::ParseError& error) {
  // Unknown options are reported first: a misspelt option may also be a missing
  // one.
  const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
  if (unknown.empty()) return error.what();
  if (absl::StartsWith(unknown.front(), "-")) {
    return absl::StrCat("there is no option ", unknown.front());
  }
  return absl::StrCat("\"", unknown.front(), "\" was not expected");
}

}  // namespace

absl::Status AssignOption(const std::string& name, const std::string& text,
                          OptionTarget target, const OptionRules& rules) {
  return std::visit(
      [&](auto* value) { return Assign(name, rules, {text}, *value); }, target);
}

struct Command::Impl {
  std::string full_name;  // with the program's name
  std::function<int()> run;
  std::unique_ptr<CLI::App> own;  // set for a program only
  CLI::App* app;
  std::vector<std::unique_ptr<Command>> commands;

  void Describe(const CommandSpec& spec) {
    if (!spec.footer.empty()) app->footer(spec.footer);
    if (!spec.version.empty()) app->set_version_flag("--version", spec.version);
  }
};

Command::Command(CommandSpec spec) noexcept : impl_(std::make_unique<Impl>()) {
  impl_->own = std::make_unique<CLI::App>(spec.about, spec.name);
  impl_->app = impl_->own.get();
  impl_->Describe(spec);
  impl_->full_name = std::move(spec.name);
  impl_->run = std::move(spec.run);
}

Command::Command(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Command::~Command() = default;

void Command::AddOption(const std::string& name, OptionTarget target,
                        const std::string& help, OptionRules rules) noexcept {
  CLI::App& app = *impl_->app;
  CLI::Option* const option = std::visit(
      [&](auto* value) { return Declare(app, name, *value, help, rules); },
      target);
  option->required(rules.required);
  if (!rules.excludes.empty()) option->excludes(app.get_option(rules.excludes));
}

Command& Command::AddCommand(CommandSpec spec) noexcept {
  auto impl = std::make_unique<Impl>();
  // A program with subcommands has nothing to do by itself.
  impl_->app->require_subcommand(1);
  impl->app = impl_->app->add_subcommand(spec.name, spec.about);
  impl->Describe(spec);
  impl->full_name = absl::StrCat(impl_->full_name, " ", spec.name);
  impl->run = std::move(spec.run);
  impl_->commands.emplace_back(new Command(std::move(impl)));
  return *impl_->commands.back();
}

absl::StatusOr<std::string> Command::Parse(int argc, const char* const* argv) {
  CLI::App& app = *impl_->app;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 throws for help and version too.
    std::ostringstream text;
    std::ostringstream failure;
    // Help and version have the exit code 0 in CLI11, errors another one.
    if (app.exit(error, text, failure) == 0) return text.str();
    return absl::InvalidArgumentError(
        absl::StrCat(Explain(app, error), " (see --help)"));
  }
  return "";
}

int Command::Run(int argc, const char* const* argv) {
  const absl::StatusOr<std::string> text = Parse(argc, argv);
  const Command& chosen = Chosen();
  if (!text.ok()) {
    std::fprintf(stderr, "%s: %s\n", chosen.impl_->full_name.c_str(),
                 std::string(text.status().message()).c_str());
    return kUsage;
  }
  if (!text->empty()) {
    std::fputs(text->c_str(), stdout);
    return 0;
  }
  return chosen.impl_->run();
}

const Command& Command::Chosen() const {
  for (const std::unique_ptr<Command>& command : impl_->commands) {
    // The innermost one counts: its name is in the error.
    if (impl_->app->got_subcommand(command->impl_->app)) {
      return command->Chosen();
    }
  }
  return *this;
}

}  // namespace gossamer
