#include "runtime/telemetry/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "runtime/telemetry/elapsed.h"
#include "runtime/telemetry/loss_keys.h"

namespace gossamer {
namespace {

using Json = nlohmann::ordered_json;
using Rounds = std::vector<RoundMetrics>;

// Returns the mean rate from the round at `from` to the last one.
double RoundsPerSecond(std::span<const Elapsed> elapsed, size_t from) {
  const double seconds = elapsed.back().seconds - elapsed[from].seconds;
  // A run of one round has no interval, and must not set the pace of the fleet.
  if (seconds <= 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(elapsed.size() - 1 - from) / seconds;
}

// Returns the total of a counter that begins again at 0 in every process.
uint64_t Total(const Rounds& rounds, uint64_t RoundMetrics::*counter) {
  uint64_t total = 0, last = 0;
  for (const RoundMetrics& m : rounds) {
    // A value below the last one tells of a new process.  A new process whose
    // first value is above it goes unnoticed, and the total is then too small.
    total += m.*counter >= last ? m.*counter - last : m.*counter;
    last = m.*counter;
  }
  return total;
}

double Sum(const Rounds& rounds, double RoundMetrics::*value) {
  double sum = 0;
  for (const RoundMetrics& m : rounds) {
    if (std::isfinite(m.*value)) sum += m.*value;
  }
  return sum;
}

double MeanOfLastTenth(const std::vector<Rounds>& peers,
                       const std::string& player) {
  double sum = 0;
  size_t n = 0;
  for (const Rounds& rounds : peers) {
    // At least one round counts, also in a run of fewer than ten.
    for (size_t i = rounds.size() - (rounds.size() + 9) / 10; i < rounds.size();
         ++i) {
      const double loss = ValueOf(rounds[i].losses, player);
      if (!std::isfinite(loss)) continue;
      sum += loss;
      ++n;
    }
  }
  return n == 0 ? std::numeric_limits<double>::quiet_NaN()
                : sum / static_cast<double>(n);
}

void FillLosses(const std::vector<Rounds>& peers, RunSummary& s) {
  std::vector<std::string> players;
  for (const Rounds& rounds : peers) {
    for (const RoundMetrics& m : rounds) AddPlayers(m.losses, players);
  }
  for (const std::string& player : players) {
    s.losses.push_back({player, MeanOfLastTenth(peers, player)});
  }
}

void FillScores(const std::vector<Rounds>& peers, RunSummary& s) {
  std::map<uint64_t, std::pair<double, int>> by_round;
  for (const Rounds& rounds : peers) {
    for (const RoundMetrics& m : rounds) {
      if (m.epsilon) s.epsilon = m.epsilon;
      if (!m.score) continue;
      if (!m.score_name.empty()) s.score_name = m.score_name;
      by_round[m.round].first += *m.score;
      ++by_round[m.round].second;
    }
  }
  for (const auto& [round, sum] : by_round) {
    // Peers that evaluated the same round count alike.
    const Sample score = {round, sum.first / sum.second};
    if (!s.first_score) s.first_score = score;
    if (!s.best_score || score.value < s.best_score->value) {
      s.best_score = score;
    }
    s.last_score = score;
  }
}

void Put(Json& json, const std::string& key,
         const std::optional<Sample>& sample) {
  json[key] = sample ? Json(sample->value) : Json();
  json[key + "_round"] = sample ? Json(sample->round) : Json();
}

// Returns the median, or 0 without values.
double MedianOf(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto middle =
      values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

RunSummary Summarize(const std::vector<Rounds>& peers) {
  RunSummary s;
  s.peers = peers.size();
  if (peers.empty()) return s;
  s.rounds = s.steps = std::numeric_limits<uint64_t>::max();
  s.rounds_per_second = std::numeric_limits<double>::infinity();
  s.steady_rounds_per_second = s.rounds_per_second;
  const double peer_count = static_cast<double>(peers.size());
  std::vector<double> exchanges, differences;
  for (const Rounds& rounds : peers) {
    // The fleet has trained as far as its slowest peer.
    s.rounds = std::min(s.rounds, rounds.empty() ? 0 : rounds.back().round);
    s.steps = std::min(s.steps, rounds.empty() ? 0 : rounds.back().steps);
    if (rounds.empty()) continue;
    const std::vector<Elapsed> elapsed = ElapsedOf(rounds);
    // The fleet has trained for as long as its slowest peer.
    s.training_seconds = std::max(s.training_seconds, elapsed.back().seconds);
    s.rounds_per_second =
        std::min(s.rounds_per_second, RoundsPerSecond(elapsed, 0));
    s.steady_rounds_per_second =
        std::min(s.steady_rounds_per_second,
                 RoundsPerSecond(elapsed, elapsed.size() / 2));
    s.bytes_per_round += static_cast<double>(elapsed.back().bytes_sent) /
                         static_cast<double>(rounds.size()) / peer_count;
    s.seconds_computing +=
        Sum(rounds, &RoundMetrics::seconds_computing) / peer_count;
    s.seconds_waiting +=
        Sum(rounds, &RoundMetrics::seconds_waiting) / peer_count;
    for (const RoundMetrics& m : rounds) {
      // A round in which no exchange ended says nothing of their length.
      if (m.seconds_exchanging > 0) exchanges.push_back(m.seconds_exchanging);
      if (m.clipping) differences.push_back(m.clipping->longest);
    }
    if (const auto& c = rounds.back().clipping) {
      if (!s.clipping) s.clipping.emplace();
      s.clipping->clipped += c->clipped;
    }
    s.corrections += Total(rounds, &RoundMetrics::corrections);
    s.skipped += Total(rounds, &RoundMetrics::skipped);
    s.late += Total(rounds, &RoundMetrics::late);
  }
  // A peer without rounds leaves the rates infinite, which JSON cannot say.
  for (double* rate : {&s.rounds_per_second, &s.steady_rounds_per_second}) {
    if (!std::isfinite(*rate)) *rate = 0;
  }
  s.exchange_seconds = MedianOf(exchanges);
  if (s.clipping) s.clipping->longest = MedianOf(differences);
  FillLosses(peers, s);
  FillScores(peers, s);
  return s;
}

std::string ToJson(const RunSummary& s) {
  Json json = {
      {"run", s.run},
      {"algorithm", s.algorithm},
      {"peers", s.peers},
      {"configuration_hash", absl::StrFormat("%016x", s.configuration_hash)},
      {"finished", s.finished},
      {"rounds", s.rounds},
      {"steps", s.steps},
      {"training_seconds", s.training_seconds},
      {"rounds_per_second", s.rounds_per_second},
      {"steady_rounds_per_second", s.steady_rounds_per_second}};
  json["score_name"] = s.score_name;
  Put(json, "first_score", s.first_score);
  Put(json, "last_score", s.last_score);
  Put(json, "best_score", s.best_score);
  Put(json, "consensus_distance", s.consensus_distance);
  AddLossKeys(s.losses, json);
  json["bytes_per_round"] = s.bytes_per_round;
  json["seconds_computing"] = s.seconds_computing;
  json["seconds_waiting"] = s.seconds_waiting;
  json["exchange_seconds"] = s.exchange_seconds;
  json["corrections"] = s.corrections;
  json["skipped"] = s.skipped;
  json["late"] = s.late;
  if (s.clipping) {
    json["clipped"] = s.clipping->clipped;
    json["longest_difference"] = s.clipping->longest;
  }
  if (s.epsilon) json["epsilon"] = *s.epsilon;
  json["events"] = Json::object();
  for (const auto& [kind, times] : s.events) json["events"][kind] = times;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace gossamer
