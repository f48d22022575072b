// Counts of each kind of fault, in one seed or in many.
//
// The counts are of faults that happened, not of drawn ones.  This header knows
// nothing of their kinds.

#ifndef GOSSAMER_TESTS_SIMULATION_FAULT_COUNTS_H_
#define GOSSAMER_TESTS_SIMULATION_FAULT_COUNTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace gossamer::simulation {

// Counts by the fault's name, in the plural.
using FaultCounts = std::map<std::string, uint64_t, std::less<>>;

inline void Add(const FaultCounts& more, FaultCounts& counts) {
  for (const auto& [name, n] : more) counts[name] += n;
}

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_FAULT_COUNTS_H_
