#include "runtime/cli/variants.h"

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
#include "algorithms/method/registry.h"
#include "runtime/config/run_config.h"
#include "topology/mixing_schedule.h"

namespace gossamer {
namespace {

bool Sets(const std::vector<std::string>& changes, const std::string& field) {
  return std::ranges::any_of(changes, [&](const std::string& change) {
    return change.starts_with(field + "=");
  });
}

// Returns the codec that `own` names last, or the file's.
std::string CodecOf(const std::vector<std::string>& own,
                    const RunConfig& given) {
  constexpr std::string_view kField = "mixing.codec=";
  for (auto change = own.rbegin(); change != own.rend(); ++change) {
    if (change->starts_with(kField)) return change->substr(kField.size());
  }
  return given.mixing().codec();
}

// Adds the defaults of `method`, which is not the file's, in place of settings
// that the file has chosen for its own.  An empty value stands for the method's
// default.
void AddImplied(const Method& method, const RunConfig& given,
                const std::vector<std::string>& own,
                std::vector<std::string>& changes) {
  const MethodDefaults& usual = method.defaults;
  // Methods with one default are compared by the same optimizer, the file's.
  const Method* const file = MethodOf(given);
  if (file == nullptr || file->defaults.optimizer != usual.optimizer) {
    changes.push_back("step.optimizer=");
  }
  if (usual.overlap_steps) {
    changes.push_back(
        absl::StrCat("mixing.overlap_steps=", *usual.overlap_steps));
  }
  std::string codec = CodecOf(own, given);
  if (!usual.codec.empty()) {
    codec = usual.codec;
    changes.push_back(absl::StrCat("mixing.codec=", codec));
  }
  if (usual.gamma != nullptr) {
    changes.push_back(absl::StrCat("mixing.gamma=", usual.gamma(codec)));
  }
  // A graph that the file has chosen serves every method of the ring, but for
  // a time-varying one, which was chosen for what it is.
  constexpr MethodDefaults kUsual;
  if (!Sets(own, "mixing.graph") &&
      (usual.graph != kUsual.graph || IsTimeVarying(given.mixing().graph()))) {
    changes.push_back("mixing.graph=");
    changes.push_back("mixing.sites=");  // of a graph that is gone
  }
  // An exact mean needs no further mixing.
  if (method.centralized()) changes.push_back("mixing.mixing_rounds=1");
}

// `own` are the name's own changes.
Variant MakeVariant(const std::string& name, const std::string& algorithm,
                    const std::vector<std::string>& own,
                    const RunConfig& given) {
  Variant variant{name, {"algorithm=" + algorithm}};
  const Method* const method = FindMethod(algorithm);
  if (method != nullptr && algorithm != given.algorithm()) {
    AddImplied(*method, given, own, variant.changes);
  }
  if (method != nullptr && method->centralized() &&
      !given.mixing().has_all_reduce()) {
    variant.changes.push_back("mixing.all_reduce=auto");
  }
  // The name's own changes come last, so they win over all that is implied.
  variant.changes.insert(variant.changes.end(), own.begin(), own.end());
  return variant;
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

absl::Status CheckDistinct(const std::vector<Variant>& variants) {
  std::set<std::string> names;
  for (const Variant& c : variants) {
    if (names.insert(c.name).second) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        c.name, " is named twice: its runs would count as those of two seeds"));
  }
  return absl::OkStatus();
}

// `name` may have options behind a colon, those of the method's codec.
absl::StatusOr<Variant> VariantOfEntry(const std::string& name,
                                       const RunConfig& given) {
  const std::vector<std::string> parts =
      absl::StrSplit(name, absl::MaxSplits(':', 1));
  const CatalogueEntry* const entry = FindInCatalogue(parts[0]);
  if (entry == nullptr) return NotInCatalogue(parts[0]);
  // Options behind a colon are a codec's; an entry without a codec has nowhere
  // to put them.
  if (parts.size() > 1 && std::ranges::none_of(entry->settings, SetsCodec)) {
    return absl::InvalidArgumentError(
        absl::StrCat(parts[0], " has no options; compare ", parts[0],
                     "+FIELD=VALUE by --algorithms"));
  }
  std::string algorithm = given.algorithm();
  std::vector<std::string> changes;
  for (const std::string_view setting : entry->settings) {
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
  return MakeVariant(name, algorithm, changes, given);
}

absl::StatusOr<std::vector<std::string>> NamesOf(
    const std::vector<std::string>& methods) {
  std::vector<std::string> names = JoinOptions(methods);
  if (std::ranges::find(names, kAllMethods) == names.end()) return names;
  if (names.size() > 1) {
    return absl::InvalidArgumentError("all methods are all: name no others");
  }
  names.clear();
  // A codec that belongs to one method is chosen as that method is.
  std::set<std::vector<std::string>> chosen;
  for (const CatalogueEntry& entry : Catalogue()) {
    if (chosen.insert(entry.settings).second) names.emplace_back(entry.name);
  }
  return names;
}

}  // namespace

std::vector<std::string> UsualAlgorithms() {
  std::vector<const Method*> usual;
  for (const Method* method : Methods()) {
    if (method->help.compared > 0) usual.push_back(method);
  }
  // A comparison has an order of its own (MethodHelp::compared).
  std::ranges::sort(usual, {},
                    [](const Method* m) { return m->help.compared; });
  std::vector<std::string> names;
  for (const Method* method : usual) names.emplace_back(method->name);
  return names;
}

absl::StatusOr<std::vector<Variant>> VariantsOf(
    const std::vector<std::string>& algorithms,
    const std::vector<std::string>& methods, const RunConfig& given) {
  std::vector<Variant> variants;
  GOSSAMER_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                            NamesOf(methods));
  for (const std::string& name : names) {
    absl::StatusOr<Variant> variant = VariantOfEntry(name, given);
    if (!variant.ok()) return variant.status();
    variants.push_back(*std::move(variant));
  }
  if (methods.empty()) {
    for (const std::string& name : JoinOptions(algorithms)) {
      const std::vector<std::string> parts = absl::StrSplit(name, '+');
      variants.push_back(
          MakeVariant(name, parts[0], {parts.begin() + 1, parts.end()}, given));
    }
  }
  GOSSAMER_RETURN_IF_ERROR(CheckDistinct(variants));
  return variants;
}

}  // namespace gossamer
