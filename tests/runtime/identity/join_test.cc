// One-time tokens: what they let in, and what is tried with them.

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/identity/authority.h"
#include "runtime/identity/certificate.h"
#include "runtime/identity/certificate_folder.h"
#include "runtime/identity/join_desk.h"
#include "runtime/identity/join_token.h"
#include "runtime/identity/newcomer.h"
#include "tests/runtime/identity/test_run.h"

namespace gossamer {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class JoinTest : public ::testing::Test {
 protected:
  JoinTest() : desk_(*JoinDesk::Open(run_.authority_path())) {
    EXPECT_TRUE(desk_.Claim().ok());
  }
  JoinToken Token(uint64_t id = 9) {
    const auto token = desk_.MakeToken({.identity = run_.Peer(id),
                                        .names = {},
                                        .until = now_ + absl::Hours(1),
                                        .life = absl::Hours(5)},
                                       now_);
    EXPECT_TRUE(token.ok()) << token.status();
    return *token;
  }
  static SigningRequest Key() { return *MakeSigningRequest(); }
  absl::StatusOr<JoinDesk::Admission> Admit(const JoinToken& token,
                                            const std::string& request) {
    return desk_.Admit(token.id, request,
                       ProveJoin(token.secret, token.id, request), now_);
  }

  const TestRun run_;
  absl::Time now_ = absl::Now();
  JoinDesk desk_;
};

TEST_F(JoinTest, AMachineGetsWhatTheTokenSaysForItsOwnKey) {
  const JoinToken token = Token();
  const TemporaryFolder machine;
  const std::string folder = machine.path() + "/certs";
  const auto key = KeyForNewcomer(folder);
  ASSERT_TRUE(key.ok()) << key.status();
  const auto request = MakeSigningRequest(*key);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_FALSE(absl::StrContains(request->der, "PRIVATE"));
  const auto admitted = Admit(token, request->der);
  ASSERT_TRUE(admitted.ok()) << admitted.status();
  const auto accepted = AcceptCertificate(folder,
                                          {.authority = desk_.authority().pem(),
                                           .certificate = admitted->certificate,
                                           .crl = *desk_.authority().Crl()},
                                          now_);
  ASSERT_TRUE(accepted.ok()) << accepted.status();
  EXPECT_EQ(accepted->identity, run_.Peer(9));
  EXPECT_LE(accepted->until, now_ + absl::Hours(5));
  const auto opened = CertificateFolder::Open(folder);
  ASSERT_TRUE(opened.ok()) << opened.status();
  // It is on the authority's list, where it can be revoked.
  EXPECT_EQ(run_.authority().List()->size(), 1u);
  EXPECT_TRUE(absl::IsInvalidArgument(KeyForNewcomer(folder).status()));
}

TEST_F(JoinTest, ATokenBelongsToTheKeyThatUsedItFirst) {
  const JoinToken token = Token();
  const SigningRequest first = Key();
  const auto admitted = Admit(token, first.der);
  ASSERT_TRUE(admitted.ok()) << admitted.status();
  EXPECT_FALSE(admitted->again);
  // The answer was lost, or somebody has recorded it: the same certificate.
  const auto again = Admit(token, first.der);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->again);
  EXPECT_EQ(again->certificate, admitted->certificate);
  const auto other = Admit(token, Key().der);
  EXPECT_TRUE(absl::IsPermissionDenied(other.status())) << other.status();
  EXPECT_THAT(std::string(other.status().message()),
              HasSubstr(admitted->serial));
  EXPECT_EQ(run_.authority().List()->size(), 1u);
  EXPECT_EQ(*desk_.CountUnused(now_), 0);
}

TEST_F(JoinTest, UseSurvivesARestart) {
  const JoinToken token = Token();
  ASSERT_TRUE(Admit(token, Key().der).ok());
  desk_ = *JoinDesk::Open(run_.authority_path());
  ASSERT_TRUE(desk_.Claim().ok());
  EXPECT_TRUE(absl::IsPermissionDenied(Admit(token, Key().der).status()));
}

TEST_F(JoinTest, ADamagedTokenLetsNobodyIn) {
  const JoinToken token = Token();
  const std::string path =
      absl::StrCat(run_.authority_path(), "/tokens/",
                   absl::BytesToHexString(token.id), ".token");
  std::string text = *ReadPemFile(path);
  const size_t secret = text.find("secret ");
  ASSERT_NE(secret, std::string::npos);
  text[secret + 10] = 'g';  // it would count as 16
  std::ofstream(path) << text;
  const absl::Status refused = Admit(token, Key().der).status();
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr(path));
}

TEST_F(JoinTest, ARecordedProofIsOfNoUseForAnotherKey) {
  const JoinToken token = Token();
  const SigningRequest own = Key();
  const std::string proof = ProveJoin(token.secret, token.id, own.der);
  const auto stolen = desk_.Admit(token.id, Key().der, proof, now_);
  EXPECT_TRUE(absl::IsPermissionDenied(stolen.status())) << stolen.status();
  // Nor has the thief used it up.
  EXPECT_TRUE(Admit(token, own.der).ok());
}

TEST_F(JoinTest, ATokenExpires) {
  const JoinToken token = Token();
  now_ += absl::Hours(1);
  const auto late = Admit(token, Key().der);
  EXPECT_TRUE(absl::IsPermissionDenied(late.status()));
  EXPECT_THAT(std::string(late.status().message()), HasSubstr("expired"));
  EXPECT_EQ(*desk_.CountUnused(now_), 0);
  // After a day nobody remembers it.
  now_ += absl::Hours(25);
  EXPECT_EQ(*desk_.CountUnused(now_), 0);
  EXPECT_THAT(std::string(Admit(token, Key().der).status().message()),
              HasSubstr("no such token"));
}

TEST_F(JoinTest, GuessesAndOtherFleetsLearnNothing) {
  const JoinToken token = Token();
  JoinToken guess = token;
  guess.secret[0] ^= 1;
  JoinToken nobody = token;
  nobody.id[0] ^= 1;
  const TestRun other;
  JoinDesk elsewhere = *JoinDesk::Open(other.authority_path());
  const auto foreign = elsewhere.MakeToken({.identity = other.Peer(9),
                                            .names = {},
                                            .until = now_ + absl::Hours(1),
                                            .life = absl::Hours(1)},
                                           now_);
  ASSERT_TRUE(foreign.ok()) << foreign.status();
  JoinToken path = token;
  path.id = "../../../etc/pas";
  for (const JoinToken& wrong : {guess, nobody, *foreign, path}) {
    const auto refused = Admit(wrong, Key().der);
    EXPECT_TRUE(absl::IsPermissionDenied(refused.status()));
    EXPECT_EQ(refused.status().message(), "there is no such token");
  }
  // Nothing of it has used the token up.
  EXPECT_EQ(*desk_.CountUnused(now_), 1);
  EXPECT_TRUE(Admit(token, Key().der).ok());
}

TEST_F(JoinTest, OnlyRequestsByTheHolderOfAUsualKeyCount) {
  const JoinToken token = Token();
  std::string damaged = Key().der;
  damaged.back() ^= 1;
  for (const std::string& wrong :
       {std::string("no request"), std::string(1 << 20, 'x'), damaged}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Admit(token, wrong).status()));
  }
  EXPECT_EQ(*desk_.CountUnused(now_), 1);
}

TEST_F(JoinTest, PeersOnlyAndOneDeskAtATime) {
  for (const Identity& whose :
       {run_.Other(Role::kOperator), run_.Other(Role::kTopology),
        Identity{.run = "another", .peer = {1}}}) {
    EXPECT_TRUE(
        absl::IsInvalidArgument(desk_
                                    .MakeToken({.identity = whose,
                                                .names = {},
                                                .until = now_ + absl::Hours(1),
                                                .life = absl::Hours(1)},
                                               now_)
                                    .status()));
  }
  JoinDesk second = *JoinDesk::Open(run_.authority_path());
  EXPECT_TRUE(absl::IsFailedPrecondition(second.Claim()));
}

TEST_F(JoinTest, ACancelledTokenLetsNobodyIn) {
  const JoinToken token = Token();
  EXPECT_TRUE(absl::IsNotFound(desk_.Cancel("00").status()));
  const auto cancelled = desk_.Cancel(absl::BytesToHexString(token.id));
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(cancelled->identity, run_.Peer(9));
  EXPECT_EQ(cancelled->serial, "");
  EXPECT_TRUE(absl::IsPermissionDenied(Admit(token, Key().der).status()));
  EXPECT_TRUE(absl::IsNotFound(
      desk_.Cancel(absl::BytesToHexString(token.id)).status()));
}

// Whoever cancels one while it is used learns that it was too late.
TEST_F(JoinTest, ATokenIsCancelledOrUsed) {
  const std::string key = Key().der;
  int too_late = 0;
  for (int i = 0; i < 60; ++i) {
    const JoinToken token = Token();
    JoinDesk people = *JoinDesk::Open(run_.authority_path());
    absl::StatusOr<JoinDesk::Cancelled> cancelled = absl::InternalError("");
    std::thread other([&] {
      absl::SleepFor(absl::Microseconds(50 * i));
      cancelled = people.Cancel(absl::BytesToHexString(token.id));
    });
    const auto admitted = Admit(token, key);
    other.join();
    ASSERT_TRUE(cancelled.ok()) << cancelled.status();
    ASSERT_EQ(cancelled->serial, admitted.ok() ? admitted->serial : "");
    // It has not come back, either.
    ASSERT_FALSE(Admit(token, key).ok());
    too_late += admitted.ok();
  }
  EXPECT_GT(too_late, 0);
}

TEST_F(JoinTest, UnusedTokensOfOnePeerGoTogether) {
  const JoinToken used = Token(3), one = Token(3), two = Token(3);
  const JoinToken others = Token(5);
  ASSERT_TRUE(Admit(used, Key().der).ok());
  const auto cancelled = desk_.CancelUnused(run_.Peer(3));
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(cancelled->size(), 2u);
  for (const JoinToken& token : {one, two}) {
    EXPECT_TRUE(absl::IsPermissionDenied(Admit(token, Key().der).status()));
  }
  const auto counts = desk_.Count(now_);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->unused, 1);
  EXPECT_EQ(counts->used, 1);
  EXPECT_TRUE(Admit(others, Key().der).ok());
}

TEST_F(JoinTest, ACertificateOfAnotherAuthorityOrKeyIsNotAccepted) {
  const TemporaryFolder machine;
  const std::string folder = machine.path() + "/certs";
  const auto request = MakeSigningRequest(*KeyForNewcomer(folder));
  const TestRun other;
  const auto theirs = other.authority().IssueFor(request->der, other.Peer(9),
                                                 {}, now_, absl::Hours(1));
  ASSERT_TRUE(theirs.ok()) << theirs.status();
  const auto accept = [&](const std::string& certificate) {
    return AcceptCertificate(folder,
                             {.authority = desk_.authority().pem(),
                              .certificate = certificate,
                              .crl = {}},
                             now_)
        .status();
  };
  EXPECT_TRUE(absl::IsUnauthenticated(accept(*theirs)));
  const auto of_another_key = desk_.authority().IssueFor(
      Key().der, run_.Peer(9), {}, now_, absl::Hours(1));
  EXPECT_TRUE(absl::IsUnauthenticated(accept(*of_another_key)));
  // The right one, but no list of revoked ones with it.
  const auto right = desk_.authority().IssueFor(request->der, run_.Peer(9), {},
                                                now_, absl::Hours(1));
  EXPECT_TRUE(absl::IsUnauthenticated(accept(*right)));
  EXPECT_FALSE(std::filesystem::exists(folder + "/cert.pem"));
}

TEST_F(JoinTest, TheDeskIsBelievedByItsFingerprintOnly) {
  const std::string fingerprint = *Fingerprint(desk_.authority().pem());
  const auto shown = desk_.authority().MakeDesk(now_);
  ASSERT_TRUE(shown.ok()) << shown.status();
  EXPECT_TRUE(CheckAuthorityChain(shown->certificate, fingerprint, now_).ok());
  const TestRun other;
  const auto impostor = other.authority().MakeDesk(now_);
  EXPECT_FALSE(
      CheckAuthorityChain(impostor->certificate, fingerprint, now_).ok());
  // Its own leaf before the right authority, and a member's.
  EXPECT_FALSE(
      CheckAuthorityChain(impostor->certificate.substr(
                              0, impostor->certificate.find("-----BEGIN", 1)) +
                              desk_.authority().pem(),
                          fingerprint, now_)
          .ok());
  const std::string member =
      *ReadPemFile(run_.Issue(run_.Peer(1)) + "/cert.pem");
  EXPECT_FALSE(
      CheckAuthorityChain(member + desk_.authority().pem(), fingerprint, now_)
          .ok());
  EXPECT_FALSE(CheckAuthorityChain("", fingerprint, now_).ok());
  // And no member takes it for one of the run.
  EXPECT_FALSE(run_.Certificates(run_.Peer(1))->Check(shown->certificate).ok());
}

TEST(JoinTokenTest, TravelsAsOneLine) {
  const TestRun run;
  const JoinToken token = *MakeJoinToken(run.authority().pem());
  const std::string text = ToText(token);
  EXPECT_THAT(text, Not(HasSubstr("\n")));
  const auto read = ParseJoinToken(absl::StrCat("  ", text, "\n"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->id, token.id);
  EXPECT_EQ(read->secret, token.secret);
  EXPECT_EQ(read->authority, token.authority);
  for (const std::string& wrong :
       {text.substr(1), text.substr(0, text.size() - 1), std::string(),
        text + "A", std::string("gossamer-join-1.!!")}) {
    const absl::Status refused = ParseJoinToken(wrong).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused));
    EXPECT_THAT(std::string(refused.message()),
                Not(HasSubstr(text.substr(20, 20))));
  }
}

}  // namespace
}  // namespace gossamer
