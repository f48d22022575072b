#include "runtime/cli/contenders.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/method/catalogue.h"
#include "runtime/config/run_config.h"

namespace gossamer {
namespace {

// Of methods that gossamer-datalens trains by, and no fleet of peers.
constexpr std::string_view kPrivacy = "privacy";

bool Sets(const std::vector<std::string>& changes, const std::string& field) {
  return std::ranges::any_of(changes, [&](const std::string& change) {
    return change.starts_with(field + "=");
  });
}

// The one that `own` names last, or the file's.
std::string CodecOf(const std::vector<std::string>& own,
                    const RunConfig& given) {
  constexpr std::string_view kField = "mixing.codec=";
  for (auto change = own.rbegin(); change != own.rend(); ++change) {
    if (change->starts_with(kField)) return change->substr(kField.size());
  }
  return given.mixing().codec();
}

// dp-, rand-dp- and cp-oadam take any optimizer, and are compared by the same.
bool HasOptimizer(const std::string& algorithm) {
  return algorithm == "dposg" || algorithm == "cold" ||
         algorithm == "dyna-cold" || algorithm == "gradient-tracking";
}

// What an algorithm that is not the file's implies, in place of what the file
// has chosen for its own.  Empty values: what the algorithm implies.
void AddImplied(const std::string& algorithm, const RunConfig& given,
                const std::vector<std::string>& own,
                std::vector<std::string>& changes) {
  if (HasOptimizer(algorithm) || HasOptimizer(given.algorithm())) {
    changes.push_back("step.optimizer=");
  }
  if (!Sets(own, "mixing.schedule")) {
    changes.push_back("mixing.schedule=");
    changes.push_back("mixing.sites=");  // of a schedule that is gone
  }
  if (algorithm == "cold" || algorithm == "dyna-cold") {
    RunConfig implied;
    implied.set_algorithm(algorithm);
    if (algorithm == "cold") {
      implied.mutable_mixing()->set_codec(CodecOf(own, given));
    }
    ResolveRunConfig(implied);
    changes.push_back("mixing.order=" + implied.mixing().order());
    changes.push_back("mixing.overlap_steps=0");
    changes.push_back(absl::StrCat("mixing.gamma=", implied.mixing().gamma()));
    // COLD is stable with several, and takes the file's.
    if (algorithm == "dyna-cold") {
      changes.push_back("mixing.codec=" + implied.mixing().codec());
    }
  }
  if (algorithm == "rand-dp-oadam" || algorithm == "cp-oadam") {
    changes.push_back("mixing.graph=");
  }
  if (algorithm == "cp-oadam") {
    changes.push_back("mixing.overlap_steps=0");
    changes.push_back("mixing.mixing_rounds=1");
  }
}

// `own` are the name's own changes.
Contender MakeContender(const std::string& name, const std::string& algorithm,
                        const std::vector<std::string>& own,
                        const RunConfig& given) {
  Contender contender{name, {"algorithm=" + algorithm}};
  if (algorithm != given.algorithm()) {
    AddImplied(algorithm, given, own, contender.changes);
  }
  if (algorithm == "cp-oadam" && !given.mixing().has_all_reduce()) {
    contender.changes.push_back("mixing.all_reduce=auto");
  }
  contender.changes.insert(contender.changes.end(), own.begin(), own.end());
  return contender;
}

// Lists are cut at commas, which options have, too: "bits=4" goes to what was
// before, since names are followed by "+", ":" or nothing.
std::vector<std::string> JoinOptions(const std::vector<std::string>& pieces) {
  std::vector<std::string> names;
  for (const std::string& piece : pieces) {
    const size_t end = piece.find_first_of("+:=");
    if (end != piece.npos && piece[end] == '=' && !names.empty()) {
      absl::StrAppend(&names.back(), ",", piece);
    } else {
      names.push_back(piece);
    }
  }
  return names;
}

bool SetsCodec(std::string_view setting) {
  return setting.starts_with("mixing.codec=") ||
         setting.starts_with("mixing.gradient_codec=");
}

std::string Halves(uint64_t peers) {
  return absl::StrCat("near:1-", peers / 2, " far:", peers / 2 + 1, "-", peers);
}

absl::Status CheckDistinct(const std::vector<Contender>& contenders) {
  std::set<std::string> names;
  for (const Contender& c : contenders) {
    if (names.insert(c.name).second) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        c.name, " is named twice: its runs would count as those of two seeds"));
  }
  return absl::OkStatus();
}

// `name` may have options behind a colon, those of the method's codec.
absl::StatusOr<Contender> ContenderOfMethod(const std::string& name,
                                            const RunConfig& given) {
  const std::vector<std::string> parts =
      absl::StrSplit(name, absl::MaxSplits(':', 1));
  const Method* const method = FindMethod(parts[0]);
  if (method == nullptr) return UnknownMethod(parts[0]);
  if (parts.size() > 1 && std::ranges::none_of(method->settings, SetsCodec)) {
    return absl::InvalidArgumentError(
        absl::StrCat(parts[0], " has no options; compare ", parts[0],
                     "+FIELD=VALUE by --algorithms"));
  }
  if (method->kind == kPrivacy) {
    return absl::InvalidArgumentError(absl::StrCat(
        name,
        " cannot be compared here: no fleet of peers trains by it, but "
        "gossamer-",
        name, ", a program of its own; leave it out of --methods"));
  }
  std::string algorithm = given.algorithm();
  std::vector<std::string> changes;
  for (const std::string_view setting : method->settings) {
    constexpr std::string_view kAlgorithm = "algorithm=";
    constexpr std::string_view kSites = "mixing.sites=";
    if (setting.starts_with(kAlgorithm)) {
      algorithm = setting.substr(kAlgorithm.size());
    } else if (setting.starts_with(kSites)) {
      // The catalogue's are an example of four peers: where peers are is the
      // file's; where it does not say, they are halves.
      if (given.mixing().sites().empty()) {
        changes.push_back(std::string(kSites) + Halves(given.peers()));
      }
    } else {
      changes.emplace_back(setting);
      if (parts.size() > 1 && SetsCodec(setting)) {
        absl::StrAppend(&changes.back(),
                        setting.find(':') == setting.npos ? ":" : ",",
                        parts[1]);
      }
    }
  }
  return MakeContender(name, algorithm, changes, given);
}

absl::StatusOr<std::vector<std::string>> NamesOf(
    const std::vector<std::string>& methods) {
  std::vector<std::string> names = JoinOptions(methods);
  if (std::ranges::find(names, kAllMethods) == names.end()) return names;
  if (names.size() > 1) {
    return absl::InvalidArgumentError("all methods are all: name no others");
  }
  names.clear();
  for (const Method& method : Methods()) {
    if (method.kind != kPrivacy) names.emplace_back(method.name);
  }
  return names;
}

}  // namespace

absl::StatusOr<std::vector<Contender>> ContendersOf(
    const std::vector<std::string>& algorithms,
    const std::vector<std::string>& methods, const RunConfig& given) {
  std::vector<Contender> contenders;
  GOSSAMER_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                            NamesOf(methods));
  for (const std::string& name : names) {
    absl::StatusOr<Contender> contender = ContenderOfMethod(name, given);
    if (!contender.ok()) return contender.status();
    contenders.push_back(*std::move(contender));
  }
  if (methods.empty()) {
    for (const std::string& name : JoinOptions(algorithms)) {
      const std::vector<std::string> parts = absl::StrSplit(name, '+');
      contenders.push_back(MakeContender(
          name, parts[0], {parts.begin() + 1, parts.end()}, given));
    }
  }
  GOSSAMER_RETURN_IF_ERROR(CheckDistinct(contenders));
  return contenders;
}

}  // namespace gossamer
