// A WAN on one machine: hosts with networks of their own, and the links between
// them, from start to end.
//
// Makes a place for processes and knows nothing of what they do.  It starts
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

// The running lab.
class Lab {
 public:
  // Starts a lab.  While it lives, the calling thread and the threads that it
  // starts are on a host of their own without distance to all others: they
  // reach the processes in the lab and nothing else.  The lab ends on the same
  // thread.  Returns kPermissionDenied or kFailedPrecondition with what the
  // machine lacks.
  static absl::StatusOr<std::unique_ptr<Lab>> Start(const Scenario& scenario);
  // Kills every process in the lab; nothing of the lab is left.  A caller that
  // started processes has waited for them.
  ~Lab();
  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;

  size_t hosts() const { return networks_.size() - 1; }
  std::string Address(size_t rank) const { return LabAddress(rank); }
  // The namespaces of a process on that host: setns() to both before exec().
  int Network(size_t rank) const { return networks_[rank].get(); }
  int Processes() const { return processes_->get(); }

  // Kills every process in the lab and returns the counts of all links.  The
  // last row and column are those of the calling thread's host.
  const SwitchReport& Stop();

 private:
  Lab() = default;
  absl::Status AddHost(const Scenario& scenario, size_t index,
                       const std::vector<std::vector<LinkSpec>>& links);

  // Members in the order of their making; they are destroyed in the reverse
  // order.
  std::optional<ProcessNamespace> processes_;
  std::vector<FileDescriptor> networks_;  // of the ranks, and the lab's own
  std::vector<FileDescriptor> devices_;
  std::unique_ptr<PacketSwitch> packet_switch_;
  std::optional<ScopedNetwork> here_;
};

// Returns the bytes that TCP of a host with these links may hand over in one
// piece: what the slowest link sends in a millisecond, so that bursts distort
// no link by more.  Returns the MTU (single packets) if that is too little, or
// if packets can be lost.
uint32_t BurstBytes(const std::vector<LinkSpec>& links, size_t self,
                    uint32_t mtu, uint64_t uplink = 0);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_LAB_LAB_H_
