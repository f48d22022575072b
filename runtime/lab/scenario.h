// The network that the lab makes: its hosts, and the properties of each link
// between two of them in each direction.
//
// Turns a file into a complete, checked matrix, and refuses errors with file
// and line.  Knows nothing of namespaces, devices or processes.

#ifndef GOSSAMER_RUNTIME_LAB_SCENARIO_H_
#define GOSSAMER_RUNTIME_LAB_SCENARIO_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/lab/link_model.h"

namespace gossamer {

inline constexpr uint32_t kMostLabHosts = 200;

struct Scenario {
  struct Host {
    std::string name;
    std::string region;  // may be empty
    // Bytes a second to all other hosts together; 0: no limit.
    uint64_t uplink = 0;
  };

  std::string name;
  uint64_t seed = 1;
  uint32_t mtu = 1500;
  bool stock_tcp = false;
  std::vector<Host> hosts;  // by rank
  // [from][to]; the diagonal means nothing.
  std::vector<std::vector<LinkSpec>> links;
};

// Reads a scenario for `hosts` hosts.  If the file leaves their number open, it
// has that many (without a number: 4); otherwise the first ones are taken.
// Returns kNotFound without the file; kInvalidArgument has one line per problem
// with file:line:column and what to do.
absl::StatusOr<Scenario> LoadScenario(const std::string& path,
                                      std::optional<uint32_t> hosts);
// Does the same for text at hand; messages call it `file`.
absl::StatusOr<Scenario> ParseScenario(std::string_view text,
                                       std::string_view file,
                                       std::optional<uint32_t> hosts);

// Returns 10.77.0.1 for rank 0, and so on.
std::string LabAddress(size_t rank);

// Return the hosts and the matrix of links, for people and for programs
// (`--show`).
std::string ScenarioText(const Scenario& scenario);
std::string ScenarioJson(const Scenario& scenario);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_LAB_SCENARIO_H_
