#include "runtime/membership/topology_client.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/seeded_bug.h"
#include "algorithms/base/status_macros.h"
#include "topology/fleet/protocol.h"

namespace gossamer {
namespace {

constexpr absl::Duration kFirstRetry = absl::Milliseconds(100);
// The longest delay between two attempts, well below a lease.
constexpr absl::Duration kLastRetry = absl::Seconds(2);
constexpr absl::Duration kLongestWait = absl::Minutes(5);
// The overhead of a message within another: its field number and its length.
constexpr size_t kFieldBytes = 8;
constexpr absl::Duration kShortestInterval = absl::Milliseconds(10);
constexpr absl::Duration kLongestInterval = absl::Minutes(1);

// Returns whether the service has understood the call and refused it, so that
// asking again will not help.
bool IsFinal(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kUnimplemented:
      return true;
    default:
      return false;
  }
}

std::vector<Member> Members(
    const google::protobuf::RepeatedField<uint64_t>& ids,
    const google::protobuf::RepeatedPtrField<std::string>& addresses,
    int most) {
  std::vector<Member> members;
  // The answer may come from a faulty service, so its lists are cut and
  // checked.
  for (int i = 0; i < std::min({ids.size(), addresses.size(), most}); ++i) {
    if (ids[i] == 0 || addresses[i].size() > kMaxAddressBytes) continue;
    members.push_back({.id = {ids[i]}, .address = addresses[i]});
  }
  return members;
}

// Checks that no value of an answer is impossible; otherwise the whole answer
// is dropped.
absl::Status CheckAnswer(const wire::HeartbeatResponse& r) {
  const uint64_t round =
      std::max({r.fleet_round(), r.second_round(), r.stop_round()});
  const double busy = r.fleet_busy_seconds();
  if (round <= kMaxRound && std::isfinite(busy)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("it speaks of round ", round, " and ",
                                          busy, " s a round: no run has that"));
}

}  // namespace

TopologyClient::TopologyClient(TopologyClientOptions options, EventLoop* loop,
                               std::unique_ptr<TopologyCalls> calls)
    : options_(std::move(options)), loop_(loop), calls_(std::move(calls)) {}

TopologyClient::~TopologyClient() {
  on_finished_ = nullptr;
  End();
}

void TopologyClient::Start() {
  if (phase_ != Phase::kIdle) return;
  phase_ = Phase::kRegistering;
  started_ = loop_->Now();
  Send();
}

std::shared_ptr<const View> TopologyClient::last_view() const {
  const bool unanswered = phase_ == Phase::kRegistering && expected_ == 0 &&
                          received_->view.epoch == 0;
  const std::shared_ptr<const ReceivedView>& last = options_.last_view;
  if (!unanswered || last == nullptr || options_.checkpoint_rounds.empty() ||
      loop_->Now() < started_ + options_.answer_timeout) {
    return nullptr;
  }
  return {last, &last->view};
}

void TopologyClient::ResumeFromLastView() {
  if (last_view() == nullptr) return;
  auto received = std::make_shared<ReceivedView>(*options_.last_view);
  received->view.resume_round = options_.checkpoint_rounds.back();
  received_ = resumed_view_ = std::move(received);
  trained_ = true;
  options_.checkpoint_rounds.clear();
  observers_.Notify();
}

void TopologyClient::Rejoin(bool trained) {
  if (phase_ != Phase::kRegistered || !outside_) return;
  outside_ = false;
  ++rejoined_;
  trained_ = trained_ || trained;
  if (trained_) options_.checkpoint_rounds.clear();
  received_ = std::make_shared<const ReceivedView>();
  suspected_.clear();
  heard_.clear();
  report_.sketch.clear();
  begun_ = acknowledged_stop_ = 0;
  adopted_ = false;
  donors_.clear();
  joiners_.clear();
  ready_ = false;
  phase_ = Phase::kRegistering;
  SendAt(loop_->Now() + wait_);
}

bool TopologyClient::RenewIncarnation() {
  if (phase_ != Phase::kRegistered) return false;
  outside_ = true;
  wait_ = absl::ZeroDuration();
  trained_ = false;
  options_.checkpoint_rounds.clear();
  Rejoin(/*trained=*/false);
  return true;
}

// Returns an id that differs between any two incarnations, also of one process.
uint64_t TopologyClient::IncarnationId() const {
  if (rejoined_ == 0 || SeededBug("same-life")) return options_.incarnation_id;
  return RngKey(options_.incarnation_id).Fold("life").Bits(rejoined_) | 1;
}

void TopologyClient::Finish(absl::Duration limit, EventLoop::Callback done) {
  if (finished_) return;
  // The status is set before the timer: End() runs `done` in every case, once.
  finished_ = true;
  on_finished_ = std::move(done);
  // A peer that is not registered has nothing to report.  `done` still comes
  // later, on the loop.
  if (phase_ != Phase::kRegistered) {
    loop_->Post([weak = std::weak_ptr<bool>(alive_), this] {
      if (weak.lock()) End();
    });
    return;
  }
  finish_timer_ = loop_->RunAt(loop_->Now() + limit, [this] {
    finish_timer_ = {};
    End();
  });
  SendSoon();
}

// Ends all traffic and completes Finish().
void TopologyClient::End() {
  phase_ = Phase::kEnded;
  for (EventLoop::TimerId* timer : {&timer_, &finish_timer_}) {
    if (*timer != EventLoop::TimerId{}) loop_->Cancel(*timer);
    *timer = {};
  }
  if (on_finished_) std::exchange(on_finished_, nullptr)();
}

void TopologyClient::Send() {
  // One call is under way at a time: answers cannot overtake each other, and a
  // change meanwhile goes out with the next one.
  if (in_flight_) {
    send_again_ = true;
    return;
  }
  if (phase_ == Phase::kRegistering) SendRegister();
  if (phase_ == Phase::kRegistered) SendHeartbeat();
}

void TopologyClient::SendAt(absl::Time when) {
  if (timer_ != EventLoop::TimerId{}) loop_->Cancel(timer_);
  timer_ = loop_->RunAt(when, [this] {
    timer_ = {};
    Send();
  });
}

void TopologyClient::SendSoon() {
  if (phase_ == Phase::kRegistered) SendAt(loop_->Now());
}

void TopologyClient::SendRegister() {
  wire::RegisterRequest request;
  request.set_protocol_version(kControlVersions.newest);
  request.set_oldest_protocol_version(kControlVersions.oldest);
  request.set_run_id(options_.run_id);
  request.set_peer_id(options_.peer_id.value);
  request.set_incarnation_id(IncarnationId());
  request.set_address(options_.address);
  request.set_device(options_.device);
  request.set_has_parameters(trained_);
  // A service with an old disk learns from these that a run is under way.
  request.set_trains(view().epoch != 0);
  request.set_layout_fingerprint(options_.layout_fingerprint);
  if (options_.layout.size() <= kMaxLayoutBytes) {
    request.set_layout(options_.layout);
  }
  request.set_initial_parameters_hash(options_.initial_parameters_hash);
  request.set_configuration_hash(options_.configuration_hash);
  if (options_.configuration.size() <= kMaxConfigurationBytes) {
    request.set_configuration(options_.configuration);
  }
  for (uint64_t round : options_.checkpoint_rounds) {
    request.add_checkpoint_rounds(round);
  }
  // The view goes along only if the request stays within the service's limit.
  const auto fits = [&] {
    return request.ByteSizeLong() + received_->message.ByteSizeLong() +
               kFieldBytes <=
           static_cast<size_t>(options_.max_request_bytes);
  };
  if (view().epoch != 0) {
    // The texts are for messages.
    if (!fits()) {
      request.clear_configuration();
      request.clear_layout();
    }
    if (fits()) *request.mutable_view() = received_->message;
  }
  in_flight_ = true;
  calls_->Register(std::move(request),
                   [this](const absl::Status& status,
                          const wire::RegisterResponse& response) {
                     OnRegistered(status, response);
                   });
}

void TopologyClient::OnRegistered(const absl::Status& status,
                                  const wire::RegisterResponse& response) {
  in_flight_ = false;
  // The client may have ended meanwhile.
  if (phase_ != Phase::kRegistering) return;
  if (!status.ok()) {
    IsFinal(status) ? Refused(status) : Retry(status);
    return;
  }
  // Both sides have named their versions; the service has chosen one.
  const uint32_t version = response.protocol_version();
  if (version != 0 && !kControlVersions.Contains(version)) {
    Refused(absl::FailedPreconditionError(
        absl::StrCat("the topology service would speak control protocol ",
                     version, ", this peer speaks ", kControlVersions.Text())));
    return;
  }
  SetReachable(absl::OkStatus());
  options_.peer_id = {response.peer_id()};
  registered_ = response.registered();
  expected_ = response.expected();
  registered_generation_ = response.service_generation();
  // The interval is bounded, whatever the answer says: a peer that called
  // without pause, or never, would be of no use.
  heartbeat_ = std::clamp(absl::Seconds(response.heartbeat_seconds()),
                          kShortestInterval, kLongestInterval);
  phase_ = Phase::kRegistered;
  SendAt(loop_->Now());
  observers_.Notify();
}

void TopologyClient::SendHeartbeat() {
  wire::HeartbeatRequest request = MakeHeartbeat();
  // A sketch is sent once: the service compares sketches of the same round.
  report_.sketch.clear();
  in_flight_ = true;
  calls_->Heartbeat(
      std::move(request),
      [this, finished = finished_](const absl::Status& status,
                                   const wire::HeartbeatResponse& response) {
        OnHeartbeat(status, response, finished);
      });
}

void TopologyClient::OnHeartbeat(const absl::Status& status,
                                 const wire::HeartbeatResponse& response,
                                 bool finished) {
  in_flight_ = false;
  // The peer has asked to register anew while this heartbeat was under way; its
  // answer is of the earlier incarnation.
  if (phase_ == Phase::kRegistering && std::exchange(send_again_, false)) {
    Send();
  }
  if (phase_ != Phase::kRegistered) return;
  if (status.code() == absl::StatusCode::kNotFound) {
    // The service has lost the registration: its disk is an old one.  A peer
    // that trains goes on as the same incarnation.  A peer that still loads its
    // checkpoint for a view has no other parameters, so it starts over as at
    // its first registration.
    if (adopted_) {
      trained_ = true;
      options_.checkpoint_rounds.clear();
    } else {
      received_ = std::make_shared<const ReceivedView>();
    }
    outside_ = false;  // the next answer sets it again if it still holds
    phase_ = Phase::kRegistering;
    Retry(status);
    return;
  }
  if (!status.ok()) {
    IsFinal(status) ? Refused(status) : Retry(status);
    return;
  }
  // The service knows that this peer has finished: nothing else is worth a
  // heartbeat.
  if (finished) {
    End();
    return;
  }
  // An answer that cannot be is treated as none: the last view stays.
  const absl::Status sound = CheckAnswer(response);
  if (!sound.ok()) return Retry(sound);
  SetReachable(absl::OkStatus());
  Learn(response);
  if (phase_ != Phase::kRegistered) return;
  const bool again = std::exchange(send_again_, false);
  // A timer that is set already fires earlier: a callback called SendSoon().
  if (timer_ == EventLoop::TimerId{}) {
    SendAt(loop_->Now() + (again ? absl::ZeroDuration() : Interval()));
  }
}

void TopologyClient::Learn(const wire::HeartbeatResponse& response) {
  registered_ = response.registered();
  expected_ = response.expected();
  // 0 stands for a value that the service does not know; the last one stays
  // then.
  if (response.fleet_round() > 0) fleet_round_ = response.fleet_round();
  if (response.second_round() > 0) second_round_ = response.second_round();
  if (response.fleet_busy_seconds() > 0) {
    fleet_busy_ = response.fleet_busy_seconds();
  }
  stop_ = {.round = response.stop_round(),
           .committed = response.stop_committed()};
  // Donors and joiners are hints of the moment, so each answer replaces them.
  donors_ = Members(response.donor_id(), response.donor_address(), kMaxDonors);
  joiners_ =
      Members(response.joiner_id(), response.joiner_address(), kMaxJoiners);
  // A task that was answered already may be in the answer still.
  survey_.reset();
  if (response.survey_number() != measured_number_ &&
      response.survey_peer() != 0 &&
      response.survey_address().size() <= kMaxAddressBytes) {
    survey_ = {.number = response.survey_number(),
               .to = {.id = {response.survey_peer()},
                      .address = response.survey_address()}};
  }
  first_named_ = response.first_named();
  heard_.clear();
  for (const PeerId peer : suspected_) {
    const auto& heard = response.heard();
    if (std::ranges::find(heard, peer.value) != heard.end()) {
      heard_.push_back(peer);
    }
  }
  outside_ = response.outside();
  if (outside_) {
    wait_ = std::clamp(absl::Seconds(response.wait_seconds()),
                       absl::ZeroDuration(), kLongestWait);
  }
  if (response.has_view() || response.has_view_change()) {
    const absl::Status taken = TakeView(response);
    // The same change would be refused again.
    takes_changes_ = taken.ok();
    // A refused view changes nothing: the last one stays, as without a service.
    if (!taken.ok() && on_view_refused_) on_view_refused_(taken);
  }
  observers_.Notify();
}

absl::Status TopologyClient::TakeView(const wire::HeartbeatResponse& answer) {
  GOSSAMER_ASSIGN_OR_RETURN(std::shared_ptr<const ReceivedView> received,
                            options_.read_view(answer, *received_));
  if (options_.check_view) {
    GOSSAMER_RETURN_IF_ERROR(options_.check_view(received->message));
  }
  const View& view = received->view;
  // An answer that was delayed, or comes from a service with an old disk, must
  // not bring an earlier view back.
  if (view.run_id == options_.run_id && view.NewerThan(received_->view) &&
      (view.RankOf(options_.peer_id) || view.DepartureOf(options_.peer_id))) {
    const View& before = received_->view;
    if (before.epoch == 0 || before.overlap_steps != view.overlap_steps) {
      eager_until_ = view.from_round + kEagerRounds;
    }
    received_ = std::move(received);
  }
  return absl::OkStatus();
}

absl::Duration TopologyClient::Interval() const {
  // Of rounds that are longer than a heartbeat few pass until all have heard.
  const double rounds =
      report_.rounds_per_second * absl::ToDoubleSeconds(heartbeat_);
  const bool chooses = options_.auto_overlap && begun_ < eager_until_ &&
                       (rounds == 0 || rounds > 1);
  // Each of these waits for the next answer: a view, an eviction, a departure,
  // the agreement on the end, a choice of the overlap.
  const bool eager = view().epoch == 0 || !suspected_.empty() || leaving_ ||
                     (stop_.round != 0 && !stop_.committed) || chooses;
  return eager ? std::min(heartbeat_, kEagerInterval) : heartbeat_;
}

// Retries with exponential backoff, and with jitter so that the peers of a
// fleet do not all return at once.
void TopologyClient::Retry(const absl::Status& why) {
  SetReachable(why);
  heard_.clear();
  const absl::Duration full = std::min(
      kLastRetry, kFirstRetry * (1 << std::min<uint64_t>(failures_, 6)));
  const double jitter =
      RngKey(options_.incarnation_id).Fold("retry").Uniform(failures_++);
  send_again_ = false;
  SendAt(loop_->Now() + full * (0.5 + 0.5 * jitter));
  if (last_view() != nullptr) observers_.Notify();
}

void TopologyClient::SetReachable(const absl::Status& status) {
  if (status.ok()) failures_ = 0;
  // The owner hears of changes only, not of every attempt.
  if (reachable_ == status.ok()) return;
  reachable_ = status.ok();
  // The fleet goes on meanwhile.  A peer that lags must not be held to the
  // round of the service's last answer.
  if (!reachable_) fleet_round_ = second_round_ = std::nullopt;
  if (!on_service_) return;
  if (status.ok()) {
    on_service_(status);
    return;
  }
  on_service_(absl::Status(
      status.code(),
      absl::StrCat("no answer from the topology service at ", options_.service,
                   " (", status.message(), "); ",
                   view().epoch == 0 ? "waiting for it"
                                     : "going on with the last view")));
}

// Ends the client after a final refusal.  A peer that is no longer wanted does
// not train on alone: it stops at its next round, without asking any other.
void TopologyClient::Refused(const absl::Status& why) {
  // A refusal of a peer that has trained to the end is no loss: the run is
  // over, or another has begun.
  const bool over = finished_;
  End();
  if (over) return;
  refused_ = why;
  // The round that has begun is completed: neighbours count on it.
  if (view().epoch != 0) stop_ = {.round = begun_ + 1, .committed = true};
  if (on_refused_) on_refused_(why);
  observers_.Notify();
}

}  // namespace gossamer
