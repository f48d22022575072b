#include "algorithms/base/seeded_bug.h"

#include <string>

namespace gossamer {

#ifdef GOSSAMER_SEEDED_BUGS
namespace {

// One name for the process: tests plant a bug before they start what may have
// it.
std::string& Planted() {
  static std::string name;
  return name;
}

}  // namespace

void PlantBug(std::string_view name) { Planted() = std::string(name); }
bool SeededBug(std::string_view name) { return Planted() == name; }
#endif

}  // namespace gossamer
