// The events of a rehearsed fleet as people write them.

#include "runtime/sim/fleet_event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace gossamer {
namespace {

using ::testing::HasSubstr;

TEST(FleetEvent, IsRead) {
  const FleetEvent join = *ParseFleetEvent("30s join 1000");
  EXPECT_EQ(join.kind, FleetEvent::Kind::kJoin);
  EXPECT_EQ(join.at, absl::Seconds(30));
  EXPECT_EQ(join.peers, 1000);

  const FleetEvent lose = *ParseFleetEvent(" 1m30s  lose 7 ");
  EXPECT_EQ(lose.kind, FleetEvent::Kind::kLose);
  EXPECT_EQ(lose.at, absl::Seconds(90));
  EXPECT_EQ(lose.peers, 7);

  const FleetEvent down = *ParseFleetEvent("90s service-down 500ms");
  EXPECT_EQ(down.kind, FleetEvent::Kind::kServiceDown);
  EXPECT_EQ(down.down, absl::Milliseconds(500));

  const FleetEvent links = *ParseFleetEvent("60s links ocean");
  EXPECT_EQ(links.kind, FleetEvent::Kind::kLinks);
  EXPECT_EQ(links.preset, FindLinkPreset("ocean"));
}

TEST(FleetEvent, AnErrorSaysWhatToWrite) {
  const struct {
    const char* text;
    const char* says;
  } wrong[] = {
      {"", "write \"30s join"},
      {"30s join", "write \"30s join"},
      {"30 join 5", "has no time"},
      {"-3s join 5", "has no time"},
      {"inf join 5", "has no time"},
      {"30s leave 5", "unknown word, \"leave\""},
      {"30s join few", "\"few\" peers"},
      {"30s lose 0", "there can be 1 to"},
      {"30s lose -1", "there can be 1 to"},
      {"30s join 99999", "there can be 1 to 16384"},
      {"30s service-down 5", "for how long"},
      {"30s links lake", "no link preset; there are lan, zone, region, ocean"},
  };
  for (const auto& w : wrong) {
    const auto event = ParseFleetEvent(w.text);
    ASSERT_FALSE(event.ok()) << w.text;
    EXPECT_THAT(event.status().message(), HasSubstr(w.says)) << w.text;
  }
}

absl::Status Check(const std::vector<const char*>& texts, bool elastic) {
  std::vector<FleetEvent> events;
  for (const char* text : texts) events.push_back(*ParseFleetEvent(text));
  return CheckFleetEvents(events, /*peers=*/10, elastic);
}

TEST(FleetEvent, SomePeersAreAlwaysLeft) {
  EXPECT_TRUE(Check({"1s lose 8"}, true).ok());
  EXPECT_FALSE(Check({"1s lose 9"}, true).ok());
  EXPECT_TRUE(Check({"1s join 1", "2s lose 9"}, true).ok());
  // The order is that of time.
  EXPECT_FALSE(Check({"3s join 1", "2s lose 9"}, true).ok());
  EXPECT_TRUE(Check({"2s lose 9", "1s join 1"}, true).ok());
}

TEST(FleetEvent, ACentralizedFleetTakesNobodyUnderWay) {
  EXPECT_THAT(Check({"1s join 1"}, false).message(), HasSubstr("centralized"));
  EXPECT_TRUE(Check({"1s service-down 1s"}, false).ok());
}

}  // namespace
}  // namespace gossamer
