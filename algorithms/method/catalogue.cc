#include "algorithms/method/catalogue.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "algorithms/method/registry.h"

namespace gossamer {
namespace {

constexpr std::string_view kLasting = "lasting neighbours";

CatalogueEntry EntryOf(const Method& method) {
  const MethodHelp& help = method.help;
  CatalogueEntry entry = {.name = method.name,
                          .kind = "algorithm",
                          .summary = help.summary,
                          .property = help.property,
                          .bits = help.bits,
                          .state = help.state,
                          .needs = help.needs,
                          .gamma = help.gamma,
                          .settings = {},
                          .source = help.source,
                          .page = help.page};
  entry.settings.push_back(
      absl::StrCat("algorithm=", std::string(method.name)));
  const std::vector<std::string> further =
      absl::StrSplit(std::string(help.settings), ' ', absl::SkipEmpty());
  entry.settings.insert(entry.settings.end(), further.begin(), further.end());
  return entry;
}

std::vector<CatalogueEntry> Others() {
  return {
      {.name = "dense",
       .kind = "codec",
       .summary = "parameters as floats",
       .property = "exact",
       .bits = "32",
       .state = "0",
       .needs = "",
       .gamma = "1",
       .settings = {"mixing.codec=dense-f32"},
       .source = "Boyd, Diaconis, Xiao, SIAM Review 2004",
       .page = "difference"},
      {.name = "bf16",
       .kind = "codec",
       .summary = "parameters as bf16, in difference form",
       .property = "relative error 3e-6",
       .bits = "16",
       .state = "0",
       .needs = "",
       .gamma = "1",
       .settings = {"mixing.codec=dense-bf16"},
       .source = "this project, in difference form",
       .page = "difference"},
      {.name = "diff-int8",
       .kind = "codec",
       .summary = "parameters as int8, in difference form",
       .property = "relative error 4e-5; a floor of consensus",
       .bits = "8.125",
       .state = "0",
       .needs = "",
       .gamma = "1",
       .settings = {"mixing.codec=diff-int8"},
       .source = "this project, in difference form",
       .page = "difference"},
      {.name = "choco-int8",
       .kind = "codec",
       .summary = "innovations as int8",
       .property = "contractive, 0.99996",
       .bits = "8.125",
       .state = "2 per edge",
       .needs = kLasting,
       .gamma = "1",
       .settings = {"mixing.codec=innov-int8"},
       .source = "Koloskova, Stich, Jaggi, ICML 2019",
       .page = "choco"},
      {.name = "choco-int4",
       .kind = "codec",
       .summary = "innovations as int4: the default",
       .property = "contractive, 0.986",
       .bits = "4.125",
       .state = "2 per edge",
       .needs = kLasting,
       .gamma = "1",
       .settings = {"mixing.codec=innov-int4"},
       .source = "Koloskova, Stich, Jaggi, ICML 2019",
       .page = "choco"},
      {.name = "choco-lm2",
       .kind = "codec",
       .summary = "innovations in Lloyd and Max's four levels",
       .property = "contractive, 0.88",
       .bits = "2.125",
       .state = "2 per edge",
       .needs = kLasting,
       .gamma = "1",
       .settings = {"mixing.codec=innov-lm2"},
       .source = "Koloskova, Stich, Jaggi, ICML 2019",
       .page = "choco"},
      {.name = "choco-sign",
       .kind = "codec",
       .summary = "signs of innovations",
       .property = "contractive, 0.64",
       .bits = "1.125",
       .state = "2 per edge",
       .needs = kLasting,
       .gamma = "0.6",
       .settings = {"mixing.codec=innov-sign"},
       .source = "Koloskova, Stich, Jaggi, ICML 2019",
       .page = "choco"},
      {.name = "choco-topk",
       .kind = "codec",
       .summary = "the largest innovations of each 4096",
       .property = "contractive, 0.12 with k = 64",
       .bits = "0.316",
       .state = "2 per edge",
       .needs = kLasting,
       .gamma = "2k/4096",
       .settings = {"mixing.codec=innov-topk"},
       .source = "Koloskova, Stich, Jaggi, ICML 2019",
       .page = "choco"},
      {.name = "auto",
       .kind = "codec",
       .summary = "the innovation of the most bits that a link hides",
       .property = "that of the format",
       .bits = "1.125 to 8.125",
       .state = "2 per edge",
       .needs = kLasting,
       .gamma = "1 or 0.6",
       .settings = {"mixing.codec=auto"},
       .source = "this project",
       .page = "choco"},
      {.name = "power-gossip",
       .kind = "codec",
       .summary = "power iterations on what two peers differ by",
       .property = "exact on low rank, linear, no step size",
       .bits = "32 (rows or columns)/size",
       .state = "rows + columns per edge",
       .needs = kLasting,
       .gamma = "1",
       .settings = {"mixing.codec=power-gossip"},
       .source = "Vogels, Karimireddy, Jaggi, NeurIPS 2020",
       .page = "power_gossip"},
      {.name = "fragments",
       .kind = "codec",
       .summary = "one P-th of the vector per exchange, with dense, diff, "
                  "innov codecs",
       .property = "exact mean, P times as many rounds",
       .bits = "1/P of the codec's",
       .state = "the codec's",
       .needs = "",
       .gamma = "the codec's",
       .settings = {"mixing.codec=innov-int4:fragments=4"},
       .source = "Douillard et al., arXiv 2501.18512",
       .page = "choco"},
      {.name = "qsgd",
       .kind = "gradients",
       .summary = "gradients rounded at random, without bias",
       .property = "unbiased, variance bounded",
       .bits = "4.031",
       .state = "0",
       .needs = "every message",
       .gamma = "–",
       .settings = {"algorithm=cp-oadam", "mixing.gradient_codec=qsgd"},
       .source = "Alistarh et al., NIPS 2017",
       .page = "qsgd"},
      {.name = "scalecom",
       .kind = "gradients",
       .summary = "one value of every chunk, chosen by one rank for all",
       .property = "commutes with averaging: volume does not grow with ranks",
       .bits = "0.39",
       .state = "1 per peer",
       .needs = "every message",
       .gamma = "–",
       .settings = {"algorithm=cp-oadam", "mixing.gradient_codec=scalecom"},
       .source = "Chen et al., NeurIPS 2020",
       .page = "scalecom"},
      {.name = "top-k",
       .kind = "gradients",
       .summary = "one value of every chunk, chosen by each rank for itself",
       .property = "error feedback: nothing is lost",
       .bits = "0.39",
       .state = "1 per peer",
       .needs = "every message",
       .gamma = "–",
       .settings = {"algorithm=cp-oadam", "mixing.gradient_codec=top-k"},
       .source = "Chen et al., NeurIPS 2020",
       .page = "scalecom"},
      {.name = "adacomp",
       .kind = "gradients",
       .summary = "what stands out of every bin, in ternary",
       .property = "error feedback; the rate follows activity",
       .bits = "0.17 (dense) to 0.9 (conv)",
       .state = "1 per peer",
       .needs = "every message",
       .gamma = "–",
       .settings = {"algorithm=cp-oadam", "mixing.gradient_codec=adacomp"},
       .source = "Chen et al., AAAI 2018",
       .page = "adacomp"},
      {.name = "lgc",
       .kind = "gradients",
       .summary = "what an autoencoder makes of one rank's choice for all",
       .property = "error feedback; bad codes fall back to scalecom",
       .bits = "0.18",
       .state = "1 per peer, 4,000 of the coder",
       .needs = "every message, a build with libtorch",
       .gamma = "–",
       .settings = {"algorithm=cp-oadam", "mixing.gradient_codec=lgc"},
       .source = "Abrahamyan et al., IEEE TNNLS 2021",
       .page = "lgc"},
      {.name = "locality-skewed",
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
       .page = "locality"},
  };
}

const std::vector<CatalogueEntry>& Table() {
  // Made at first use, and never destroyed, so that no order of initialisation
  // or end matters.
  static const auto* const table = [] {
    auto* const entries = new std::vector<CatalogueEntry>;
    for (const Method* method : Methods()) {
      entries->push_back(EntryOf(*method));
    }
    std::ranges::move(Others(), std::back_inserter(*entries));
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
  std::vector<std::string> known;
  for (const CatalogueEntry& e : Catalogue()) known.emplace_back(e.name);
  return absl::InvalidArgumentError(
      absl::StrCat("no method is called \"", name,
                   "\"; known: ", absl::StrJoin(known, ", ")));
}

}  // namespace gossamer
