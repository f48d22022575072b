// Bugs on purpose, to see that the simulation finds them.
//
// In a build with GOSSAMER_SEEDED_BUGS one of them can be planted at run time;
// in all others SeededBug() is false at compile time and costs nothing.  This
// header knows nothing of what the bugs do.

#ifndef GOSSAMER_ALGORITHMS_BASE_SEEDED_BUG_H_
#define GOSSAMER_ALGORITHMS_BASE_SEEDED_BUG_H_

#include <string_view>

namespace gossamer {

#ifdef GOSSAMER_SEEDED_BUGS
// Before anything that could have the bug runs, on one thread.
void PlantBug(std::string_view name);
bool SeededBug(std::string_view name);
#else
constexpr bool SeededBug(std::string_view) { return false; }
#endif

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_BASE_SEEDED_BUG_H_
