#include "runtime/telemetry/metrics_log.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/plain_text.h"
#include "algorithms/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "runtime/telemetry/loss_keys.h"

namespace gossamer {
namespace {

using Json = nlohmann::ordered_json;

// Microseconds are kept: intervals of fast rounds are made of these times.
std::string Timestamp(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", time, absl::UTCTimeZone());
}

std::string Dump(const Json& json) {
  // Text of other peers may not be UTF-8, and a log line is not worth an
  // exception.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Returns NaN where a line has null or no such key.
double Number(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_number()
             ? it->get<double>()
             : std::numeric_limits<double>::quiet_NaN();
}

uint64_t Count(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_number_unsigned() ? it->get<uint64_t>() : 0;
}

// Calls `take` for every line and stops at its first error, which then names
// the line.
absl::Status ForEachLineOf(
    const std::string& path,
    absl::FunctionRef<absl::Status(const std::string&)> take) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": not there"));
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const absl::Status taken = take(line);
    if (taken.ok()) continue;
    if (file.eof()) break;  // the last line is still being written
    return absl::DataLossError(
        absl::StrCat(path, ":", number, ": ", taken.message()));
  }
  return absl::OkStatus();
}

// Calls `take` for the lines of PATH.1 first, if the log has been turned over.
absl::Status ForEachLine(
    const std::string& path,
    absl::FunctionRef<absl::Status(const std::string&)> take) {
  const absl::Status before = ForEachLineOf(path + ".1", take);
  if (!before.ok() && !absl::IsNotFound(before)) return before;
  return ForEachLineOf(path, take);
}

// Returns the detail cut to a length that a log can hold: another peer may have
// written a part of it.
std::string Short(const std::string& detail) {
  constexpr size_t kMax = 1000;
  return detail.size() <= kMax ? detail : PlainText(detail, kMax);
}

std::vector<RoundScore> Scores(const Json& json) {
  std::vector<RoundScore> scores;
  const auto list = json.find("scores");
  if (list == json.end() || !list->is_array()) return scores;
  for (const Json& s : *list) {
    if (s.is_array() && s.size() == 2 && s[0].is_number_unsigned() &&
        s[1].is_number()) {
      scores.push_back({s[0].get<uint64_t>(), s[1].get<double>()});
    }
  }
  return scores;
}

}  // namespace

std::string ToJsonLine(const RoundMetrics& m) {
  // A NaN becomes null, which Number() reads as NaN again: JSON has no other
  // form of it.
  Json json = {{"round", m.round},
               {"steps", m.steps},
               {"finished", Timestamp(m.finished)}};
  AddLossKeys(m.losses, json);
  json["seconds_computing"] = m.seconds_computing;
  json["seconds_waiting"] = m.seconds_waiting;
  json["seconds_exchanging"] = m.seconds_exchanging;
  json["bytes_sent"] = m.bytes_sent;
  json["bytes_received"] = m.bytes_received;
  json["corrections"] = m.corrections;
  json["skipped"] = m.skipped;
  json["late"] = m.late;
  if (m.clipping) {
    json["clipped"] = m.clipping->clipped;
    json["longest_difference"] = m.clipping->longest;
  }
  if (m.epsilon) json["epsilon"] = *m.epsilon;
  if (!m.scores.empty()) {
    json["scores"] = Json::array();
    for (const RoundScore& s : m.scores) {
      json["scores"].push_back({s.round, s.value});
    }
    json["score_name"] = m.score_name;
  }
  return Dump(json);
}

std::string ToJsonLine(const Event& event) {
  Json json = {{"time", Timestamp(event.time)},
               {"round", event.round},
               {"kind", event.kind.name()},
               {"detail", Short(event.detail)}};
  // Most lines stand for one occurrence, and stay short.
  if (event.times != 1) json["times"] = event.times;
  return Dump(json);
}

absl::StatusOr<RoundMetrics> ParseMetricsLine(std::string_view line) {
  const Json json = Json::parse(line.begin(), line.end(), nullptr,
                                /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("round")) {
    return absl::DataLossError("not a line of round metrics");
  }
  RoundMetrics m;
  m.round = Count(json, "round");
  m.steps = Count(json, "steps");
  const auto finished = json.find("finished");
  if (finished != json.end() && finished->is_string()) {
    std::string error;
    absl::ParseTime(absl::RFC3339_full, finished->get<std::string>(),
                    &m.finished, &error);
  }
  m.losses = LossesIn(json);
  m.seconds_computing = Number(json, "seconds_computing");
  m.seconds_waiting = Number(json, "seconds_waiting");
  m.seconds_exchanging = Number(json, "seconds_exchanging");
  m.bytes_sent = Count(json, "bytes_sent");
  m.bytes_received = Count(json, "bytes_received");
  m.corrections = Count(json, "corrections");
  m.skipped = Count(json, "skipped");
  m.late = Count(json, "late");
  if (json.contains("clipped")) {
    m.clipping = {Count(json, "clipped"), Number(json, "longest_difference")};
  }
  const double epsilon = Number(json, "epsilon");
  if (std::isfinite(epsilon)) m.epsilon = epsilon;
  m.scores = Scores(json);
  for (const RoundScore& s : m.scores) {
    if (s.round == m.round) m.score = s.value;
  }
  if (const auto name = json.find("score_name");
      name != json.end() && name->is_string()) {
    m.score_name = name->get<std::string>();
  }
  return m;
}

absl::StatusOr<std::vector<RoundMetrics>> ReadMetrics(const std::string& path) {
  std::vector<RoundMetrics> all;
  GOSSAMER_RETURN_IF_ERROR(ForEachLine(path, [&](const std::string& line) {
    GOSSAMER_ASSIGN_OR_RETURN(RoundMetrics m, ParseMetricsLine(line));
    // A run that went back to a checkpoint logs a round again; the later line
    // counts.
    while (!all.empty() && all.back().round >= m.round) all.pop_back();
    all.push_back(std::move(m));
    for (const RoundScore& s : all.back().scores) {
      const auto at =
          std::ranges::lower_bound(all, s.round, {}, &RoundMetrics::round);
      if (at == all.end() || at->round != s.round) continue;
      at->score = s.value;
      at->score_name = all.back().score_name;
    }
    return absl::OkStatus();
  }));
  return all;
}

absl::StatusOr<EventCounts> CountEvents(const std::string& path) {
  EventCounts counts;
  GOSSAMER_RETURN_IF_ERROR(ForEachLine(path, [&](const std::string& line) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    // Kinds are not checked: a log may be of another release.
    const auto kind = json.find("kind");
    if (kind == json.end() || !kind->is_string()) {
      return absl::DataLossError("not a line of an event");
    }
    counts[kind->get<std::string>()] +=
        json.contains("times") ? Count(json, "times") : 1;
    return absl::OkStatus();
  }));
  return counts;
}

}  // namespace gossamer
