// A peer's membership as the topology service reports it.
//
// The client registers, then sends heartbeats until it ends; everything happens
// on the loop.  The service may go away at any time: the last view stays valid,
// and the client retries, ever more slowly.  This header knows nothing of the
// contents of rounds, of the peer's neighbours, or of how its calls travel.

#ifndef GOSSAMER_RUNTIME_MEMBERSHIP_TOPOLOGY_CLIENT_H_
#define GOSSAMER_RUNTIME_MEMBERSHIP_TOPOLOGY_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "proto/topology.pb.h"
#include "runtime/base/event_loop.h"
#include "runtime/membership/received_view.h"
#include "topology/fleet/change_observers.h"
#include "topology/fleet/membership.h"
#include "topology/fleet/protocol.h"

namespace gossamer {

// The calls of a client to the service, one at a time.  Destroying it drops the
// call in flight.
class TopologyCalls {
 public:
  template <typename Response>
  using Done = std::function<void(const absl::Status&, const Response&)>;

  virtual ~TopologyCalls() = default;
  // `done` runs on the client's loop, never inline, at the latest after a
  // deadline of the calls' own.
  virtual void Register(wire::RegisterRequest request,
                        Done<wire::RegisterResponse> done) = 0;
  virtual void Heartbeat(wire::HeartbeatRequest request,
                         Done<wire::HeartbeatResponse> done) = 0;
};

struct TopologyClientOptions {
  std::string service;  // host:port, for messages
  std::string run_id;
  PeerId peer_id;  // 0: the service assigns one
  // A number above 0 that differs between any two incarnations of a peer.
  uint64_t incarnation_id = 0;
  std::string address;      // host:port that neighbours dial
  std::string device = {};  // Member::device
  uint64_t layout_fingerprint = 0;
  std::string layout = {};               // ParameterLayout::Text()
  uint64_t initial_parameters_hash = 0;  // as Registration's
  uint64_t configuration_hash = 0;
  std::string configuration = {};  // Registration::configuration
  bool auto_overlap = false;       // it takes the overlap that views state
  std::vector<uint64_t> checkpoint_rounds;
  int max_request_bytes = kRequestBytes;  // MaxRequestBytes of the run
  // The view that the process before this one received last, to resume from if
  // the service does not answer; null: none.  Of no use without checkpoint
  // rounds.
  std::shared_ptr<const ReceivedView> last_view = nullptr;
  // The time without any answer after which that may be.  Another instance of
  // the service takes over sooner.
  absl::Duration answer_timeout = absl::Seconds(10);
  // The counts of this process's events that heartbeats report; outlives the
  // client.  Null: none.
  const EventTally* events = nullptr;
  // Returns OK for a view that may be adopted; empty: every view may.
  std::function<absl::Status(const wire::ViewMessage&)> check_view = nullptr;
  ViewReader read_view = ReadView;
};

// Used on the loop only, the destructor included.
class TopologyClient final : public Membership {
 public:
  // `loop` outlives the client.
  TopologyClient(TopologyClientOptions options, EventLoop* loop,
                 std::unique_ptr<TopologyCalls> calls);
  ~TopologyClient() override;

  // Begins to register.
  void Start();
  // 0 until the client is registered.
  PeerId peer_id() const { return options_.peer_id; }
  // Peers that have registered, and peers that the first view waits for; 0: not
  // known yet.
  uint32_t registered() const { return registered_; }
  uint32_t expected() const { return expected_; }

  // Called once if the service refuses this peer for good.  No heartbeat
  // follows, and the peer must stop at its next round.  The status says what to
  // do.
  void SetOnRefused(std::function<void(const absl::Status&)> on_refused) {
    on_refused_ = std::move(on_refused);
  }
  // Called once per change: with the error when the service goes away, with OK
  // when it is back.
  void SetOnService(std::function<void(const absl::Status&)> on_service) {
    on_service_ = std::move(on_service);
  }

  // Returns whether the last call was answered; true before the first.
  bool reachable() const { return reachable_; }

  // Called for every view that was refused; the last one stays.
  void SetOnViewRefused(std::function<void(const absl::Status&)> on_refused) {
    on_view_refused_ = std::move(on_refused);
  }

  // Reports to the service that this peer has trained to the end.  `done` runs
  // once the service knows, or after `limit`.  No heartbeat follows.
  void Finish(absl::Duration limit, EventLoop::Callback done);

  const View& view() const override { return received_->view; }
  std::shared_ptr<const View> SharedView() const override {
    return {received_, &received_->view};
  }
  // The same with its message, from which a later process may resume.
  const std::shared_ptr<const ReceivedView>& received() const {
    return received_;
  }
  std::optional<uint64_t> fleet_round() const override { return fleet_round_; }
  std::optional<uint64_t> second_round() const override {
    return second_round_;
  }
  std::optional<double> fleet_busy() const override { return fleet_busy_; }
  StopState stop() const override { return stop_; }
  uint64_t acknowledged_stop() const { return acknowledged_stop_; }
  absl::Status refused() const override { return refused_; }
  bool outside() const override { return outside_; }
  void Rejoin(bool trained) override;
  bool RenewIncarnation() override;
  std::shared_ptr<const View> last_view() const override;
  void ResumeFromLastView() override;
  bool resumed_from_last_view() const override {
    return resumed_view_ == received_;
  }
  void RequestLeave() override;
  bool first_named() const override { return first_named_; }
  std::vector<Member> donors() const override { return donors_; }
  void SetReady() override;
  std::vector<Member> joiners() const override { return joiners_; }
  void Suspect(const std::vector<PeerId>& peers) override;
  std::vector<PeerId> heard_by_service() const override { return heard_; }
  std::optional<SurveyTask> survey() const override { return survey_; }
  void ReportMeasured(uint64_t number,
                      std::optional<LinkMeasurement> measured) override;
  void ViewAdopted() override { adopted_ = view().epoch != 0; }
  bool adopted() const { return adopted_; }
  void BeginRound(uint64_t round) override;
  void AcknowledgeStop(uint64_t round) override;
  void RequestStop() override;
  // Of the sketches reported between two heartbeats, the one is sent whose
  // round has the most trailing zero bits.  Peers whose heartbeats fall at
  // different moments then still send sketches of common rounds.
  void Report(const PeerReport& report) override;
  void Observe(const void* owner, std::function<void()> on_change) override {
    observers_.Set(owner, std::move(on_change));
  }
  void RemoveObserver(const void* owner) override { observers_.Remove(owner); }

 private:
  enum class Phase { kIdle, kRegistering, kRegistered, kEnded };

  void SendRegister();
  void SendHeartbeat();
  void OnRegistered(const absl::Status& status,
                    const wire::RegisterResponse& response);
  void OnHeartbeat(const absl::Status& status,
                   const wire::HeartbeatResponse& response, bool finished);
  void Learn(const wire::HeartbeatResponse& response);
  // Goes on by the view if it is newer and has this peer; returns why it cannot
  // be believed.
  absl::Status TakeView(const wire::HeartbeatResponse& answer);
  wire::HeartbeatRequest MakeHeartbeat() const;
  void Send();
  void SendAt(absl::Time when);
  void SendSoon();
  void Retry(const absl::Status& why);
  void Refused(const absl::Status& why);
  void SetReachable(const absl::Status& status);
  void End();
  absl::Duration Interval() const;
  uint64_t IncarnationId() const;

  TopologyClientOptions options_;
  uint64_t rejoined_ = 0;  // incarnations after the first one
  bool trained_ = false;
  bool adopted_ = false;  // the peer trains by the view, or did by one before
  // The service's generation when this peer registered.
  uint64_t registered_generation_ = 0;
  EventLoop* const loop_;
  const std::unique_ptr<TopologyCalls> calls_;
  // Callbacks on the loop hold it weakly.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  ChangeObservers observers_;
  std::function<void(const absl::Status&)> on_refused_;
  absl::Status refused_;
  std::function<void(const absl::Status&)> on_service_;
  std::function<void(const absl::Status&)> on_view_refused_;
  EventLoop::Callback on_finished_;

  Phase phase_ = Phase::kIdle;
  absl::Time started_;
  bool in_flight_ = false;
  bool send_again_ = false;  // something changed while a call was in flight
  EventLoop::TimerId timer_{};
  EventLoop::TimerId finish_timer_{};
  uint64_t failures_ = 0;  // in a row
  bool reachable_ = true;
  absl::Duration heartbeat_ = absl::Seconds(1);

  std::shared_ptr<const ReceivedView> received_ =
      std::make_shared<const ReceivedView>();
  bool takes_changes_ = true;  // else views come whole
  std::shared_ptr<const ReceivedView> resumed_view_;
  std::optional<uint64_t> fleet_round_, second_round_;
  std::optional<double> fleet_busy_;
  StopState stop_;
  uint32_t registered_ = 0;
  uint32_t expected_ = 0;
  PeerReport report_;  // its sketch is the best since the last heartbeat
  uint64_t begun_ = 0;
  uint64_t eager_until_ = 0;  // a round, of protocol.h's kEagerRounds
  uint64_t acknowledged_stop_ = 0;
  bool stop_requested_ = false;
  bool leaving_ = false;
  bool outside_ = false;
  absl::Duration wait_;  // the time until it may register again
  std::vector<PeerId> suspected_;
  std::vector<PeerId> heard_;  // of them, by the service
  std::vector<Member> donors_, joiners_;
  bool first_named_ = false;
  std::optional<SurveyTask> survey_;
  uint64_t measured_number_ = 0;
  std::optional<LinkMeasurement> measured_;
  bool ready_ = false;
  bool finished_ = false;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_MEMBERSHIP_TOPOLOGY_CLIENT_H_
