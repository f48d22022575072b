// The reports and requests of a peer for the service.  They are kept and go out
// with the next heartbeat, which most of them cause at once.

#include <bit>
#include <utility>

#include "runtime/membership/topology_client.h"
#include "topology/fleet/losses_message.h"
#include "topology/fleet/overlap_chooser.h"
#include "topology/fleet/protocol.h"

namespace gossamer {
namespace {

std::string ToBytes(const std::vector<double>& sketch) {
  static_assert(std::endian::native == std::endian::little);
  return {reinterpret_cast<const char*>(sketch.data()),
          sketch.size() * sizeof(double)};
}

}  // namespace

// Sends a heartbeat at once when a view is adopted: joining and leaving peers
// wait until all members train by the newest view.
void TopologyClient::BeginRound(uint64_t round) {
  const bool adopts = begun_ < view().from_round && round >= view().from_round;
  begun_ = round;
  if (adopts) SendSoon();
}

void TopologyClient::AcknowledgeStop(uint64_t round) {
  // The round loop calls this at every boundary before the stop.
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
  // The list comes with every tick; only news are worth a heartbeat of their
  // own.
  if (peers == suspected_) return;
  suspected_ = peers;
  // The service's last answer was about the suspicions before.
  heard_.clear();
  SendSoon();
}

void TopologyClient::Report(const PeerReport& report) {
  // The fleet waits in every round until the service has what it chooses by.
  if (options_.auto_overlap && report.timing.rounds == kExchangesToChoose &&
      report_.timing.rounds != kExchangesToChoose) {
    SendSoon();
  }
  const bool keep =
      report.sketch.empty() ||
      (!report_.sketch.empty() && std::countr_zero(report.sketch_round) <
                                      std::countr_zero(report_.sketch_round));
  // A round with more trailing zero bits is a multiple of a larger power of
  // two, and more peers sketch it.
  std::vector<double> sketch = std::move(report_.sketch);
  const uint64_t sketch_round = report_.sketch_round;
  report_ = report;
  if (!keep) return;
  report_.sketch = std::move(sketch);
  report_.sketch_round = sketch_round;
}

void TopologyClient::ReportMeasured(uint64_t number,
                                    std::optional<LinkMeasurement> measured) {
  // The number answers a task once: an answer of the service that still has it
  // begins nothing.
  measured_number_ = number;
  measured_ = measured;
  survey_.reset();
  SendSoon();
}

wire::HeartbeatRequest TopologyClient::MakeHeartbeat() const {
  wire::HeartbeatRequest request;
  request.set_run_id(options_.run_id);
  request.set_peer_id(options_.peer_id.value);
  request.set_incarnation_id(IncarnationId());
  request.set_registered_generation(registered_generation_);
  request.set_takes_view_changes(takes_changes_);
  request.set_view_generation(view().generation);
  request.set_view_epoch(view().epoch);
  request.set_round(report_.round);
  request.set_steps(report_.steps);
  request.set_rounds_per_second(report_.rounds_per_second);
  request.set_busy_seconds(report_.timing.busy_seconds);
  request.set_exchange_seconds(report_.timing.exchange_seconds);
  request.set_tempo_rounds(report_.timing.rounds);
  request.set_spoilt(report_.spoilt);
  if (options_.events != nullptr) {
    options_.events->CopyTo(*request.mutable_events());
  }
  AddLosses(report_.losses, request);
  if (report_.score) request.set_score(*report_.score);
  request.set_bytes_sent(report_.bytes_sent);
  request.set_sketch(ToBytes(report_.sketch));
  request.set_sketch_round(report_.sketch_round);
  request.set_round_begun(begun_);
  request.set_acknowledged_stop(acknowledged_stop_);
  request.set_request_stop(stop_requested_);
  request.set_finished(finished_);
  for (const PeerId peer : suspected_) {
    // The service refuses a longer list.  The first ones are as good as any:
    // the next heartbeat has the others, once these are evicted.
    if (request.suspected_size() < kMaxSuspected) {
      request.add_suspected(peer.value);
    }
  }
  request.set_leaving(leaving_);
  request.set_ready(ready_);
  request.set_survey_number(measured_number_);
  if (measured_) {
    request.set_survey_measured(true);
    request.set_survey_rtt_seconds(measured_->rtt_seconds);
    request.set_survey_bytes_per_second(measured_->bytes_per_second);
  }
  return request;
}

}  // namespace gossamer
