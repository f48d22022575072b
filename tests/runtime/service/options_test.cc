// The flags of gossamer-topology, alone and beside a configuration.

#include "runtime/service/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/testing/temporary_folder.h"

namespace gossamer {
namespace options_test {

using ::testing::HasSubstr;

absl::StatusOr<CommandLine> Parse(std::vector<std::string> arguments) {
  std::vector<const char*> argv = {"gossamer-topology"};
  for (const std::string& a : arguments) argv.push_back(a.c_str());
  return ParseCommandLine(static_cast<int>(argv.size()), argv.data());
}

TEST(OptionsTest, FlagsAloneConfigureAFleet) {
  const auto line = Parse({"--set", "peers=8", "--set", "mixing.graph=torus",
                           "--set", "seed=5", "--set", "name=r1"});
  ASSERT_TRUE(line.ok()) << line.status();
  const FleetOptions& fleet = line->options.fleet;
  EXPECT_EQ(fleet.expected, 8);
  EXPECT_EQ(fleet.schedule.graph, "torus");
  EXPECT_EQ(fleet.seed, 5);
  EXPECT_EQ(fleet.configuration_hash, 0);
  // Peers must have what the service decides by; all else is theirs.
  EXPECT_THAT(fleet.configuration, HasSubstr("mixing.graph: \"torus\"\n"));
  for (const std::string& key : fleet.decides) {
    // Texts that are empty by default have no line.
    if (key == "mixing.edges" || key == "mixing.sites") continue;
    EXPECT_THAT("\n" + fleet.configuration, HasSubstr("\n" + key + ": "));
  }
  EXPECT_THAT(fleet.decides, testing::Contains("mixing.overlap_steps"));
  EXPECT_EQ(line->options.listen, "127.0.0.1:7700");
  EXPECT_EQ(line->options.store.folder, "runs/r1/topology");
}

TEST(OptionsTest, AConfigurationIsEnforcedWithWhatIsSetOverIt) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/run.textproto";
  std::ofstream(path) << "name: \"quick\"\npeers: 6\n"
                         "algorithm: \"rand-dp-oadam\"\n";
  auto line = Parse({"--config", path});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->options.fleet.run_id, "quick");
  EXPECT_EQ(line->options.fleet.expected, 6);
  EXPECT_EQ(line->options.fleet.schedule.graph, "permuted-ring");
  EXPECT_TRUE(line->options.fleet.decides.empty());
  const uint64_t six = line->options.fleet.configuration_hash;
  EXPECT_NE(six, 0);
  line = Parse({"--config", path, "--set", "peers=7"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->options.fleet.expected, 7);
  EXPECT_NE(line->options.fleet.configuration_hash, 0);
  EXPECT_NE(line->options.fleet.configuration_hash, six);
}

TEST(OptionsTest, ClippingSetsTheMinimumDegree) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/run.textproto";
  std::ofstream(path) << "peers: 9\nmixing { graph: \"torus\" clip_radius: 1 "
                         "}\n";
  const auto line = Parse({"--config", path});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->options.fleet.min_degree, 4);
  EXPECT_EQ(Parse({"--set", "peers=9"})->options.fleet.min_degree, 0);
  EXPECT_THAT(
      std::string(Parse({"--config", path, "--set", "mixing.graph=ring"})
                      .status()
                      .message()),
      HasSubstr("mixing.clip_radius"));
}

TEST(OptionsTest, CertificatesAndTheInsecureFlagArePassedOn) {
  const auto line = Parse({"--listen", "10.0.0.1:1", "--certs", "certs/t"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->options.exposure.certificates, "certs/t");
  EXPECT_FALSE(line->options.exposure.insecure);
  EXPECT_TRUE(Parse({"--insecure"})->options.exposure.insecure);
}

TEST(OptionsTest, TheStateMayBeInEtcd) {
  const auto line = Parse({"--store", "etcd://127.0.0.1:2379,localhost:2380",
                           "--store-lease", "3"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->options.store.etcd, "127.0.0.1:2379,localhost:2380");
  EXPECT_EQ(line->options.store.folder, "");
  EXPECT_EQ(line->options.store.lease, absl::Seconds(3));
  const std::string away = "etcd://127.0.0.1:2379,10.0.0.1:2379";
  EXPECT_TRUE(Parse({"--store", away, "--store-certs", "certs"}).ok());
  EXPECT_TRUE(Parse({"--store", away, "--insecure"}).ok());
  struct Case {
    std::vector<std::string> arguments;
    std::string says;
  };
  const Case cases[] = {
      {{"--store", away}, "--store-certs"},
      {{"--store", away, "--certs", "c"}, "--store-certs"},
      {{"--store", "etcd://"}, "of the form"},
      {{"--store", "etcd://host"}, "of the form"},
      {{"--store", "etcd://host:1,"}, "of the form"},
      {{"--store", "etcd://host:1/path"}, "of the form"},
      {{"--store", "etcd://host:65536"}, "of the form"},
      {{"--store", "http://127.0.0.1:2379"}, "of the form"},
      {{"--store", "etcd://127.0.0.1:1", "--state", "s"}, "exclude"},
      {{"--store-certs", "certs"}, "without --store"},
      {{"--store-lease", "0"}, "--store-lease"},
  };
  for (const Case& c : cases) {
    const auto refused = Parse(c.arguments);
    EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr(c.says));
  }
}

TEST(OptionsTest, WrongFlagsAreRefusedAndHelpIsShown) {
  EXPECT_FALSE(Parse({"--peeers", "4"}).ok());
  EXPECT_FALSE(Parse({"--set", "peers=four"}).ok());
  EXPECT_FALSE(Parse({"--min-gap", "2"}).ok());
  EXPECT_FALSE(Parse({"--config", "/no/such/file"}).ok());
  for (const char* address : {"127.0.0.1:22x", "127.0.0.1", ":7700", ""}) {
    EXPECT_THAT(std::string(Parse({"--listen", address}).status().message()),
                HasSubstr("of the form HOST:PORT"))
        << address;
  }
  const auto help = Parse({"--help"});
  ASSERT_TRUE(help.ok());
  EXPECT_THAT(help->text, HasSubstr("Examples:"));
}

}  // namespace options_test
}  // namespace gossamer
