// Metrics, events, progress, summaries and curves of a run, and the README's
// lists of events against the code.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/throttle.h"
#include "nlohmann/json.hpp"
#include "runtime/telemetry/curves.h"
#include "runtime/telemetry/elapsed.h"
#include "runtime/telemetry/jsonl_sink.h"
#include "runtime/telemetry/line_style.h"
#include "runtime/telemetry/metrics_log.h"
#include "runtime/telemetry/progress.h"
#include "runtime/telemetry/run_panels.h"
#include "runtime/telemetry/summary.h"
#include "tests/testing/temporary_folder.h"
#include "topology/fleet/event_kind.h"
#include "topology/fleet/service_event.h"

namespace gossamer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

RoundMetrics Round(uint64_t round) {
  return {.round = round,
          .steps = round,
          .finished = kStart + absl::Milliseconds(500 * round),
          .losses = {{"generator", -0.5}, {"discriminator", 0.25}},
          .seconds_computing = 0.4,
          .seconds_waiting = 0.1,
          .seconds_exchanging = 0.3,
          .bytes_sent = 100 * round,
          .bytes_received = 90 * round,
          .corrections = 2 * round,
          .score = {},
          .score_name = {}};
}

std::vector<RoundMetrics> Rounds(uint64_t n) {
  std::vector<RoundMetrics> rounds;
  for (uint64_t round = 1; round <= n; ++round) rounds.push_back(Round(round));
  return rounds;
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(MetricsLog, LinesReadBack) {
  RoundMetrics m = Round(7);
  m.score = 0.125;
  m.scores = {{m.round - 1, 0.25}, {m.round, 0.125}};
  m.score_name = "proxy-fid";
  const auto back = ParseMetricsLine(ToJsonLine(m));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(ToJsonLine(*back), ToJsonLine(m));
  EXPECT_EQ(back->finished, m.finished);
  EXPECT_EQ(back->score, m.score);
  EXPECT_EQ(back->scores, m.scores);
  EXPECT_EQ(back->score_name, "proxy-fid");
}

TEST(MetricsLog, KeysAreStable) {
  EXPECT_EQ(ToJsonLine(Round(2)),
            R"({"round":2,"steps":2,"finished":"2023-11-14T22:13:21.000000Z",)"
            R"("generator_loss":-0.5,"discriminator_loss":0.25,)"
            R"("seconds_computing":0.4,"seconds_waiting":0.1,)"
            R"("seconds_exchanging":0.3,"bytes_sent":200,)"
            R"("bytes_received":180,"corrections":4,"skipped":0,"late":0})");
  EXPECT_EQ(ToJsonLine(Event{kStart, 3, "edge_lost", "peer 2"}),
            R"({"time":"2023-11-14T22:13:20.000000Z","round":3,)"
            R"("kind":"edge_lost","detail":"peer 2"})");
  EXPECT_EQ(ToJsonLine(Event{kStart, 3, "edge_clipped", "peer 2", 90}),
            R"({"time":"2023-11-14T22:13:20.000000Z","round":3,)"
            R"("kind":"edge_clipped","detail":"peer 2","times":90})");
}

// A score comes some rounds after its own, also one of an earlier incarnation
// whose later rounds were done again.
TEST(MetricsLog, AScoreIsThatOfItsRound) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/metrics.jsonl";
  std::ofstream file(path);
  for (const uint64_t round : {1, 2, 3, 4, 3, 4, 5}) {
    RoundMetrics m = Round(round);
    m.score_name = "proxy-fid";
    if (round == 3) m.scores = {{1, 0.5}, {9, 0.1}};
    if (round == 5) m.scores = {{4, 0.25}, {5, 0.125}};
    file << ToJsonLine(m) << "\n";
  }
  file.close();
  const auto rounds = ReadMetrics(path);
  ASSERT_TRUE(rounds.ok()) << rounds.status();
  std::vector<std::optional<double>> scores;
  for (const RoundMetrics& m : *rounds) scores.push_back(m.score);
  EXPECT_EQ(scores, (std::vector<std::optional<double>>{
                        0.5, std::nullopt, std::nullopt, 0.25, 0.125}));
  EXPECT_EQ((*rounds)[0].score_name, "proxy-fid");
}

// gRPC lets 8 KB of the other end's reason through.
TEST(MetricsLog, ATextFromAnotherPeerIsCutShort) {
  const std::string said = "peer 2: " + std::string(8000, '\n');
  const std::string line = ToJsonLine(Event{kStart, 3, "edge_down", said});
  EXPECT_LT(line.size(), 6000u);
  EXPECT_EQ(line.find('\n'), line.npos);
  EXPECT_NE(line.find("...\""), line.npos);
}

// The summary counts the events of the peers over all their incarnations.
TEST(MetricsLog, EventsAreCountedByKind) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/events.jsonl";
  for (uint64_t incarnation : {1, 2}) {
    auto sink = JsonlSink::Open(folder.path(), nullptr);
    ASSERT_TRUE(sink.ok()) << sink.status();
    (*sink)->OnEvent({kStart, incarnation, "edge_down", "peer 2"});
    (*sink)->OnEvent(
        {kStart, incarnation, "strangers_refused", "", 9 * incarnation});
  }
  std::ofstream(path, std::ios::app) << R"({"kind":"of_another_release"})"
                                     << "\n"
                                     << R"({"kind":"cu)";
  const auto counts = CountEvents(path);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_THAT(*counts, ElementsAre(std::pair("edge_down", 2),
                                   std::pair("of_another_release", 1),
                                   std::pair("strangers_refused", 27)));
  RunSummary s = Summarize({Rounds(3)});
  s.events = *counts;
  EXPECT_EQ(nlohmann::json::parse(ToJson(s))["events"]["strangers_refused"],
            27);
  std::ofstream(path, std::ios::app) << "\n";
  EXPECT_THAT(std::string(CountEvents(path).status().message()),
              HasSubstr("events.jsonl:6: "));
}

std::string RowsOf(std::span<const EventInfo> kinds) {
  std::string rows;
  for (const EventInfo& kind : kinds) {
    absl::StrAppend(&rows, "| `", std::string(kind.name), "` | ",
                    std::string(kind.when), " |");
    if (!kind.action.empty()) {
      absl::StrAppend(&rows, " ", std::string(kind.action));
    }
    absl::StrAppend(&rows, " |\n");
  }
  return rows;
}

TEST(ServiceEvents, StandInTheReadmeAsTheyAre) {
  const std::string rows = RowsOf(kServiceEvents);
  EXPECT_THAT(ReadAll(GOSSAMER_SOURCE_DIR "/runtime/service/README.md"),
              HasSubstr("| --- | --- | --- |\n" + rows))
      << "the table of events is to be\n"
      << rows;
}

TEST(ServiceEvents, AreLinesWithANameAndCounts) {
  std::vector<std::string> log;
  ServiceEvents events([&](const std::string& line) { log.push_back(line); });
  events.Report("save_failed", "no space");
  events.Report("saves_again", "");
  absl::Time now = absl::UnixEpoch();
  for (int times = 0; times < 4; ++times) {
    events.ReportByTime("call_refused", now, "from afar");
    now += absl::Seconds(4);
  }
  for (const uint64_t seen : {0, 3, 7}) {
    events.ReportByCount("strangers_refused", seen, "connections");
  }
  EXPECT_THAT(log, ElementsAre("save_failed: no space", "saves_again: ",
                               "call_refused: from afar (1 so far)",
                               "call_refused: from afar (4 so far)",
                               "strangers_refused: 3 connections"));
  EXPECT_EQ(events.count("call_refused"), 4u);
  EXPECT_EQ(events.count("strangers_refused"), 7u);
  EXPECT_EQ(events.count("stands_by"), 0u);
}

TEST(EventKinds, StandInTheReadmeAsTheyAre) {
  const std::string rows = RowsOf(kEventKinds);
  const std::string readme =
      ReadAll(GOSSAMER_SOURCE_DIR "/runtime/telemetry/README.md");
  EXPECT_THAT(readme, testing::EndsWith("| --- | --- | --- |\n" + rows))
      << "the table of events is to be\n"
      << rows;
}

TEST(Throttle, ByCountReportsTheFirstTheTenthTheHundredth) {
  Throttle told;
  std::vector<std::pair<uint64_t, uint64_t>> lines;
  for (uint64_t seen = 0; seen <= 250; ++seen) {
    if (const uint64_t news = told.Due(seen)) lines.emplace_back(seen, news);
  }
  EXPECT_THAT(lines, ElementsAre(std::pair(1, 1), std::pair(10, 9),
                                 std::pair(100, 90)));
  EXPECT_EQ(told.TakeUnreported(250), 150u);
  EXPECT_EQ(told.TakeUnreported(250), 0u);
  // Many events at once are one line.
  EXPECT_EQ(told.Due(5000), 4750u);
}

TEST(Throttle, ByTimeReportsOnceInAWhile) {
  Throttle told(absl::Seconds(10));
  absl::Time now = absl::UnixEpoch();
  EXPECT_EQ(told.Due(now), 1u);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(told.Due(now += absl::Seconds(0.1)), 0u);
  EXPECT_EQ(told.Due(now + absl::Seconds(1)), 101u);
  EXPECT_EQ(told.seen(), 102u);
}

TEST(MetricsLog, ARoundHasClippingKeysOnlyIfItClipped) {
  RoundMetrics m = Round(2);
  m.clipping = {3, 0.5};
  EXPECT_THAT(ToJsonLine(m),
              HasSubstr(R"("late":0,"clipped":3,"longest_difference":0.5})"));
  const auto back = ParseMetricsLine(ToJsonLine(m));
  EXPECT_EQ(ToJsonLine(*back), ToJsonLine(m));
  RoundMetrics far = Round(3);
  far.clipping = {4, 2.5};
  const RunSummary s = Summarize({{m, far}, {m, far}});
  EXPECT_EQ(s.clipping->clipped, 8u);
  EXPECT_EQ(s.clipping->longest, 2.5);
  EXPECT_THAT(ToJson(s), HasSubstr(R"("longest_difference": 2.5)"));
  EXPECT_THAT(ToJson(Summarize({{Round(1)}})), Not(HasSubstr("clipped")));
}

TEST(MetricsLog, ANumberThatIsNotFiniteIsNull) {
  RoundMetrics m = Round(1);
  m.losses[0].value = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(ToJsonLine(m), HasSubstr(R"("generator_loss":null)"));
  const PlayerLosses back = ParseMetricsLine(ToJsonLine(m))->losses;
  ASSERT_THAT(back, SizeIs(2));
  EXPECT_TRUE(std::isnan(back[0].value));
}

// Three players in an order of their own, one of which says no loss.
RoundMetrics RoundOfThree(uint64_t round) {
  RoundMetrics m = Round(round);
  m.losses = {{"student", static_cast<double>(round)},
              {"critic", -1},
              {"adversary", std::numeric_limits<double>::quiet_NaN()}};
  return m;
}

std::vector<std::string> NamesOf(const PlayerLosses& losses) {
  std::vector<std::string> names;
  for (const PlayerLoss& loss : losses) names.push_back(loss.player);
  return names;
}

TEST(MetricsLog, EveryPlayerHasAKey) {
  const std::string line = ToJsonLine(RoundOfThree(3));
  EXPECT_THAT(line, HasSubstr(R"("student_loss":3.0,"critic_loss":-1.0,)"
                              R"("adversary_loss":null,"seconds_computing")"));
  EXPECT_THAT(line, Not(HasSubstr("generator")));
  const auto back = ParseMetricsLine(line);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_THAT(NamesOf(back->losses),
              ElementsAre("student", "critic", "adversary"));
  EXPECT_EQ(ValueOf(back->losses, "student"), 3);
  EXPECT_TRUE(std::isnan(ValueOf(back->losses, "adversary")));
  EXPECT_EQ(ToJsonLine(*back), line);
}

// A file may be of another machine.
TEST(MetricsLog, NamesOfPlayersAreFewAndShort) {
  std::string line = R"({"round":1,"_loss":1,"loss":2,"own_loss":"text")";
  absl::StrAppend(&line, ",\"", std::string(65, 'x'), "_loss\":1");
  for (int i = 0; i < 40; ++i) absl::StrAppend(&line, ",\"", i, "_loss\":1");
  const auto back = ParseMetricsLine(line + "}");
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_THAT(back->losses, SizeIs(kMaxPlayers));
  EXPECT_EQ(back->losses[0].player, "own");
  EXPECT_TRUE(std::isnan(back->losses[0].value));
  EXPECT_EQ(back->losses[1].player, "0");
}

TEST(MetricsLog, ARepeatedRoundReplacesItsEarlierLines) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/metrics.jsonl";
  RoundMetrics again = Round(2);
  again.losses[0].value = 9;
  std::ofstream(path) << ToJsonLine(Round(1)) << "\n"
                      << ToJsonLine(Round(2)) << "\n"
                      << ToJsonLine(Round(3)) << "\n"
                      << ToJsonLine(again) << "\n"
                      << R"({"round":4,"st)";
  const auto rounds = ReadMetrics(path);
  ASSERT_TRUE(rounds.ok()) << rounds.status();
  ASSERT_THAT(*rounds, SizeIs(2));
  EXPECT_EQ(ValueOf(rounds->back().losses, "generator"), 9);
}

TEST(MetricsLog, ALineThatIsNoRoundIsNamed) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/metrics.jsonl";
  std::ofstream(path) << ToJsonLine(Round(1)) << "\nnonsense\n"
                      << ToJsonLine(Round(2)) << "\n";
  EXPECT_THAT(std::string(ReadMetrics(path).status().message()),
              HasSubstr("metrics.jsonl:2: "));
}

TEST(JsonlSink, AppendsAndRemovesACutLine) {
  const TemporaryFolder folder;
  for (uint64_t round : {1, 2}) {
    auto sink = JsonlSink::Open(folder.path(), nullptr);
    ASSERT_TRUE(sink.ok()) << sink.status();
    (*sink)->OnRound(Round(round));
    (*sink)->OnEvent({kStart, round, "edge_down", "detail"});
    sink->reset();
    std::ofstream(folder.path() + "/metrics.jsonl", std::ios::app) << "{\"rou";
  }
  const auto sink = JsonlSink::Open(folder.path(), nullptr);
  ASSERT_TRUE(sink.ok());
  EXPECT_EQ(
      ReadAll(folder.path() + "/metrics.jsonl"),
      absl::StrCat(ToJsonLine(Round(1)), "\n", ToJsonLine(Round(2)), "\n"));
}

TEST(JsonlSink, KeepsTheNewestLinesWithinItsLimit) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/metrics.jsonl";
  const uint64_t line = ToJsonLine(Round(100)).size() + 1;
  uint64_t most = 0;
  for (const uint64_t from : {100, 150}) {  // two incarnations
    auto sink = JsonlSink::Open(folder.path(), nullptr, 20 * line);
    ASSERT_TRUE(sink.ok()) << sink.status();
    for (uint64_t round = from; round < from + 50; ++round) {
      (*sink)->OnRound(Round(round));
      (*sink)->Flush();
      uint64_t size = 0;
      for (const std::string& name : {path, path + ".1"}) {
        if (std::filesystem::exists(name)) {
          size += std::filesystem::file_size(name);
        }
      }
      most = std::max(most, size);
    }
  }
  EXPECT_LE(most, 20 * line);
  const auto rounds = ReadMetrics(path);
  ASSERT_TRUE(rounds.ok()) << rounds.status();
  ASSERT_GE(rounds->size(), 10u) << "half of it at least";
  EXPECT_EQ(rounds->back().round, 199u);
  EXPECT_EQ(rounds->front().round, 200 - rounds->size()) << "without a hole";
}

// A process can give itself a full disk by a file size limit.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_;
};

TEST(JsonlSink, AFullDiskIsReportedOnceAndTrainingGoesOn) {
  const TemporaryFolder folder;
  std::vector<absl::Status> reports;
  auto sink = JsonlSink::Open(
      folder.path(), [&](const absl::Status& s) { reports.push_back(s); });
  ASSERT_TRUE(sink.ok());
  const std::string first = ToJsonLine(Round(2)) + "\n";
  (*sink)->OnRound(Round(2));
  {
    // Half of the next line fits.
    const FileSizeLimit full(first.size() * 3 / 2);
    for (uint64_t round : {4, 6, 8}) (*sink)->OnRound(Round(round));
  }
  (*sink)->OnRound(Round(10));
  sink->reset();
  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_THAT(std::string(reports[0].message()), HasSubstr("metrics.jsonl"));
  EXPECT_EQ(ReadAll(folder.path() + "/metrics.jsonl"),
            absl::StrCat(first, ToJsonLine(Round(10)), "\n"));
}

TEST(Summary, SumsUp) {
  std::vector<std::vector<RoundMetrics>> peers = {Rounds(11), Rounds(11)};
  peers[0][4].score = 2;
  peers[0][9].score = 1;
  peers[1][9].score = 0.5;
  peers[1][9].score_name = "distance";
  const RunSummary s = Summarize(peers);
  EXPECT_EQ(s.peers, 2u);
  EXPECT_EQ(s.rounds, 11u);
  EXPECT_DOUBLE_EQ(s.training_seconds, 5);
  EXPECT_DOUBLE_EQ(s.rounds_per_second, 2);
  EXPECT_DOUBLE_EQ(s.bytes_per_round, 100);
  EXPECT_EQ(s.corrections, 44u);
  EXPECT_EQ(s.first_score->round, 5u);
  EXPECT_DOUBLE_EQ(s.first_score->value, 2);
  EXPECT_DOUBLE_EQ(s.last_score->value, 0.75);
  EXPECT_EQ(s.score_name, "distance");
  EXPECT_NEAR(s.seconds_computing, 4.4, 1e-12);
  EXPECT_DOUBLE_EQ(s.exchange_seconds, 0.3);
}

TEST(Summary, TheSteadyRateIsOfTheLaterHalf) {
  std::vector<RoundMetrics> rounds = Rounds(11);  // one in 0.5 s
  for (size_t i = 1; i < rounds.size(); ++i) {
    rounds[i].finished +=
        std::min<int>(static_cast<int>(i), 5) * absl::Milliseconds(500);
  }
  const RunSummary s = Summarize({rounds, Rounds(11)});
  EXPECT_DOUBLE_EQ(s.rounds_per_second, 10 / 7.5);
  EXPECT_DOUBLE_EQ(s.steady_rounds_per_second, 2);
}

TEST(Summary, APauseIsNotTraining) {
  std::vector<RoundMetrics> rounds = Rounds(11);
  for (size_t i = 6; i < rounds.size(); ++i) {
    rounds[i].finished += absl::Hours(3);
    rounds[i].bytes_sent -= 600;  // a new process counts from 0
  }
  const RunSummary s = Summarize({rounds});
  EXPECT_DOUBLE_EQ(s.training_seconds, 5);
  EXPECT_DOUBLE_EQ(s.rounds_per_second, 2);
  EXPECT_DOUBLE_EQ(s.bytes_per_round, 100);
}

// The pause is left out however short it is, in every score's time and traffic.
TEST(ElapsedOf, APauseBetweenTwoIncarnationsIsLeftOut) {
  std::vector<RoundMetrics> rounds = Rounds(11);
  for (size_t i = 6; i < rounds.size(); ++i) {
    rounds[i].finished += absl::Seconds(20);
    rounds[i].bytes_sent -= 600;
  }
  const std::vector<Elapsed> elapsed = ElapsedOf(rounds);
  ASSERT_EQ(elapsed.size(), 11u);
  EXPECT_DOUBLE_EQ(elapsed[5].seconds, 2.5);
  EXPECT_DOUBLE_EQ(elapsed[6].seconds, 3);
  EXPECT_EQ(elapsed[6].bytes_sent, 700u);
  EXPECT_DOUBLE_EQ(elapsed[10].seconds, 5);
  EXPECT_EQ(elapsed[10].bytes_sent, 1100u);
  EXPECT_THAT(ElapsedOf({}), testing::IsEmpty());
}

TEST(Summary, KeysAreStable) {
  RunSummary s = Summarize({Rounds(3)});
  s.run = "quick";
  s.algorithm = "dp-oadam";
  s.configuration_hash = 0xabc;
  s.consensus_distance = Sample{3, 1e-5};
  const auto json = nlohmann::ordered_json::parse(ToJson(s));
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_THAT(
      keys,
      ElementsAre("run", "algorithm", "peers", "configuration_hash", "finished",
                  "rounds", "steps", "training_seconds", "rounds_per_second",
                  "steady_rounds_per_second", "score_name", "first_score",
                  "first_score_round", "last_score", "last_score_round",
                  "best_score", "best_score_round", "consensus_distance",
                  "consensus_distance_round", "generator_loss",
                  "discriminator_loss", "bytes_per_round", "seconds_computing",
                  "seconds_waiting", "exchange_seconds", "corrections",
                  "skipped", "late", "events"));
  EXPECT_EQ(json["configuration_hash"], "0000000000000abc");
  EXPECT_TRUE(json["first_score"].is_null());
}

TEST(Summary, EveryPlayerHasAKey) {
  std::vector<RoundMetrics> rounds;
  for (uint64_t round = 1; round <= 20; ++round) {
    rounds.push_back(RoundOfThree(round));
  }
  const RunSummary s = Summarize({rounds, rounds});
  EXPECT_THAT(NamesOf(s.losses), ElementsAre("student", "critic", "adversary"));
  EXPECT_EQ(ValueOf(s.losses, "student"), 19.5);  // of the last two
  EXPECT_EQ(ValueOf(s.losses, "critic"), -1);
  EXPECT_THAT(ToJson(s), HasSubstr(R"("adversary_loss": null)"));
}

FleetProgress FourPeers() {
  FleetProgress p{.title = "quick  dp-oadam  4 peers", .rounds = 1000};
  for (uint64_t id = 1; id <= 4; ++id) {
    p.peers.push_back({.id = id,
                       .round = 250 + id,
                       .rounds_per_second = 5,
                       .losses = {{"generator", -0.25}, {"discriminator", 1.5}},
                       .bytes_sent = 12'345'678});
  }
  p.peers[0].score = 0.03125;
  p.consensus = Consensus{.round = 9, .distance = 1.5e-4};
  return p;
}

TEST(Progress, TableShowsTheFleet) {
  const std::vector<std::string> lines = FormatTable(FourPeers(), 100);
  ASSERT_THAT(lines, SizeIs(8));
  EXPECT_EQ(lines[1],
            "[######..................] round 251/1000 (25 %)  5.00 rounds/s  "
            "ETA 2m30s");
  EXPECT_EQ(lines[3],
            "    1       251      5.00    -0.2500     1.5000    12.3 MB    "
            "0.03125  ");
  EXPECT_EQ(lines[7], "sent 49.4 MB   consensus distance 1.500e-04");
}

TEST(Progress, TheDistanceHasAPartOfEachPlayer) {
  FleetProgress p = FourPeers();
  p.consensus->players = {{"generator", 3e-5}, {"fake score", 1.2e-4}};
  EXPECT_EQ(FormatTable(p, 100)[7],
            "sent 49.4 MB   consensus distance 1.500e-04  G 3.0e-05  "
            "fake score 1.2e-04");
}

TEST(Progress, NoLineIsWiderThanTheTerminal) {
  for (int width : {20, 40, 79}) {
    for (const std::string& line : FormatTable(FourPeers(), width)) {
      EXPECT_LE(line.size(), static_cast<size_t>(width));
    }
  }
}

TEST(Progress, LineHasItAllInOneRow) {
  EXPECT_EQ(FormatLine(FourPeers()),
            "round 251/1000 (25 %)  5.00 rounds/s  ETA 2m30s  G -0.25  D 1.5  "
            "consensus 1.50e-04  score 0.03125  sent 49.4 MB");
}

TEST(Progress, TheHeadingsOfAGanAreItsLetters) {
  EXPECT_EQ(FormatTable(FourPeers(), 100)[2],
            " peer     round  rounds/s     loss G     loss D       sent      "
            "score");
}

TEST(Progress, ShowsPlayersByTheirNames) {
  FleetProgress p = FourPeers();
  for (PeerProgress& peer : p.peers) {
    peer.losses = {
        {"S", 0.5}, {"fake\n_score_of_today", std::nan("")}, {"adversary", 2}};
  }
  // One peer has not trained yet, and another one lacks a loss.
  p.peers[0].losses.clear();
  p.peers[1].losses[2].value = std::nan("");
  const std::vector<std::string> lines = FormatTable(p, 100);
  EXPECT_EQ(lines[2],
            " peer     round  rounds/s     loss S fake\\x0a_s       sent      "
            "score");
  EXPECT_THAT(lines[3], HasSubstr(" 5.00          -          -    12.3 MB "));
  EXPECT_THAT(lines[4], HasSubstr(" 5.00     0.5000          -    12.3 MB "));
  EXPECT_THAT(FormatLine(p), HasSubstr("  S 0.5  adversary 2  consensus"));
}

TEST(Progress, HasNoLossBeforeAnybodyHasTrained) {
  FleetProgress p = FourPeers();
  for (PeerProgress& peer : p.peers) peer.losses.clear();
  EXPECT_EQ(FormatTable(p, 100)[2],
            " peer     round  rounds/s       sent      score");
  EXPECT_THAT(FormatLine(p), HasSubstr("ETA 2m30s  consensus"));
}

TEST(Progress, NoTimeLeftIsShownWithoutARate) {
  FleetProgress p = FourPeers();
  p.peers[2].rounds_per_second = 0;
  EXPECT_EQ(TimeLeft(p), std::nullopt);
  EXPECT_THAT(FormatLine(p), Not(HasSubstr("ETA")));
  EXPECT_THAT(FormatTable({.title = "empty"}, 80), SizeIs(4));
}

TEST(Progress, SilentAndFinishedPeersAreMarked) {
  FleetProgress p = FourPeers();
  p.peers[0].silent = absl::Seconds(75);
  p.peers[1].finished = true;
  const std::vector<std::string> lines = FormatTable(p, 100);
  EXPECT_THAT(lines[3], HasSubstr("silent 1m15s"));
  EXPECT_THAT(lines[4], HasSubstr("done"));
}

TEST(Progress, NumbersAreShownInReadableUnits) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(999), "999 B");
  EXPECT_EQ(HumanBytes(1000), "1 kB");
  EXPECT_EQ(HumanBytes(2.5e9), "2.5 GB");
  EXPECT_EQ(HumanDuration(absl::Seconds(59)), "59s");
  EXPECT_EQ(HumanDuration(absl::Seconds(129)), "2m09s");
  EXPECT_EQ(HumanDuration(absl::Minutes(65)), "1h05m");
  EXPECT_EQ(HumanDuration(absl::Hours(50)), "2d02h");
}

TEST(Progress, AFileGetsALineAtATime) {
  std::FILE* file = std::tmpfile();
  ProgressDisplay display(file, absl::Seconds(5));
  for (int s : {0, 1, 4, 6}) {
    display.Show(FourPeers(), kStart + absl::Seconds(s));
  }
  display.Finish(FourPeers());
  std::rewind(file);
  int lines = 0;
  for (int c; (c = std::fgetc(file)) != EOF;) {
    EXPECT_NE(c, '\x1b');
    lines += c == '\n';
  }
  std::fclose(file);
  EXPECT_EQ(lines, 3);
}

TEST(Curves, TicksAreRoundAndFew) {
  EXPECT_THAT(LinearTicks(0, 1000, 5),
              ElementsAre(0, 200, 400, 600, 800, 1000));
  EXPECT_THAT(LinearTicks(-0.3, 0.3, 3), ElementsAre(-0.2, 0, 0.2));
}

// Settled losses differ in their last bit, if at all.
TEST(Curves, TicksEndBetweenNeighbouringNumbers) {
  EXPECT_LE(LinearTicks(1, std::nextafter(1, 2), 8).size(), 2u);
  EXPECT_LE(LinearTicks(1e16, 1e16 + 4, 8).size(), 9u);
}

// Returns width and height from the header of a PNG.
std::pair<uint32_t, uint32_t> PngSize(const std::string& bytes) {
  if (bytes.substr(0, 8) != "\x89PNG\r\n\x1a\n" || bytes.size() < 24) return {};
  const auto big_endian = [&](size_t at) {
    uint32_t v = 0;
    for (size_t i = 0; i < 4; ++i) {
      v = v << 8 | static_cast<unsigned char>(bytes[at + i]);
    }
    return v;
  };
  return {big_endian(16), big_endian(20)};
}

TEST(Curves, DrawsARunAsPng) {
  const TemporaryFolder folder;
  std::vector<PeerLog> peers(4);
  std::vector<Consensus> consensus;
  for (size_t p = 0; p < peers.size(); ++p) {
    const RngKey key = RngKey(1).Fold(p);
    peers[p].label = absl::StrCat("peer ", p);
    for (uint64_t r = 1; r <= 1300; ++r) {
      RoundMetrics m = Round(r);
      const double t = static_cast<double>(r) / 300;
      m.losses[0].value = 0.4 * std::sin(t) - 0.3 + 0.2 * key.Gaussian(r);
      m.losses[1].value = -3 * std::exp(-t) - 0.5 + 0.1 * key.Gaussian(2 * r);
      if (p == 0 && r % 100 == 0) m.score = 2 * std::exp(-t) + 0.02;
      peers[p].rounds.push_back(m);
      if (p == 0 && r % 7 == 0) {
        const double apart = 1e-4 * (0.2 + std::exp(-t));
        consensus.push_back(
            {r,
             apart,
             {{"generator", 0.3 * apart}, {"discriminator", 0.7 * apart}}});
      }
    }
  }
  const std::vector<Panel> panels = RunPanels(peers, consensus);
  ASSERT_THAT(panels, SizeIs(4));
  EXPECT_THAT(panels[3].series, SizeIs(3)) << "the fleet and both players";
  const std::string path = folder.path() + "/curves.png";
  ASSERT_TRUE(DrawCurves(panels, "quick: dp-oadam, 4 peers", path).ok());
  EXPECT_EQ(PngSize(ReadAll(path)), std::pair(1600u, 1056u));
}

TEST(Curves, AllPanelsOfARunEndWithIt) {
  const std::vector<Panel> panels =
      RunPanels({{"peer 0", Rounds(10)}, {"peer 1", Rounds(12)}},
                {{.round = 3, .distance = 1e-3}});
  ASSERT_THAT(panels, SizeIs(3));  // no round was scored
  for (const Panel& panel : panels) EXPECT_EQ(panel.x_end, 12);
}

TEST(Curves, EveryPlayerHasAPanel) {
  std::vector<std::string> titles;
  for (const Panel& panel :
       RunPanels({{"peer 0", {RoundOfThree(1), RoundOfThree(2)}},
                  {"peer 1", {Round(1)}},
                  {"peer 2", {}}},
                 {})) {
    titles.push_back(panel.title);
    EXPECT_THAT(panel.series, SizeIs(1));
  }
  // The third player says no loss.
  EXPECT_THAT(titles, ElementsAre("student loss", "critic loss",
                                  "generator loss", "discriminator loss"));
}

TEST(Curves, AZeroIsLeftOutOfALogarithmicAxis) {
  const TemporaryFolder folder;
  const auto drawn = [&](std::vector<std::pair<double, double>> points) {
    const std::string path = folder.path() + "/zero.png";
    const Panel panel{.title = "consensus distance",
                      .log_y = true,
                      .x_end = 3,
                      .series = {{"a", std::move(points)}}};
    EXPECT_TRUE(DrawCurves({panel}, "zero", path).ok());
    return ReadAll(path);
  };
  EXPECT_EQ(drawn({{1, 10}, {2, 1e-3}, {3, 0}}), drawn({{1, 10}, {2, 1e-3}}));
  // Two such numbers have no finite ratio, so no axis is drawn on them.
  EXPECT_EQ(drawn({{1, 10}, {2, 1e-3}, {3, 1e-300}, {3, 1e300}}),
            drawn({{1, 10}, {2, 1e-3}}));
}

TEST(Curves, FortyLabelsHaveStylesOfTheirOwn) {
  std::set<LineStyle> styles;
  for (size_t i = 0; i < kStyles; ++i) styles.insert(StyleOf(i));
  EXPECT_EQ(styles.size(), kStyles);
  EXPECT_GE(kStyles, 40u);
  // The 40 styles are drawn one by one beside the same legend.
  const TemporaryFolder folder;
  std::set<std::string> pictures;
  for (int last = 0; last < 40; ++last) {
    Panel panel{.title = "t", .markers = true};
    for (int i = 0; i < 40; ++i) {
      panel.series.push_back({absl::StrCat("m", i), {}});
      if (i == last) panel.series.back().points = {{1, 1}, {9, 2}};
    }
    const std::string path = folder.path() + "/styles.png";
    ASSERT_TRUE(DrawCurves({panel}, "styles", path).ok());
    pictures.insert(ReadAll(path));
  }
  EXPECT_EQ(pictures.size(), 40u);
}

TEST(Curves, OddDataDoNotBreakThePicture) {
  const TemporaryFolder folder;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Panel> panels = {
      {.title = "one", .log_y = true, .series = {{"a", {{1, 0}}}}},
      {.title = "none", .series = {{"a", {{1, nan}, {2, INFINITY}}}}},
      {.title = "flat", .log_y = true, .series = {{"a", {{1, 3}, {9, 3}}}}}};
  const std::string path = folder.path() + "/odd.png";
  ASSERT_TRUE(DrawCurves(panels, "odd", path).ok());
  EXPECT_EQ(PngSize(ReadAll(path)), std::pair(1600u, 1056u));
  EXPECT_FALSE(DrawCurves({}, "empty", path).ok());
  EXPECT_FALSE(DrawCurves(panels, "odd", "/nowhere/at/all.png").ok());
}

}  // namespace
}  // namespace gossamer
