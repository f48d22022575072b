// A WAN on one machine: hosts with networks of their own, and the links between
// them, from start to end.
//
// Knows how to make a place for processes; nothing of what they do, and starts
// none but the keeper of its process namespace.

#ifndef GOSSAMER_RUNTIME_LAB_LAB_H_
#define GOSSAMER_RUNTIME_LAB_LAB_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/lab/namespaces.h"
#include "runtime/lab/packet_switch.h"
#include "runtime/lab/scenario.h"

namespace gossamer {

class Lab {
 public:
  // While it lives, the calling thread and those it starts are on a host of
  // their own, one without distance to all others, so that they reach the
  // processes in the lab and nothing else.  Ends on the same thread.
  //
  // kPermissionDenied, kFailedPrecondition: what the machine lacks.
  static absl::StatusOr<std::unique_ptr<Lab>> Start(const Scenario& scenario);
  // Kills every process in the lab; then nothing of it is left.  The caller
  // that started some has waited for them.
  ~Lab();
  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;

  size_t hosts() const { return networks_.size() - 1; }
  std::string Address(size_t rank) const { return LabAddress(rank); }
  // To start a process there: setns() to both before exec().
  int Network(size_t rank) const { return networks_[rank].get(); }
  int Processes() const { return processes_->get(); }

  // Kills every process in the lab, then tells what went over the links; with
  // one more row and column, of the calling thread's host.
  const SwitchReport& Stop();

 private:
  Lab() = default;
  absl::Status AddHost(const Scenario& scenario, size_t index,
                       const std::vector<std::vector<LinkSpec>>& links);

  // In the order of making; destroyed in the other one.
  std::optional<ProcessNamespace> processes_;
  std::vector<FileDescriptor> networks_;  // of the ranks, and ours
  std::vector<FileDescriptor> devices_;
  std::unique_ptr<PacketSwitch> packet_switch_;
  std::optional<ScopedNetwork> here_;
};

// How much TCP of a host with these links may hand over in one piece: what the
// slowest of them sends in a millisecond, so that bursts distort no link by
// more; the MTU (single packets) if that is little or if packets can be lost.
uint32_t BurstBytes(const std::vector<LinkSpec>& links, size_t self,
                    uint32_t mtu);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_LAB_LAB_H_
