// The network that the lab makes: which hosts there are, and what each link
// between two of them does, in each direction.
//
// From a file to a complete, checked matrix: parse, resolve, refuse nonsense
// with file and line.  Knows nothing of namespaces, devices or processes.

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
  };

  std::string name;
  uint64_t seed = 1;
  uint32_t mtu = 1500;
  bool stock_tcp = false;
  std::vector<Host> hosts;  // by rank
  // [from][to]; the diagonal means nothing.
  std::vector<std::vector<LinkSpec>> links;
};

// `hosts` is how many are wanted: as many there are if the file leaves it open
// (without a number: 4), else the first ones.  kNotFound: no such file.
// kInvalidArgument: one line per problem with file:line:column and what to do.
absl::StatusOr<Scenario> LoadScenario(const std::string& path,
                                      std::optional<uint32_t> hosts);
// The same for text at hand; `file` is what messages call it.
absl::StatusOr<Scenario> ParseScenario(std::string_view text,
                                       std::string_view file,
                                       std::optional<uint32_t> hosts);

// 10.77.0.1 for rank 0.
std::string LabAddress(size_t rank);

// For people and for programs (`--show`): hosts and the matrix of links.
std::string ScenarioText(const Scenario& scenario);
std::string ScenarioJson(const Scenario& scenario);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_LAB_SCENARIO_H_
