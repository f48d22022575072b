// gossamer certs as people meet it.

#include <algorithm>
#include <filesystem>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/identity/authority_folder.h"
#include "tests/testing/cli_program.h"

namespace gossamer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

class CertsTest : public Cli {
 protected:
  void Init() { ASSERT_EQ(Run("certs init --run r --ca ca").code, 0); }
  Json Shown(const std::string& what) {
    const Result shown = Run("certs show --json " + what);
    EXPECT_EQ(shown.code, 0) << shown.err;
    return Json::parse(shown.out);
  }
};

TEST_F(CertsTest, AFleetGetsAFolderEach) {
  Init();
  const Result issued = Run("certs issue --ca ca --fleet 2 --out certs");
  ASSERT_EQ(issued.code, 0) << issued.err;
  for (const char* who : {"topology", "operator", "peer-1", "peer-2"}) {
    for (const char* file : {"ca.pem", "cert.pem", "key.pem", "crl.pem"}) {
      EXPECT_TRUE(std::filesystem::exists(folder_.path() + "/certs/" + who +
                                          "/" + file))
          << who << " " << file;
    }
    EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/certs/" + who +
                                         "/ca-key.pem"));
  }
  const Json own = Shown("--certs certs/peer-2");
  ASSERT_EQ(own.size(), 1u);
  EXPECT_EQ(own[0]["identity"], "gossamer://r/2");
  // The service has one more, to sign views with.
  int signers = 0;
  const Json all = Shown("--ca ca");
  for (const Json& c : all) signers += c["use"] == "views" ? 1 : 0;
  EXPECT_EQ(all.size(), 5u);
  EXPECT_EQ(signers, 1);
  EXPECT_THAT(Run("certs show --ca ca").out, HasSubstr("  signs views\n"));
}

TEST_F(CertsTest, RevokesAndPublishes) {
  Init();
  ASSERT_EQ(Run("certs issue --ca ca --fleet 2 --out certs").code, 0);
  ASSERT_EQ(Run("certs revoke --ca ca --id 2 --publish certs/peer-2").code, 0);
  for (const Json& c : Shown("--ca ca")) {
    EXPECT_EQ(c["revoked"], c["identity"] == "gossamer://r/2");
  }
  const Result revoked = Run("certs show --certs certs/peer-2");
  EXPECT_NE(revoked.code, 0);
  EXPECT_THAT(revoked.err, HasSubstr("revoked"));
  EXPECT_EQ(Run("certs show --certs certs/peer-1").code, 0);
}

TEST_F(CertsTest, ASerialThatWasNeverIssuedIsNotRevoked) {
  Init();
  ASSERT_EQ(Run("certs issue --ca ca --fleet 2 --out certs").code, 0);
  const std::string two = Shown("--certs certs/peer-2")[0]["serial"];
  std::string slip = two;
  slip.back() = slip.back() == '0' ? '1' : '0';
  const std::string before = ReadAll(folder_.path() + "/ca/crl.pem");
  const Result refused = Run("certs revoke --ca ca --serial " + slip);
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr(slip), HasSubstr("--unknown")));
  EXPECT_EQ(ReadAll(folder_.path() + "/ca/crl.pem"), before);
  // It may be meant: the folder's copy of the certificate is lost.
  const Result meant = Run("certs revoke --ca ca --unknown --serial " + slip);
  EXPECT_EQ(meant.code, 0) << meant.err;
  EXPECT_NE(ReadAll(folder_.path() + "/ca/crl.pem"), before);
  EXPECT_EQ(Run("certs revoke --ca ca --unknown --serial x").code, 2);
  // Other tools print capitals.
  const Result revoked =
      Run("certs revoke --ca ca --serial " + absl::AsciiStrToUpper(two));
  EXPECT_EQ(revoked.code, 0) << revoked.err;
  EXPECT_THAT(revoked.out, AllOf(HasSubstr("gossamer://r/2"),
                                 HasSubstr("revoked 1 certificate")));
  for (const Json& c : Shown("--ca ca")) {
    EXPECT_EQ(c["revoked"], c["identity"] == "gossamer://r/2") << c;
  }
}

// Else a peer whose certificates live for an hour fills the list within weeks.
TEST_F(CertsTest, WhatHasEndedIsNotRevokedUnlessItIsNamed) {
  Init();
  ASSERT_EQ(Run("certs issue --ca ca --fleet 1 --out certs").code, 0);
  const auto authority = AuthorityFolder::Open(folder_.path() + "/ca");
  ASSERT_TRUE(authority.ok()) << authority.status();
  const absl::Time now = absl::Now();
  const auto issue = [&](absl::Duration ago) {
    const auto issued =
        authority->Issue({.run = "r", .peer = {1}}, {}, now - ago,
                         absl::Hours(1), folder_.path() + "/certs/peer-1");
    EXPECT_TRUE(issued.ok()) << issued.status();
    return issued->serial;
  };
  // Another machine's clock may be behind: what has just ended goes, too.
  const std::string ended = issue(absl::Hours(3));
  issue(absl::Minutes(90));
  const Result revoked = Run("certs revoke --ca ca --id 1");
  EXPECT_EQ(revoked.code, 0) << revoked.err;
  EXPECT_THAT(revoked.out, AllOf(HasSubstr("left out: 1 certificate of peer 1"),
                                 HasSubstr("revoked 2 certificates")));
  for (const Json& c : Shown("--ca ca")) {
    EXPECT_EQ(c["revoked"],
              c["identity"] == "gossamer://r/1" && c["serial"] != ended)
        << c;
  }
  EXPECT_EQ(Run("certs revoke --ca ca --id 1").code, 2);
  EXPECT_EQ(Run("certs revoke --ca ca --serial " + ended).code, 0);
  for (const Json& c : Shown("--ca ca")) {
    EXPECT_EQ(c["revoked"], c["identity"] == "gossamer://r/1") << c;
  }
}

// A token that is left would let in whoever has stolen it.
TEST_F(CertsTest, RevokingAPeerTakesItsUnusedTokens) {
  Init();
  ASSERT_EQ(Run("certs issue --ca ca --fleet 3 --out certs").code, 0);
  const auto token = [&](int id) {
    const Result made =
        Run("certs token --json --ca ca --id " + std::to_string(id));
    EXPECT_EQ(made.code, 0) << made.err;
    return Json::parse(made.out)["id"].get<std::string>();
  };
  const std::string stolen = token(3), new_one = token(4), other = token(2);
  const Result revoked = Run("certs revoke --ca ca --id 3");
  EXPECT_EQ(revoked.code, 0) << revoked.err;
  EXPECT_THAT(revoked.out,
              AllOf(HasSubstr("token " + stolen + " of peer 3 lets nobody in"),
                    HasSubstr("revoked 1 certificate")));
  EXPECT_EQ(Run("certs revoke --ca ca --token " + stolen).code, 2);
  // One who has nothing else.
  const Result cancelled = Run("certs revoke --ca ca --id 4");
  EXPECT_EQ(cancelled.code, 0) << cancelled.err;
  EXPECT_THAT(cancelled.out, HasSubstr("token " + new_one));
  EXPECT_EQ(Run("certs revoke --ca ca --id 4").code, 2);
  EXPECT_EQ(Run("certs revoke --ca ca --token " + other).code, 0);
}

TEST_F(CertsTest, RevocationsAtOnceAllCount) {
  Init();
  ASSERT_EQ(Run("certs issue --ca ca --fleet 8 --out certs").code, 0);
  const Result revoked = Run(
      "certs show --ca ca >/dev/null; for i in 1 2 3 4 5 6 7 8; do " +
      program_ +
      " certs revoke --ca ca --id $i --publish certs/operator & done; wait");
  EXPECT_EQ(revoked.code, 0) << revoked.err;
  int count = 0;
  for (const Json& c : Shown("--ca ca")) count += c["revoked"] == true;
  EXPECT_EQ(count, 8);
  // Nor does an older list take the place of a newer one that is published.
  EXPECT_EQ(ReadAll(folder_.path() + "/certs/operator/crl.pem"),
            ReadAll(folder_.path() + "/ca/crl.pem"));
}

TEST_F(CertsTest, WrongInputsAreOneLineEach) {
  Init();
  const auto refusal = [&](const std::string& arguments) {
    const Result result = Run("certs " + arguments);
    EXPECT_EQ(result.code, 2) << arguments;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1)
        << result.err;
    return result.err;
  };
  EXPECT_THAT(refusal("init --run r --ca ca"), HasSubstr("already"));
  EXPECT_THAT(refusal("init --run ../r --ca other"), HasSubstr("--run"));
  EXPECT_THAT(refusal("issue --ca nowhere --id 1 --out x"),
              HasSubstr("certs init"));
  EXPECT_THAT(refusal("issue --ca ca --out x"), HasSubstr("--id"));
  EXPECT_THAT(refusal("issue --ca ca --id 0 --out x"), HasSubstr("from 1"));
  EXPECT_THAT(refusal("issue --ca ca --id 1 --role operator --out x"),
              HasSubstr("--role"));
  EXPECT_THAT(refusal("issue --ca ca --fleet 2 --id 1 --out x"),
              HasSubstr("--fleet"));
  EXPECT_THAT(refusal("issue --ca ca --id 1 --out x --name 'a b'"),
              HasSubstr("host name"));
  EXPECT_THAT(refusal("issue --ca ca --id 1 --out x --days 0"),
              HasSubstr("--days"));
  EXPECT_THAT(refusal("issue --ca ca --id 1 --out x --for 3"),
              HasSubstr("2m30s"));
  EXPECT_THAT(refusal("issue --ca ca --id 1 --out x --for -1h"),
              HasSubstr("2m30s"));
  EXPECT_THAT(refusal("revoke --ca ca --id 9"), HasSubstr("peer 9"));
  EXPECT_THAT(refusal("show"), AllOf(HasSubstr("--ca"), HasSubstr("--certs")));
  EXPECT_THAT(refusal("show --certs ca"), HasSubstr("cert.pem"));
  EXPECT_THAT(Run("certs --help").out, HasSubstr("examples:"));
}

TEST_F(CertsTest, AskingBeyondThisMachineNeedsThem) {
  const Result refused = Run("status --topology 192.0.2.1:7700");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("--certs"), HasSubstr("--insecure")));
}

}  // namespace
}  // namespace gossamer
