// What a peer wants the service to know: kept, and said with the next
// heartbeat, which goes out at once.

#include <bit>
#include <utility>

#include "runtime/membership/topology_client.h"

namespace gossamer {

void TopologyClient::AcknowledgeStop(uint64_t round) {
  if (acknowledged_stop_ == round) return;
  acknowledged_stop_ = round;
  SendSoon();
}

void TopologyClient::RequestStop() {
  if (stop_requested_) return;
  stop_requested_ = true;
  SendSoon();
}

void TopologyClient::RequestLeave() {
  if (leaving_) return;
  leaving_ = true;
  SendSoon();
}

void TopologyClient::SetReady() {
  ready_ = true;
  SendSoon();
}

void TopologyClient::Suspect(const std::vector<PeerId>& peers) {
  if (peers == suspected_) return;
  suspected_ = peers;
  SendSoon();
}

void TopologyClient::Report(const PeerReport& report) {
  const bool keep =
      report.sketch.empty() ||
      (!report_.sketch.empty() && std::countr_zero(report.sketch_round) <
                                      std::countr_zero(report_.sketch_round));
  std::vector<double> sketch = std::move(report_.sketch);
  const uint64_t sketch_round = report_.sketch_round;
  report_ = report;
  if (!keep) return;
  report_.sketch = std::move(sketch);
  report_.sketch_round = sketch_round;
}

void TopologyClient::TellMeasured(uint64_t number,
                                  std::optional<LinkMeasurement> measured) {
  measured_number_ = number;
  measured_ = measured;
  survey_.reset();
  SendSoon();
}

}  // namespace gossamer
