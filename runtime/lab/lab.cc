#include "runtime/lab/lab.h"

#include <arpa/inet.h>

#include <algorithm>
#include <utility>

#include "algorithms/base/status_macros.h"
#include "runtime/lab/tun_device.h"

namespace gossamer {
namespace {

// The address is far from those of the hosts, which count from 10.77.0.1.
constexpr char kOwnAddress[] = "10.77.255.254";
constexpr uint64_t kMaxBurst = 65'536;

uint32_t HostOrder(const std::string& address) {
  in_addr parsed = {};
  ::inet_pton(AF_INET, address.c_str(), &parsed);
  return ntohl(parsed.s_addr);
}

// Returns the links with one more host, the lab's own, which has no distance to
// any other.
std::vector<std::vector<LinkSpec>> WithOwnHost(const Scenario& scenario) {
  const size_t hosts = scenario.hosts.size();
  // A LinkSpec by default has no delay and no limit.
  std::vector<std::vector<LinkSpec>> links(hosts + 1,
                                           std::vector<LinkSpec>(hosts + 1));
  for (size_t i = 0; i < hosts; ++i) {
    for (size_t j = 0; j < hosts; ++j) links[i][j] = scenario.links.At(i, j);
  }
  return links;
}

}  // namespace

uint32_t BurstBytes(const std::vector<LinkSpec>& links, size_t self,
                    uint32_t mtu, uint64_t uplink) {
  uint64_t burst = kMaxBurst;
  if (uplink > 0) burst = std::min(burst, uplink / 1000);
  for (size_t i = 0; i < links.size(); ++i) {
    if (i == self) continue;
    // A piece that is lost or overtaken would take all of its packets along.
    if (links[i].loss > 0 || links[i].reorder > 0) return mtu;
    if (links[i].bytes_per_second > 0) {
      // A piece is at most a millisecond of the slowest link: later packets
      // wait behind it for as long.
      burst = std::min(burst, links[i].bytes_per_second / 1000);
    }
  }
  // A burst of less than two packets saves nothing.
  return burst < 2 * uint64_t{mtu} ? mtu : static_cast<uint32_t>(burst);
}

absl::StatusOr<std::unique_ptr<Lab>> Lab::Start(const Scenario& scenario) {
  auto lab = std::unique_ptr<Lab>(new Lab());
  // The process namespace is made first, while its keeper can inherit nothing
  // of the lab.
  GOSSAMER_ASSIGN_OR_RETURN(ProcessNamespace processes,
                            ProcessNamespace::Make());
  lab->processes_.emplace(std::move(processes));
  const std::vector<std::vector<LinkSpec>> links = WithOwnHost(scenario);
  std::vector<PacketSwitch::Port> ports;
  for (size_t i = 0; i < links.size(); ++i) {
    GOSSAMER_RETURN_IF_ERROR(lab->AddHost(scenario, i, links));
    const bool own = i == scenario.hosts.size();
    ports.push_back({lab->devices_.back().get(),
                     HostOrder(own ? kOwnAddress : LabAddress(i)),
                     own ? 0 : scenario.hosts[i].uplink, own});
  }
  lab->packet_switch_ =
      std::make_unique<PacketSwitch>(std::move(ports), links, scenario.seed);
  // The links' time begins before the first process can send.
  GOSSAMER_RETURN_IF_ERROR(lab->packet_switch_->Start());
  GOSSAMER_ASSIGN_OR_RETURN(ScopedNetwork here,
                            ScopedNetwork::Enter(lab->networks_.back().get()));
  // From here on this thread reaches the lab, and the machine's own network no
  // more.
  lab->here_.emplace(std::move(here));
  return lab;
}

absl::Status Lab::AddHost(const Scenario& scenario, size_t index,
                          const std::vector<std::vector<LinkSpec>>& links) {
  const bool own = index == scenario.hosts.size();
  GOSSAMER_ASSIGN_OR_RETURN(FileDescriptor network, MakeNetwork());
  networks_.push_back(std::move(network));
  GOSSAMER_ASSIGN_OR_RETURN(const ScopedNetwork there,
                            ScopedNetwork::Enter(networks_.back().get()));
  GOSSAMER_ASSIGN_OR_RETURN(
      FileDescriptor device,
      MakeTunDevice(
          {.address = own ? kOwnAddress : LabAddress(index),
           .mtu = scenario.mtu,
           .burst_bytes = BurstBytes(links[index], index, scenario.mtu,
                                     own ? 0 : scenario.hosts[index].uplink)}));
  devices_.push_back(std::move(device));
  // The settings are of this host's namespace: the machine's own stay.
  return scenario.stock_tcp ? absl::OkStatus() : TuneTcp();
}

Lab::~Lab() {
  if (packet_switch_ != nullptr) Stop();
}

// The processes die first: their packets would only be refused by a stopped
// switch.
const SwitchReport& Lab::Stop() {
  processes_.reset();
  return packet_switch_->Stop();
}

}  // namespace gossamer
