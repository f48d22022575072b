#include "tests/algorithms/edge/edge_fleet.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/base/parameter_layout.h"
#include "tests/algorithms/edge/edge_fleet_peer.h"
#include "tests/algorithms/edge/edge_link.h"
#include "tests/algorithms/edge/edge_pair.h"

namespace gossamer {
namespace {

// A clean round at h = 1: two ticks of computing, one of latency.
constexpr int64_t kComputeTicks = 2;
constexpr int64_t kRoundTicks = 3;
constexpr int64_t kDeadlineTicks = 4;

ParameterLayout SmallLayout() {
  std::vector<Segment> segments(1);
  segments[0].name = "bias";
  segments[0].shape = {64};
  return ParameterLayout(std::move(segments));
}

// The fleet under way: its links, its peers and the clock, in ticks.  Its
// rounds follow runtime/peer as far as an edge sees them.
class Fleet {
 public:
  explicit Fleet(const FleetOptions& options);
  FleetReport Run();

 private:
  void MakeEdge(int a, int b);
  void Connect();
  void Faults();
  void Heal();
  void TickLinks();
  void TickPeer(int i);
  void BeginRound(int i);
  uint64_t NextRound(const FleetPeer& p) const;
  std::vector<int> Row(int i, uint64_t round) const;
  ExchangeId Limit(uint64_t round) const;
  int64_t Deadline() const {
    return o_.deadlines ? now_ + kDeadlineTicks
                        : std::numeric_limits<int64_t>::max();
  }
  float Coefficient() const;
  void LocalStep(int i);
  void Wait(int i);
  void Complete(FleetPeer& p, ExchangeId limit);
  void Finish(FleetPeer& p);
  void SendAll(FleetPeer& p);
  bool Settled() const;
  double Consensus() const;
  std::vector<double> Mean() const;
  std::string Failure() const;

  const FleetOptions o_;
  const RngKey key_;
  const ParameterLayout layout_;
  const std::shared_ptr<const Codec> codec_;
  Draws draws_;
  const uint64_t first_round_;
  const uint64_t calm_round_;
  const uint64_t last_round_;  // the first round that is not run
  std::vector<FleetPeer> peers_;
  std::vector<std::unique_ptr<EdgeLink>> links_;
  int64_t now_ = 0;
  uint64_t scheduled_ = 0;  // exchange ends
};

Fleet::Fleet(const FleetOptions& options)
    : o_(options),
      key_(RngKey(options.seed).Fold("edge fleet")),
      layout_(options.quantized ? PairLayout() : SmallLayout()),
      codec_(Codec::Create(options.codec, layout_).value()),
      draws_(key_.Fold("faults")),
      // The first round lies anywhere between two resyncs of an edge, which are
      // 65,536 rounds apart, so that some runs meet one.
      first_round_(1 + key_.Fold("first round").Below(200'000, 0)),
      calm_round_(first_round_ + options.rounds),
      last_round_(calm_round_ + options.calm_rounds),
      peers_(static_cast<size_t>(options.peers)) {
  for (int i = 0; i < o_.peers; ++i) {
    FleetPeer& p = peers_[i];
    p.compute_ticks = kComputeTicks;
    p.x.resize(layout_.size());
    p.stepped.resize(layout_.size());
    key_.Fold("start").Fold(i).FillGaussian(p.x);
    p.round = first_round_;
  }
  if (o_.slow_peer) peers_[0].compute_ticks *= 6;
  for (int a = 0; a < o_.peers; ++a) {
    const std::vector<int> row = Row(a, 0);
    for (int b = a + 1; b < o_.peers; ++b) {
      const bool neighbours = std::ranges::count(row, b) > 0;
      if (o_.permuted || neighbours) MakeEdge(a, b);
    }
  }
}

void Fleet::MakeEdge(int a, int b) {
  std::array<Edge*, 2> ends;
  for (const auto& [e, self, other] : {std::tuple{0, a, b}, {1, b, a}}) {
    EdgeOptions options;
    options.self = {static_cast<uint64_t>(self) + 1};
    options.other = {static_cast<uint64_t>(other) + 1};
    options.run_id = "fleet";
    options.epoch = MakeEpoch(1'700'000'000, key_.Fold("epoch").Bits(self));
    options.frontier = MakeExchangeId(first_round_);
    options.window = std::max(1, o_.overlap);
    options.layout = layout_.fingerprint();
    PeerEdge& pe = peers_[self].edges[other];
    pe.edge = std::make_unique<Edge>(options, codec_, peers_[self].x,
                                     peers_[self].cache);
    pe.end = e;
    ends[e] = pe.edge.get();
  }
  links_.push_back(std::make_unique<EdgeLink>(
      ends, *codec_, layout_.size(), key_.Fold("link").Fold(a).Fold(b),
      o_.faults.repeat, o_.faults.swap));
  peers_[a].edges[b].link = peers_[b].edges[a].link = links_.back().get();
}

std::vector<int> Fleet::Row(int i, uint64_t round) const {
  const int m = o_.peers;
  std::vector<int> order = key_.Fold("ring").Fold(round).Permutation(m);
  if (!o_.permuted) std::ranges::sort(order);
  const auto at = std::ranges::find(order, i) - order.begin();
  std::vector<int> row = {order[(at + 1) % m], order[(at + m - 1) % m]};
  std::ranges::sort(row);
  return row;
}

// Returns the first id that is not due at the end of `round` (PROTOCOL.md 9).
ExchangeId Fleet::Limit(uint64_t round) const {
  return MakeExchangeId(round + 2 - std::max(1, o_.overlap));
}

// Returns γ·w with w = 1/3. γ keeps mixing stable that is late by h − 1 rounds:
// two thirds of 2·sin(π/(2(2h − 1))) / λmax(I − W), where λmax is 4/3
// (PROTOCOL.md 9).
float Fleet::Coefficient() const {
  const float gamma = codec_->gamma();
  return (o_.overlap < 2 ? gamma : std::min(gamma, 0.5f)) / 3;
}

void Fleet::SendAll(FleetPeer& p) {
  for (auto& [other, pe] : p.edges) {
    pe.edge->Flush();
    pe.link->Collect(pe.end, now_);
  }
}

// A peer far behind takes the round of its neighbours (PROTOCOL.md 11).
uint64_t Fleet::NextRound(const FleetPeer& p) const {
  std::vector<uint64_t> known;
  for (const auto& [other, pe] : p.edges) {
    known.push_back(RoundOf(pe.edge->received()));
  }
  std::ranges::sort(known);
  const size_t which = o_.permuted ? known.size() - 2 : known.size() / 2;
  const uint64_t ahead = known[which];
  const uint64_t behind = static_cast<uint64_t>(o_.overlap) + 2;
  return ahead > p.round + behind ? ahead : p.round;
}

void Fleet::BeginRound(int i) {
  FleetPeer& p = peers_[i];
  p.round = NextRound(p);
  if (p.round >= last_round_) {
    p.finished = true;
    return Finish(p);
  }
  const ExchangeId id = MakeExchangeId(p.round);
  const std::vector<int> row = Row(i, p.round);
  for (auto& [other, pe] : p.edges) {
    if (std::ranges::count(row, other) == 0) {
      pe.edge->SkipTo(id + 1);
      continue;
    }
    pe.edge->Emit(id, Coefficient(), true);
    pe.wanted.push_back(id);
    ++scheduled_;
  }
  SendAll(p);
  p.phase = o_.overlap == 0 ? RoundPhase::kWait : RoundPhase::kCompute;
  p.until = o_.overlap == 0 ? Deadline() : now_ + p.compute_ticks;
}

void Fleet::LocalStep(int i) {
  FleetPeer& p = peers_[i];
  if (o_.noise == 0) return;
  const RngKey key = key_.Fold("step").Fold(i).Fold(p.round);
  for (size_t k = 0; k < p.x.size(); ++k) {
    const double before = p.x[k];
    p.x[k] += static_cast<float>(o_.noise * key.Gaussian(k));
    p.stepped[k] += p.x[k] - before;
  }
}

void Fleet::Complete(FleetPeer& p, ExchangeId limit) {
  for (auto& [other, pe] : p.edges) {
    pe.edge->Complete(limit);
    const ExchangeId done = pe.edge->done();
    std::erase_if(pe.wanted, [=](ExchangeId id) { return id < done; });
  }
  SendAll(p);
}

// Waits until every edge that is not overdue has completed its due exchanges,
// or for the deadline.  A peer whose edges are all overdue would otherwise run
// ahead of the fleet for ever.
void Fleet::Wait(int i) {
  FleetPeer& p = peers_[i];
  const ExchangeId limit = Limit(p.round);
  bool missing = false, answered = false;
  for (auto& [other, pe] : p.edges) {
    if (pe.wanted.empty()) continue;
    const bool late = pe.MissingBelow(limit);
    pe.overdue = late && (pe.overdue || now_ >= p.until);
    missing = missing || (late && !pe.overdue);
    answered = answered || !late;
  }
  if (missing || (!answered && now_ < p.until)) return;
  Complete(p, limit);
  if (o_.overlap == 0) {
    p.phase = RoundPhase::kCompute;
    p.until = now_ + p.compute_ticks;
  } else {
    ++p.round;
    p.phase = RoundPhase::kBegin;
  }
}

void Fleet::Finish(FleetPeer& p) {
  const ExchangeId end = MakeExchangeId(last_round_);
  for (auto& [other, pe] : p.edges) {
    if (pe.edge->decided() >= end) continue;
    pe.edge->SkipTo(end);
    pe.edge->Announce();
  }
  Complete(p, end);
}

void Fleet::TickPeer(int i) {
  FleetPeer& p = peers_[i];
  if (now_ < p.frozen_until) return;
  if (p.finished) return Finish(p);
  if (p.phase == RoundPhase::kBegin) BeginRound(i);
  if (p.phase == RoundPhase::kCompute && now_ >= p.until) {
    LocalStep(i);
    if (o_.overlap == 0) {
      ++p.round;
      p.phase = RoundPhase::kBegin;
      return;
    }
    p.phase = RoundPhase::kWait;
    p.until = Deadline();
  }
  if (p.phase == RoundPhase::kWait) Wait(i);
}

void Fleet::TickLinks() {
  for (auto& link : links_) {
    const auto awake = [&](int e) {
      const uint64_t peer = link->end(1 - e).other().value - 1;
      return now_ >= peers_[peer].frozen_until;
    };
    link->Tick(now_, {awake(0), awake(1)});
    if (now_ % 32 == 0) link->CheckDifferences();
  }
}

void Fleet::Faults() {
  const auto rounds = [&](uint64_t least, uint64_t most) {
    return now_ + kRoundTicks * static_cast<int64_t>(
                                    least + draws_.Below(most - least + 1));
  };
  for (auto& link : links_) {
    if (draws_.Chance(o_.faults.loss / kRoundTicks)) {
      link->Break(now_, rounds(0, 20));
    }
    if (draws_.Chance(o_.faults.twice / kRoundTicks)) {
      link->Dial(now_);
      link->Dial(now_);
    }
    if (draws_.Chance(o_.faults.twice / kRoundTicks)) link->BreakOne(now_);
    if (draws_.Chance(o_.faults.stall / kRoundTicks)) {
      const int64_t until = rounds(5, 25);
      const auto who = draws_.Below(3);
      if (who != 0) link->Stall(0, until);
      if (who != 1) link->Stall(1, until);
    }
  }
  for (FleetPeer& p : peers_) {
    if (draws_.Chance(o_.faults.freeze / kRoundTicks)) {
      p.frozen_until = rounds(20, 100);
    }
  }
}

void Fleet::Heal() {
  for (auto& link : links_) link->Heal(now_);
  for (FleetPeer& p : peers_) p.frozen_until = 0;
}

std::vector<double> Fleet::Mean() const {
  std::vector<double> mean(layout_.size());
  for (const FleetPeer& p : peers_) {
    for (size_t k = 0; k < mean.size(); ++k) mean[k] += p.x[k] / o_.peers;
  }
  return mean;
}

double Fleet::Consensus() const {
  const std::vector<double> mean = Mean();
  double sum = 0;
  for (const FleetPeer& p : peers_) {
    for (size_t k = 0; k < mean.size(); ++k) {
      sum += (p.x[k] - mean[k]) * (p.x[k] - mean[k]);
    }
  }
  return sum / o_.peers;
}

bool Fleet::Settled() const {
  return std::ranges::all_of(links_, [&](const auto& link) {
    return link->Settled(MakeExchangeId(last_round_));
  });
}

std::string Fleet::Failure() const {
  for (const auto& link : links_) {
    if (!link->failure().empty()) return link->failure();
  }
  return "";
}

// Edges are used from the first round on, because the loop waits for first
// contact.
void Fleet::Connect() {
  for (; now_ < 12; ++now_) TickLinks();
}

FleetReport Fleet::Run() {
  const std::vector<double> mean = Mean();
  const double start = Consensus();
  Connect();
  FleetReport report;
  const int64_t give_up = static_cast<int64_t>(o_.rounds) * 200 + 2000;
  bool calm = false;
  while (Failure().empty() && !Settled() && now_ < give_up) {
    if (!calm && std::ranges::any_of(peers_, [&](const FleetPeer& p) {
          return p.round >= calm_round_;
        })) {
      calm = true;
      Heal();
      report.consensus_in_faults = Consensus() / start;
    }
    if (!calm) Faults();
    TickLinks();
    const int first = static_cast<int>(draws_.Below(peers_.size()));
    for (int k = 0; k < o_.peers; ++k) TickPeer((first + k) % o_.peers);
    ++now_;
  }
  for (auto& link : links_) {
    link->CheckSettled(MakeExchangeId(last_round_));
  }
  report.failure = Failure();
  report.consensus = Consensus() / start;
  uint64_t corrections = 0;
  double norm = 0, change = 0;
  const std::vector<double> after = Mean();
  for (size_t k = 0; k < mean.size(); ++k) {
    double stepped = 0;
    for (const FleetPeer& p : peers_) {
      stepped += p.stepped[k] / o_.peers;
      norm += static_cast<double>(p.x[k]) * p.x[k] / o_.peers;
    }
    change += std::pow(after[k] - mean[k] - stepped, 2);
  }
  for (const FleetPeer& p : peers_) {
    for (const auto& [other, pe] : p.edges) {
      corrections += pe.edge->corrections();
    }
  }
  report.mean_change = std::sqrt(change / norm);
  report.share = static_cast<double>(corrections) / scheduled_;
  return report;
}

}  // namespace

FleetReport RunFleet(const FleetOptions& options) {
  return Fleet(options).Run();
}

}  // namespace gossamer
