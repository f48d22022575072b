// The network that the lab makes: its hosts, and the properties of each link
// between two of them in each direction.
//
// Turns a file into a complete, checked matrix, and refuses errors with file
// and line.  This header knows nothing of namespaces, devices or processes.

#ifndef GOSSAMER_RUNTIME_LAB_SCENARIO_H_
#define GOSSAMER_RUNTIME_LAB_SCENARIO_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/lab/link_model.h"

namespace gossamer {

// Hosts that a lab makes on one machine; a rehearsal may have kMaxPeers.
inline constexpr uint32_t kMaxLabHosts = 200;

// The links from each host to each other one.  Hosts that no link tells apart
// share theirs, so that a network of ten thousand hosts takes little memory.
class LinkMatrix {
 public:
  LinkMatrix() = default;
  // `kinds`: of each host a number, from 0 on without gaps.  All links are
  // `link`.
  LinkMatrix(std::vector<size_t> kinds, const LinkSpec& link);

  size_t size() const { return kind_of_.size(); }
  // From one host to another, of which there are size().
  const LinkSpec& At(size_t from, size_t to) const {
    return specs_[kind_of_[from]][kind_of_[to]];
  }
  // The specs of all links, each once; those between the hosts of a kind are
  // among them also if it has one host.
  std::vector<std::vector<LinkSpec>>& specs() { return specs_; }
  const std::vector<std::vector<LinkSpec>>& specs() const { return specs_; }
  size_t KindOf(size_t host) const { return kind_of_[host]; }
  void KeepFirst(size_t hosts) { kind_of_.resize(hosts); }

 private:
  std::vector<size_t> kind_of_;               // by host
  std::vector<std::vector<LinkSpec>> specs_;  // from a kind to a kind
};

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
  LinkMatrix links;
};

// Reads a scenario for `hosts` hosts, at most kMaxPeers.  If the file leaves
// their number open, it has that many (without a number: 4); otherwise the
// first ones are taken.
// kInvalidArgument: no such file, or one line per problem with file:line:column
// and what to do.
absl::StatusOr<Scenario> LoadScenario(const std::string& path,
                                      std::optional<uint32_t> hosts);
// Does the same for text at hand; messages call it `file`.
absl::StatusOr<Scenario> ParseScenario(std::string_view text,
                                       std::string_view file,
                                       std::optional<uint32_t> hosts);

// Returns 10.77.0.1 for rank 0, and so on, up to rank kMaxLabHosts - 1.
std::string LabAddress(size_t rank);

// Return the hosts and the matrix of links, for people and for programs
// (`--show`).  Of more than kMaxLabHosts hosts the JSON has the first of each
// kind.
std::string ScenarioText(const Scenario& scenario);
std::string ScenarioJson(const Scenario& scenario);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_LAB_SCENARIO_H_
