// `gossamer certs` from outside: the folders it writes, the lists it keeps, and
// its answers to wrong input.

#include <sys/stat.h>

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
namespace certs_command_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
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

TEST_F(CertsTest, ServiceOperatorAndPeersEachGetAFolder) {
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
  // The service has a second certificate, for signing views.
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
  // --unknown revokes on purpose: the folder's copy of the certificate may be
  // lost.
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

// Otherwise a peer whose certificates are valid for an hour would fill the list
// within weeks.
TEST_F(CertsTest, ALongExpiredCertificateIsNotRevoked) {
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
  // Another machine's clock may be behind, so a certificate that has just ended
  // is revoked too.
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
  const std::string before = ReadAll(folder_.path() + "/ca/crl.pem");
  const Result named = Run("certs revoke --ca ca --serial " + ended);
  EXPECT_EQ(named.code, 2);
  EXPECT_THAT(named.err, AllOf(HasSubstr(ended), HasSubstr("peer 1 ended at")));
  EXPECT_EQ(ReadAll(folder_.path() + "/ca/crl.pem"), before);
}

TEST_F(CertsTest, ConcurrentRevocationsAllCount) {
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
  // An older list does not replace a newer published one either.
  EXPECT_EQ(ReadAll(folder_.path() + "/certs/operator/crl.pem"),
            ReadAll(folder_.path() + "/ca/crl.pem"));
}

TEST_F(CertsTest, WrongInputIsRefusedInOneLine) {
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

// The commands are those that the program prints as next steps, between two
// folders that share nothing.
TEST_F(CertsTest, AMachineMakesItsKeyAndGetsItsCertificate) {
  Init();
  const Result asked = Run("certs request --id 9 --run r --out machine/certs");
  ASSERT_EQ(asked.code, 0) << asked.err;
  EXPECT_THAT(asked.out, AllOf(HasSubstr("gossamer://r/9"),
                               HasSubstr("certs sign"), HasSubstr("--id 9"),
                               HasSubstr("certs show --certs machine/certs")));
  const std::string folder = folder_.path() + "/machine/certs";
  struct stat info = {};
  ASSERT_EQ(::stat((folder + "/key.pem").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_THAT(
      ReadAll(folder + "/request.pem"),
      AllOf(HasSubstr("CERTIFICATE REQUEST"), Not(HasSubstr("PRIVATE"))));
  EXPECT_NE(Run("certs show --certs machine/certs").code, 0);
  std::filesystem::copy(folder + "/request.pem",
                        folder_.path() + "/request.pem");

  // Nothing is signed before a person confirms it.
  const Result seen =
      Run("certs sign --ca ca --request request.pem --out answer");
  EXPECT_EQ(seen.code, 2);
  EXPECT_THAT(seen.err, AllOf(HasSubstr("asks for gossamer://r/9"),
                              HasSubstr("SHA-256"), HasSubstr("add --id 9")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/answer"));
  EXPECT_TRUE(Shown("--ca ca").empty());
  const Result answered = Run(
      "certs sign --ca ca --request request.pem --id 9 --out answer --for 12h "
      "--name host.example");
  ASSERT_EQ(answered.code, 0) << answered.err;
  EXPECT_THAT(answered.out, HasSubstr("copy ca.pem, crl.pem, cert.pem"));
  // Both programs have printed the same key.
  const size_t at = answered.out.find("SHA-256 ");
  ASSERT_NE(at, std::string::npos);
  const std::string digest = answered.out.substr(at, 8 + 64);
  EXPECT_THAT(asked.out, HasSubstr(digest));
  EXPECT_THAT(seen.err, HasSubstr(digest));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/answer/key.pem"));
  std::filesystem::copy(folder_.path() + "/answer", folder);
  const Json own = Shown("--certs machine/certs");
  ASSERT_EQ(own.size(), 1u);
  EXPECT_EQ(own[0]["identity"], "gossamer://r/9");
  EXPECT_EQ(own[0]["names"][0], "host.example");

  // The certificate is in the authority's book, and is revoked like any other.
  const Json all = Shown("--ca ca");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0]["serial"], own[0]["serial"]);
  EXPECT_EQ(Run("certs revoke --ca ca --id 9 --publish machine/certs").code, 0);
  EXPECT_THAT(Run("certs show --certs machine/certs").err,
              HasSubstr("revoked"));
}

TEST_F(CertsTest, TheServiceAndOperatorsRequestCertificatesAsPeersDo) {
  Init();
  for (const std::string role : {"topology", "operator"}) {
    ASSERT_EQ(
        Run("certs request --run r --role " + role + " --out " + role).code, 0);
    const Result answered =
        Run("certs sign --ca ca --request " + role + "/request.pem --role " +
            role + " --out " + role);
    EXPECT_EQ(answered.code, 0) << answered.err;
    const Json own = Shown("--certs " + role);
    EXPECT_EQ(own[0]["identity"], "gossamer://r/" + role);
  }
  // The service has a second certificate, for signing views.
  EXPECT_EQ(Shown("--ca ca").size(), 3u);
  // The certificate is renewed before it ends, with the same key.
  const std::string key = ReadAll(folder_.path() + "/operator/key.pem");
  ASSERT_EQ(
      Run("certs request --run r --role operator --out operator --same-key")
          .code,
      0);
  ASSERT_EQ(Run("certs sign --ca ca --request operator/request.pem --role "
                "operator --out operator --days 2")
                .code,
            0);
  EXPECT_EQ(ReadAll(folder_.path() + "/operator/key.pem"), key);
  EXPECT_EQ(Run("certs show --certs operator").code, 0);
}

TEST_F(CertsTest, AWrongRequestIsRefusedInOneLine) {
  Init();
  const auto refusal = [&](const std::string& arguments) {
    const Result result = Run("certs " + arguments);
    EXPECT_EQ(result.code, 2) << arguments;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1)
        << result.err;
    return result.err;
  };
  ASSERT_EQ(Run("certs request --id 9 --run r --out nine").code, 0);
  EXPECT_THAT(refusal("request --id 9 --run r --out nine"),
              AllOf(HasSubstr("nine/key.pem"), HasSubstr("--same-key")));
  EXPECT_THAT(refusal("request --id 9 --run r --out ca"),
              HasSubstr("ca-key.pem"));
  EXPECT_THAT(refusal("request --id 9 --run r --out none --same-key"),
              HasSubstr("none/key.pem"));
  EXPECT_THAT(refusal("request --run r --out x"), HasSubstr("--id"));
  EXPECT_THAT(refusal("request --id 0 --run r --out x"), HasSubstr("from 1"));
  EXPECT_THAT(refusal("request --id 9 --run a/b --out x"), HasSubstr("--run"));
  EXPECT_THAT(refusal("request --id 9 --role operator --run r --out x"),
              HasSubstr("--role"));

  const std::string sign = "sign --ca ca --out answer --request ";
  EXPECT_THAT(refusal(sign + "nine/request.pem --id 8"),
              AllOf(HasSubstr("gossamer://r/9"), HasSubstr("gossamer://r/8")));
  EXPECT_THAT(refusal(sign + "nine/request.pem --role operator"),
              HasSubstr("gossamer://r/operator"));
  ASSERT_EQ(Run("certs request --id 9 --run other --out other").code, 0);
  EXPECT_THAT(refusal(sign + "other/request.pem --id 9"),
              HasSubstr("gossamer://other/9"));
  EXPECT_THAT(refusal(sign + "none.pem --id 9"), HasSubstr("none.pem"));
  EXPECT_THAT(refusal(sign + "nine/key.pem --id 9"),
              HasSubstr("no certificate request"));
  Write("long.pem", std::string(9000, 'x'));
  EXPECT_THAT(refusal(sign + "long.pem --id 9"), HasSubstr("9000 bytes"));
  EXPECT_THAT(refusal("sign --ca nine --out answer --request "
                      "nine/request.pem --id 9"),
              HasSubstr("certs init"));
  EXPECT_THAT(refusal(sign + "nine/request.pem --id 9 --name 'a b'"),
              HasSubstr("host name"));
  EXPECT_THAT(refusal(sign + "nine/request.pem --id 9 --for 3"),
              HasSubstr("2m30s"));
  ASSERT_EQ(Run("certs issue --ca ca --id 8 --out eight").code, 0);
  EXPECT_THAT(refusal("sign --ca ca --out eight --request nine/request.pem "
                      "--id 9"),
              HasSubstr("eight/key.pem"));
  // None of these requests was signed.
  EXPECT_EQ(Shown("--ca ca").size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/answer"));
  EXPECT_THAT(Run("certs request --help").out, HasSubstr("new machine"));
  EXPECT_THAT(Run("certs sign --help").out, HasSubstr("new machine"));
}

TEST_F(CertsTest, AskingAServiceOnAnotherMachineNeedsCertificates) {
  const Result refused = Run("status --topology 192.0.2.1:7700");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("--certs"), HasSubstr("--insecure")));
}

}  // namespace certs_command_test
}  // namespace gossamer
