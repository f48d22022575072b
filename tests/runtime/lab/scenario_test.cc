// Scenarios of networks: what a file says about links, and the place of every
// mistake.

#include "runtime/lab/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "nlohmann/json.hpp"
#include "runtime/lab/link_presets.h"
#include "runtime/lab/units.h"

namespace gossamer {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr Nanos kMilli = 1'000'000;

Scenario Parse(std::string_view text,
               std::optional<uint32_t> hosts = std::nullopt) {
  const auto scenario = ParseScenario(text, "s.textproto", hosts);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  return scenario.ok() ? *scenario : Scenario();
}

std::string Error(std::string_view text,
                  std::optional<uint32_t> hosts = std::nullopt) {
  const auto scenario = ParseScenario(text, "s.textproto", hosts);
  EXPECT_FALSE(scenario.ok()) << text;
  return scenario.ok() ? "" : std::string(scenario.status().message());
}

TEST(Scenario, IsAPlainNetworkByDefault) {
  const Scenario s = Parse("");
  ASSERT_THAT(s.hosts, SizeIs(4));
  EXPECT_EQ(s.hosts[3].name, "host-3");
  EXPECT_EQ(s.links.At(0, 1).delay, 0);
  EXPECT_EQ(s.links.At(0, 1).bytes_per_second, 0u);
  EXPECT_EQ(s.links.At(0, 1).queue_bytes, 8'000'000u);
  EXPECT_EQ(s.mtu, 1500u);
  EXPECT_FALSE(s.stock_tcp);
  EXPECT_THAT(Parse("", 7).hosts, SizeIs(7));
  EXPECT_THAT(Parse("hosts: 9").hosts, SizeIs(9));
  EXPECT_EQ(Parse("hosts: 9", 3).links.size(), 3u);
}

TEST(Scenario, TakesAllThatALinkCanBe) {
  const Scenario s = Parse(R"(
    hosts: 2 tcp: "stock" mtu: 9000 seed: 5
    link { rtt: "100ms" rate: "100mbit" jitter: "2ms" loss: 0.01 queue: "16MB"
           outage { from: "1s" to: "2s" } outage { from: "5s" to: "6s" } })");
  for (const LinkSpec& link : {s.links.At(0, 1), s.links.At(1, 0)}) {
    EXPECT_EQ(link.delay, 50 * kMilli);
    EXPECT_EQ(link.bytes_per_second, 12'500'000u);
    EXPECT_EQ(link.jitter, 2 * kMilli);
    EXPECT_EQ(link.loss, 0.01);
    EXPECT_EQ(link.queue_bytes, 16'000'000u);
    ASSERT_THAT(link.outages, SizeIs(2));
    EXPECT_EQ(link.outages[1].from, 5000 * kMilli);
    EXPECT_EQ(link.outages[1].to, 6000 * kMilli);
  }
  EXPECT_TRUE(s.stock_tcp);
}

TEST(Scenario, HostsMayHaveAnUplink) {
  const Scenario s = Parse(R"(
    uplink: "100mbit"
    region { name: "us" hosts: 1 } region { name: "eu" uplink: "1gbit" })");
  EXPECT_EQ(s.hosts[0].uplink, 12'500'000u);
  EXPECT_EQ(s.hosts[1].uplink, 125'000'000u);
  EXPECT_EQ(Parse("").hosts[0].uplink, 0u);
  EXPECT_THAT(ScenarioText(s),
              HasSubstr("us-0: 100 Mbit/s to all others together"));
  const auto json = nlohmann::json::parse(ScenarioJson(s));
  EXPECT_EQ(json["hosts"][1]["uplink_bits_per_second"], 1'000'000'000);
}

TEST(Scenario, LinksMayBeLikeARungOfTheLadder) {
  const Scenario s = Parse(R"(
    hosts: 3
    link { like: "lan" }
    link { a: "host-1" like: "mobile" rtt: "90ms" b_to_a { loss_burst: 9 } })");
  EXPECT_EQ(s.links.At(0, 2).delay, kMilli / 10);
  EXPECT_EQ(s.links.At(1, 0).delay, 45 * kMilli);
  EXPECT_EQ(s.links.At(1, 0).bytes_per_second, 1'250'000u);
  EXPECT_EQ(s.links.At(1, 0).reorder, 0.01);
  EXPECT_EQ(s.links.At(1, 0).loss_burst, 4);
  EXPECT_EQ(s.links.At(0, 1).loss_burst, 9);
  // Each preset is a scenario of its own, and no preset is better than one
  // before.
  double delay = 0;
  for (const LinkPreset& preset : kLinkPresets) {
    const Scenario of = Parse(
        absl::StrCat("link { like: \"", std::string(preset.name), "\" }"));
    EXPECT_GT(of.links.At(0, 1).bytes_per_second, 0u) << preset.name;
    if (preset.name == "home") delay = 0;
    EXPECT_GE(of.links.At(0, 1).delay, delay) << preset.name;
    delay = static_cast<double>(of.links.At(0, 1).delay);
  }
}

TEST(Scenario, RunsOfLossesLeaveRoomForAPacketBetween) {
  EXPECT_THAT(
      Error("link { loss: 0.9 } link { a: \"host-1\" loss_burst: 4 }"),
      HasSubstr("host-0 to host-1 loses 0.9 of its packets, 4 in a row"));
  EXPECT_EQ(Parse("link { loss: 0.8 loss_burst: 4 }").links.At(0, 1).loss, 0.8);
  EXPECT_EQ(Parse("link { loss: 1 loss_burst: 4 }").links.At(0, 1).loss, 1);
}

TEST(Scenario, ARungLeavesOutages) {
  const Scenario s = Parse(R"(
    link { outage { from: "1s" to: "2s" } } link { a: "host-1" like: "ocean" })");
  EXPECT_THAT(s.links.At(0, 1).outages, SizeIs(1));
}

TEST(Scenario, DirectionsMayDiffer) {
  const Scenario s = Parse(R"(
    hosts: 3
    link { a: "host-2" b: "host-0" delay: "10ms" rate: "1gbit"
           a_to_b { delay: "30ms" rate: "10mbit" } b_to_a { loss: 0.5 } })");
  EXPECT_EQ(s.links.At(2, 0).delay, 30 * kMilli);
  EXPECT_EQ(s.links.At(0, 2).delay, 10 * kMilli);
  EXPECT_EQ(s.links.At(2, 0).bytes_per_second, 1'250'000u);
  EXPECT_EQ(s.links.At(0, 2).bytes_per_second, 125'000'000u);
  EXPECT_EQ(s.links.At(2, 0).loss, 0);
  EXPECT_EQ(s.links.At(0, 2).loss, 0.5);
  EXPECT_EQ(s.links.At(0, 1).delay, 0);
}

TEST(Scenario, AHostAloneMeansAllItsLinks) {
  const Scenario s = Parse(R"(
    hosts: 3 link { a: "host-1" rtt: "8ms" a_to_b { rate: "1mbit" } })");
  for (int other : {0, 2}) {
    EXPECT_EQ(s.links.At(1, other).delay, 4 * kMilli);
    EXPECT_EQ(s.links.At(other, 1).delay, 4 * kMilli);
    EXPECT_EQ(s.links.At(1, other).bytes_per_second, 125'000u);
    EXPECT_EQ(s.links.At(other, 1).bytes_per_second, 0u);
  }
  EXPECT_EQ(s.links.At(0, 2).delay, 0);
}

TEST(Scenario, TheMoreSpecificLinkCountsFieldByField) {
  // The links are in the file's worst order.
  const Scenario s = Parse(R"(
    region { name: "us" hosts: 2 } region { name: "eu" hosts: 2 }
    link { a: "us-1" b: "eu-1" rtt: "6ms" }
    link { a: "us-0" b: "eu" rtt: "5ms" }
    link { a: "us-1" rtt: "4ms" }
    link { a: "us" b: "eu" rtt: "3ms" rate: "3mbit" }
    link { a: "us" b: "us" rate: "9mbit" }
    link { a: "us" rtt: "2ms" }
    link { rtt: "1ms" rate: "1mbit" })");
  const auto rtt = [&s](int i, int j) { return s.links.At(i, j).delay * 2; };
  // The hosts are us-0, us-1, eu-0, eu-1.
  EXPECT_EQ(rtt(2, 3), kMilli);
  EXPECT_EQ(rtt(0, 1), 4 * kMilli);
  EXPECT_EQ(rtt(0, 2), 5 * kMilli);
  EXPECT_EQ(rtt(3, 0), 5 * kMilli);
  EXPECT_EQ(rtt(1, 2), 4 * kMilli);
  EXPECT_EQ(rtt(1, 3), 6 * kMilli);
  EXPECT_EQ(s.links.At(1, 3).bytes_per_second, 375'000u);
  EXPECT_EQ(s.links.At(0, 1).bytes_per_second, 1'125'000u);
  EXPECT_EQ(s.links.At(2, 3).bytes_per_second, 125'000u);
  EXPECT_EQ(s.hosts[2].name, "eu-0");
  EXPECT_EQ(s.hosts[2].region, "eu");
}

// A text with one mistake, and its error.
struct Wrong {
  const char* text;
  const char* error;
};

// Every error has its line and column.
const Wrong kWrong[] = {
    {"hostz: 3",
     "s.textproto:1:1: there is no key \"hostz\"; "
     "did you mean \"hosts\"?"},
    {"\nlink { rtt 5 }", "s.textproto:2:"},
    {"link { rt: \"5ms\" }", "did you mean \"rtt\"?"},
    {"link { rtt: 5 }", "s.textproto:1:13"},
    {"hosts: 1",
     "s.textproto:1:1: hosts makes 1 hosts; there can be 2 to 16384"},
    {"hosts: 16385", "there can be 2 to 16384"},
    {"hosts: -2", "s.textproto:1:"},
    {"hosts: 2 region { name: \"a\" }", "cannot both be"},
    {"region { name: \"a\" }", "makes 1 hosts"},
    {"region { hosts: 3 }", "s.textproto:1:1: region[0].name is \"\""},
    {"region { name: \"a b\" }", "letters"},
    {"region { name: \"a\" hosts: 0 }", "region[0].hosts is 0"},
    {"region { name: \"a\" hosts: 17000 }", "region[0].hosts is 17000"},
    {"region { name: \"a\" }\nregion { name: \"a\" }",
     "s.textproto:2:10: region[1].name is \"a\" a second time"},
    {"region { name: \"a\" } region { name: \"a-0\" }", "also a region"},
    {"link {}\nlink { rtt: \"-1ms\" }",
     "s.textproto:2:8: link[1].rtt is \"-1ms\"; it cannot be negative"},
    {"link { rtt: \"soon\" }", "write a duration with a unit"},
    {"link { rtt: \"100\" }", "write a duration with a unit"},
    {"link { rtt: \"5h\" }", "at most 2m"},
    {"link { rtt: \"inf\" }", "at most 2m"},
    {"link { delay: \"-1ms\" }", "link[0].delay is"},
    {"link { rtt: \"1ms\" delay: \"1ms\" }", "twice"},
    {"link { a: \"host-0\" rtt: \"1ms\" a_to_b { delay: \"1ms\" } }", "twice"},
    {"link { rate: \"0mbit\" }", "carries nothing"},
    {"link { rate: \"100\" }", "with a unit"},
    {"link { rate: \"-5mbit\" }", "with a unit"},
    {"link { rate: \"fast\" }", "such as 100mbit, or unlimited"},
    {"link { rate: \"1bit\" }", "between 1kbit and 1000gbit"},
    {"link { rate: \"99999gbit\" }", "between 1kbit and 1000gbit"},
    {"link { rate: \"1.2.3mbit\" }", "with a unit"},
    {"link { jitter: \"-1ms\" }", "link[0].jitter is \"-1ms\""},
    {"link { loss: 1.5 }", "link[0].loss is 1.5; a probability"},
    {"link { loss: -0.1 }", "a probability"},
    {"link { loss: nan }", "a probability"},
    {"link { loss_burst: 0.5 }", "link[0].loss_burst is 0.5; it is a number"},
    {"link { reorder: 2 }", "link[0].reorder is 2; a probability"},
    {"link { reorder_delay: \"-1ms\" }", "link[0].reorder_delay is \"-1ms\""},
    {"link { like: \"oceann\" }", "no link preset; did you mean \"ocean\"?"},
    {"uplink: \"fast\"", "s.textproto:1:1: uplink is \"fast\""},
    {"region { name: \"x\" hosts: 2 uplink: \"1bit\" }",
     "region[0].uplink is \"1bit\""},
    {"link { queue: \"1KB\" }", "between 64KB and 1GB"},
    {"link { queue: \"8\" }", "with a unit"},
    {"link { a: \"host-9\" }",
     "link[0].a is \"host-9\", neither a host nor a "
     "region; did you mean \"host-0\"?"},
    {"region { name: \"paris\" hosts: 2 } link { a: \"pari\" }",
     "did you mean \"paris\"?"},
    {"link { b: \"host-1\" }", "needs an a"},
    {"link { a: \"host-1\" b: \"host-1\" }", "no link to itself"},
    {"link {} link {}", "link[1] is for the same pair"},
    {"link { a: \"host-1\" b: \"host-2\" } link { a: \"host-2\" b: \"host-1\" "
     "}",
     "same pair"},
    {"link { a_to_b { rate: \"1mbit\" } }", "which way is which"},
    {"region { name: \"x\" hosts: 2 } link { a: \"x\" b: \"x\" b_to_a {} }",
     "which way is which"},
    {"link { a: \"host-1\" b_to_a { loss: 2 } }", "link[0].b_to_a.loss is 2"},
    {"link { outage { from: \"1s\" } }", "link[0].outage[0] needs from and to"},
    {"link { outage { from: \"2s\" to: \"1s\" } }", "not after from"},
    {"link { outage { from: \"-2s\" to: \"1s\" } }", "negative"},
    {"link { outage { from: \"1s\" to: \"3s\" }\n"
     "outage { from: \"2s\" to: \"4s\" } }",
     "link[0].outage has two that overlap, at 2000 ms"},
    {"link { outage { from: \"1s\" to: \"3s\" every: \"2s\" } }",
     "never be up"},
    {"link { outage { from: \"1s\" to: \"2s\" every: \"9s\" }"
     " outage { from: \"3s\" to: \"4s\" } }",
     "only outage"},
    {"mtu: 100", "s.textproto:1:1: mtu is 100; it must lie between 576"},
    {"mtu: 70000", "mtu is 70000"},
    {"tcp: \"fast\"", "tcp is \"fast\"; known: wan, stock"},
};

TEST(Scenario, RefusesNonsenseWithItsPlaceAndWhatToDo) {
  for (const Wrong& wrong : kWrong) {
    const std::string error = Error(wrong.text);
    EXPECT_THAT(error, HasSubstr(wrong.error)) << wrong.text;
    EXPECT_THAT(error, StartsWith("s.textproto:")) << wrong.text;
  }
}

TEST(Scenario, TellsEveryProblemAtOnce) {
  const std::string error = Error("link { loss: 2\n rate: \"0bit\" }\nmtu: 1");
  EXPECT_THAT(error, HasSubstr("\ns.textproto:1:8: link[0].loss"));
  EXPECT_THAT(error, HasSubstr("s.textproto:2:2: link[0].rate"));
  EXPECT_THAT(error, HasSubstr("\ns.textproto:3:1: mtu"));
}

TEST(Scenario, RefusesMoreHostsThanItHas) {
  EXPECT_THAT(Error("hosts: 3", 4), HasSubstr("has 3 hosts, but 4 are needed"));
  EXPECT_THAT(Error("", 16'385), HasSubstr("there can be 1 to 16384"));
  EXPECT_THAT(Error("", 0), HasSubstr("there can be 1 to 16384"));
}

// Hosts that no link tells apart share their links, but for those of one host
// by its name.
TEST(Scenario, TenThousandHostsHaveFewLinks) {
  const Scenario s = Parse(R"(
      region { name: "paris" hosts: 5000 }
      region { name: "tokyo" hosts: 5000 }
      link { a: "paris" b: "paris" rtt: "2ms" }
      link { a: "paris" b: "tokyo" delay: "100ms" b_to_a { delay: "150ms" } }
      link { a: "tokyo-7" rtt: "500ms" })");
  EXPECT_EQ(s.hosts.size(), 10'000u);
  EXPECT_EQ(s.links.specs().size(), 3u);
  EXPECT_EQ(s.links.At(1, 4999).delay, kMilli);
  EXPECT_EQ(s.links.At(4999, 5000).delay, 100 * kMilli);
  EXPECT_EQ(s.links.At(5000, 4999).delay, 150 * kMilli);
  EXPECT_EQ(s.links.At(5007, 3).delay, 250 * kMilli);
  EXPECT_EQ(s.links.At(5006, 5008).delay, 0);
  const auto json = nlohmann::json::parse(ScenarioJson(s));
  EXPECT_EQ(json["hosts_in_all"], 10'000);
  EXPECT_EQ(json["hosts"].size(), 3u);
  EXPECT_EQ(json["links"].size(), 9u);
}

TEST(Scenario, FilesThatComeWithItAreRight) {
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator("deploy/lab")) {
    if (entry.path().extension() != ".textproto") continue;
    ++seen;
    const auto scenario = LoadScenario(entry.path(), std::nullopt);
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    EXPECT_THAT(ScenarioText(*scenario), HasSubstr("RTT without queues"));
  }
  EXPECT_GE(seen, 6);
  EXPECT_EQ(LoadScenario("deploy/lab/none", std::nullopt).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Scenario, ShowsItself) {
  const Scenario s = Parse(R"(
    hosts: 2 link { rtt: "30ms" rate: "10mbit" loss: 0.25 jitter: "1ms"
                    outage { from: "1s" to: "2s" every: "9s" } })");
  const std::string text = ScenarioText(s);
  for (const char* part : {"host-1", "30", "Mbit/s", "25", "every 9 s"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  const auto json = nlohmann::json::parse(ScenarioJson(s));
  EXPECT_EQ(json["hosts"][1]["address"], "10.77.0.2");
  ASSERT_EQ(json["links"].size(), 2u);
  EXPECT_EQ(json["links"][0]["delay_ms"], 15.0);
  EXPECT_EQ(json["links"][0]["bits_per_second"], 10'000'000);
  EXPECT_EQ(json["links"][1]["outages"][0]["every_s"], 9.0);
}

TEST(Units, AreReadAndWritten) {
  EXPECT_EQ(*ParseRate("1.5 Mbit"), 187'500u);
  EXPECT_EQ(*ParseRate("unlimited"), 0u);
  EXPECT_EQ(*ParseQueueSize("64KiB"), 65'536u);
  EXPECT_EQ(*ParseNanos("1.5ms", 1), 1'500'000);
  EXPECT_EQ(RateText(0), "unlimited");
  EXPECT_EQ(RateText(12'500'000), "100 Mbit/s");
  EXPECT_EQ(RateText(312'500'000), "2.5 Gbit/s");
  EXPECT_EQ(RateText(125), "1 kbit/s");
  EXPECT_EQ(MillisText(12'500'000), "12.5 ms");
}

}  // namespace
}  // namespace gossamer
