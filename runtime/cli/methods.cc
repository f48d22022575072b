// gossamer methods: what a run may be composed of, and one method explained.

#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_format.h"
#include "algorithms/method/catalogue.h"
#include "algorithms/method/registry.h"
#include "nlohmann/json.hpp"
#include "runtime/cli/command.h"

namespace gossamer {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kExamples[] = R"(examples:
  gossamer methods
  gossamer methods cold
  gossamer methods --json | jq '.[] | select(.kind == "codec") | .name'
  gossamer compare --config deploy/configs/quadratic.textproto \
      --methods dp-oadam,innov-sign,cold

A method is chosen by its settings, which --set or a configuration file take;
gossamer compare --methods takes its name.

JSON keys, of a list: name, kind (algorithm, codec, gradients, schedule),
summary, property, bits (per parameter on the wire), state (floats per
parameter), needs, gamma, settings (a list), source, page (the text, only of one
that is asked for by name).)";

struct Options {
  std::string name;
  bool json = false;
};

std::string Text(std::string_view text) { return std::string(text); }

Json ToJson(const CatalogueEntry& m) {
  Json json = {{"name", Text(m.name)},       {"kind", Text(m.kind)},
               {"summary", Text(m.summary)}, {"property", Text(m.property)},
               {"bits", Text(m.bits)},       {"state", Text(m.state)},
               {"needs", Text(m.needs)},     {"gamma", Text(m.gamma)},
               {"settings", Json::array()},  {"source", Text(m.source)}};
  for (const std::string_view s : m.settings) {
    json["settings"].push_back(Text(s));
  }
  return json;
}

void PrintAll() {
  std::string_view kind;
  for (const CatalogueEntry& m : Catalogue()) {
    // The catalogue lists one kind after the other, so a new kind begins a new
    // heading.
    if (m.kind != kind) {
      std::cout << (kind.empty() ? "" : "\n") << Text(m.kind) << "\n";
      kind = m.kind;
    }
    std::cout << absl::StreamFormat(
        "  %-17s %s\n  %17s %s\n  %17s bits %s, state %s, gamma %s%s%s\n",
        Text(m.name), Text(m.summary), "", Text(m.property), "", Text(m.bits),
        Text(m.state), Text(m.gamma), m.needs.empty() ? "" : "; needs ",
        Text(m.needs));
  }
  std::cout
      << "\nbits: per parameter on the wire; state: floats kept per "
         "parameter; –: does not apply.\n"
         "lasting neighbours: the state is an edge's.  Edges last here in "
         "every schedule; one\n  that draws from all members keeps that "
         "much for each of them (a bound for\n  the replicas "
         "of innov- codecs: mixing.replica_memory_mb).  With more than 256\n"
         "  members edges that keep nothing but replicas last for some rounds, "
         "without them.\n"
         "every message: a round waits for all; mixing.deadline is "
         "refused or of no use.\n"
         "gossamer methods NAME explains one.\n";
}

void PrintOne(const CatalogueEntry& m) {
  const auto line = [](const char* name, std::string_view value) {
    if (!value.empty()) {
      std::cout << absl::StreamFormat("%-9s %s\n", name, Text(value));
    }
  };
  line("name", m.name);
  line("kind", m.kind);
  line("property", m.property);
  line("bits", m.bits);
  line("state", m.state);
  line("needs", m.needs);
  line("gamma", m.gamma);
  for (const std::string_view s : m.settings) line("--set", s);
  line("source", m.source);
  std::cout << "\n" << Text(MethodPage(m.page));
}

int RunMethods(const Options& options) {
  if (options.name.empty()) {
    Json all = Json::array();
    for (const CatalogueEntry& m : Catalogue()) all.push_back(ToJson(m));
    options.json ? void(std::cout << all.dump(2) << "\n") : PrintAll();
    return kOk;
  }
  const CatalogueEntry* const entry = FindInCatalogue(options.name);
  if (entry == nullptr) {
    return PrintError("methods", NotInCatalogue(options.name));
  }
  if (options.json) {
    Json one = ToJson(*entry);
    one["page"] = Text(MethodPage(entry->page));
    // This is a list as well, so a program reads the answer to a name as it
    // reads that to none.
    std::cout << Json::array({one}).dump(2) << "\n";
  } else {
    PrintOne(*entry);
  }
  return kOk;
}

}  // namespace

void AddMethods(Command& program) {
  auto options = std::make_shared<Options>();
  Command& command = program.AddCommand(
      {.name = "methods",
       .about = "List the methods that a run may be composed of, explain one",
       .footer = kExamples,
       .run = [options] { return RunMethods(*options); }});
  command.AddOption("NAME", &options->name, "the method to explain");
  command.AddOption("--json", &options->json, "for programs");
}

}  // namespace gossamer
