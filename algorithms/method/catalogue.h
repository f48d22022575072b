// The parts that a run may be composed of, as a table of words: the methods and
// the compressors of the registries, and the schedule that has a page.
//
// Each entry says what it does, what it needs, how it is chosen and where it
// comes from, in the words of the part's own file.

#ifndef GOSSAMER_ALGORITHMS_METHOD_CATALOGUE_H_
#define GOSSAMER_ALGORITHMS_METHOD_CATALOGUE_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace gossamer {

// One part of a run, in the words that `gossamer methods` prints.
struct CatalogueEntry {
  std::string_view name;  // "innov-int4"
  // "algorithm", "codec", "gradients" or "schedule": the part of a run that it
  // is.
  std::string_view kind;
  std::string_view summary;   // one line
  std::string_view property;  // what is known of it: "contractive, 0.986"
  std::string_view bits;      // a parameter on the wire; "–": the codec's
  std::string_view state;     // floats a parameter, by peer or edge
  std::string_view needs;     // "" for nothing: "lasting neighbours"
  std::string_view gamma;     // consensus step size; "–": none
  // Changes of --set that choose it: "algorithm=cold".
  std::vector<std::string> settings;
  std::string_view source;  // the paper
  std::string_view page;    // of this folder, without .md: "choco"
};

// By kind.
std::span<const CatalogueEntry> Catalogue();

// Null if there is none of that name.
const CatalogueEntry* FindInCatalogue(std::string_view name);

// kInvalidArgument, with the name to write in place of an old one, or those
// that there are.
absl::Status NotInCatalogue(const std::string& name);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_METHOD_CATALOGUE_H_
