// The methods that a run may be composed of, as a table: what each does, what
// it needs, how it is chosen, where it comes from.
//
// Words only.  Knows nothing of the code that does it; a test holds the table
// against that code.

#ifndef GOSSAMER_ALGORITHMS_METHOD_CATALOGUE_H_
#define GOSSAMER_ALGORITHMS_METHOD_CATALOGUE_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace gossamer {

struct Method {
  std::string_view name;  // "choco-int4"
  // "algorithm", "codec", "gradients", "schedule" or "privacy": the part of a
  // run that it is.
  std::string_view kind;
  std::string_view summary;   // one line
  std::string_view property;  // what is known of it: "contractive, 0.985"
  std::string_view bits;      // per parameter on the wire; "–": of the codec
  std::string_view state;     // floats per parameter and edge or peer
  std::string_view needs;     // "" for nothing: "lasting neighbours"
  std::string_view gamma;     // consensus step size; "–": none
  // Changes that choose it, of --set: "algorithm=cold".
  std::vector<std::string_view> settings;
  std::string_view source;  // the paper
  std::string_view page;    // of this folder, without .md: "choco"
};

// By kind, then as a reader meets them.
std::span<const Method> Methods();

// Null if there is none of that name.
const Method* FindMethod(std::string_view name);

// kInvalidArgument, naming those that there are.
absl::Status UnknownMethod(const std::string& name);

// The text of a page of this folder; empty if there is none.
std::string_view MethodPage(std::string_view page);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_METHOD_CATALOGUE_H_
