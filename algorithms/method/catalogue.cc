#include "algorithms/method/catalogue.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "algorithms/base/spelling.h"
#include "algorithms/compress/registry.h"
#include "algorithms/method/registry.h"

namespace gossamer {
namespace {

std::vector<std::string> SettingsOf(const Method& method) {
  std::vector<std::string> settings = {
      absl::StrCat("algorithm=", std::string(method.name))};
  const std::vector<std::string> further =
      absl::StrSplit(std::string(method.help.settings), ' ', absl::SkipEmpty());
  settings.insert(settings.end(), further.begin(), further.end());
  return settings;
}

// Of a method's help or a compressor's.
template <typename Help>
CatalogueEntry EntryOf(std::string_view name, std::string_view kind,
                       const Help& help, std::vector<std::string> settings) {
  return {.name = name,
          .kind = kind,
          .summary = help.summary,
          .property = help.property,
          .bits = help.bits,
          .state = help.state,
          .needs = help.needs,
          .gamma = help.gamma,
          .settings = std::move(settings),
          .source = help.source,
          .page = help.page};
}

// A codec that belongs to one method is chosen by that method.
std::vector<std::string> SettingsOfCodec(std::string_view name) {
  for (const Method* method : Methods()) {
    if (method->own_codec == name && method->defaults.codec == name) {
      return SettingsOf(*method);
    }
  }
  return {absl::StrCat("mixing.codec=", std::string(name))};
}

// Gradients are sent by the method of gradients that a comparison takes first.
std::vector<std::string> SettingsOfGradients(std::string_view name) {
  const Method* sender = nullptr;
  for (const Method* method : Methods()) {
    if (method->averaging != Averaging::kGradients ||
        method->help.compared == 0) {
      continue;
    }
    if (sender == nullptr || method->help.compared < sender->help.compared) {
      sender = method;
    }
  }
  assert(sender != nullptr);
  std::vector<std::string> settings = SettingsOf(*sender);
  settings.push_back(absl::StrCat("mixing.gradient_codec=", std::string(name)));
  return settings;
}

CatalogueEntry LocalitySkewed() {
  return {.name = "locality-skewed",
          .kind = "schedule",
          .summary = "pairs of a site often, pairs of two sites rarely",
          .property = "exact mean; variance within 1 + D",
          .bits = "the codec's",
          .state = "0",
          .needs = "sites of the peers",
          .gamma = "the codec's",
          .settings = {"mixing.graph=locality-skewed",
                       "mixing.sites=near:1-2 far:3-4"},
          .source = "Jiang, Rumi, arXiv 2101.07706",
          .page = "locality"};
}

const std::vector<CatalogueEntry>& Table() {
  // Made at first use, and never destroyed, so that no order of initialisation
  // or end matters.
  static const auto* const table = [] {
    auto* const entries = new std::vector<CatalogueEntry>;
    for (const Method* method : Methods()) {
      entries->push_back(EntryOf(method->name, "algorithm", method->help,
                                 SettingsOf(*method)));
    }
    // A compressor for edges and gradients stands among the codecs alone, since
    // a name stands for one choice.
    for (const Compressor* compressor : Compressors()) {
      if (compressor->edges == nullptr) continue;
      entries->push_back(EntryOf(compressor->name, "codec", compressor->help,
                                 SettingsOfCodec(compressor->name)));
    }
    for (const Compressor* compressor : Compressors()) {
      if (compressor->edges != nullptr) continue;
      entries->push_back(EntryOf(compressor->name, "gradients",
                                 compressor->help,
                                 SettingsOfGradients(compressor->name)));
    }
    entries->push_back(LocalitySkewed());
    return entries;
  }();
  return *table;
}

}  // namespace

std::span<const CatalogueEntry> Catalogue() { return Table(); }

const CatalogueEntry* FindInCatalogue(std::string_view name) {
  const auto it = std::ranges::find(Table(), name, &CatalogueEntry::name);
  return it == Table().end() ? nullptr : &*it;
}

absl::Status NotInCatalogue(const std::string& name) {
  const std::string begins = absl::StrCat("no method is called \"", name, "\"");
  const std::string_view replacement = CompressorReplacement(name);
  if (!replacement.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        begins, ": write \"", std::string(replacement), "\" instead"));
  }
  std::vector<std::string_view> known;
  for (const CatalogueEntry& e : Catalogue()) known.push_back(e.name);
  return absl::InvalidArgumentError(
      absl::StrCat(begins, "; ", KnownAndNearest(name, known)));
}

}  // namespace gossamer
