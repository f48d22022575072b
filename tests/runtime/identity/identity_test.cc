// Identities, certificates, authorities and their folders: the right ones are
// accepted, and every other one is refused by name.

#include "runtime/identity/identity.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/identity/authority.h"
#include "runtime/identity/certificate.h"
#include "runtime/identity/file_lock.h"
#include "runtime/identity/openssl.h"
#include "tests/runtime/identity/test_run.h"

namespace gossamer {
namespace identity_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr absl::Duration kDay = absl::Hours(24);

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

TEST(IdentityTest, WritesAndReadsUris) {
  for (const std::string uri :
       {"gossamer://run/1", "gossamer://a-b.c_d/18446744073709551615",
        "gossamer://run/topology", "gossamer://run/operator",
        "gossamer://run/authority"}) {
    const auto identity = ParseIdentity(uri);
    ASSERT_TRUE(identity.ok()) << identity.status();
    EXPECT_EQ(ToUri(*identity), uri);
  }
}

TEST(IdentityTest, OneIdentityHasOneSpelling) {
  for (const std::string uri :
       {"", "gossamer://", "gossamer://run", "gossamer://run/", "https://run/1",
        "gossamer:///1", "gossamer://run/0", "gossamer://run/01",
        "gossamer://run/+1", "gossamer://run/ 1", "gossamer://run/1/",
        "gossamer://run/-1", "gossamer://run/18446744073709551616",
        "gossamer://run/Topology", "gossamer://../1", "gossamer://r n/1",
        "gossamer://run/1?x", "GOSSAMER://run/1"}) {
    EXPECT_FALSE(ParseIdentity(uri).ok()) << uri;
  }
}

class CertificateTest : public ::testing::Test {
 protected:
  CertificateTest()
      : authority_(*MakeAuthority("run", now_, 100 * kDay)),
        trust_(*Trust::Create(authority_.certificate, "")) {}
  KeyPair Peer(uint64_t id, absl::Duration life = kDay) {
    return *Issue(authority_, {.run = "run", .peer = {id}}, {"host.example"},
                  now_, life);
  }
  const absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  const KeyPair authority_;
  const Trust trust_;
};

TEST_F(CertificateTest, ACertificateSaysItsHolderNamesAndValidity) {
  const KeyPair pair = *Issue(authority_, {.run = "run", .peer = {3}},
                              {"host.example", "10.0.0.3", "::1"}, now_, kDay);
  const auto read = trust_.Check(pair.certificate, now_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ToUri(read->identity), "gossamer://run/3");
  EXPECT_THAT(read->names,
              ElementsAre("host.example", "10.0.0.3", HasSubstr("1")));
  EXPECT_EQ(read->until, now_ + kDay);
  EXPECT_EQ(read->from, now_ - absl::Hours(1));
  EXPECT_EQ(read->serial.size(), 32u);
  EXPECT_TRUE(KeyFits(pair.certificate, pair.key));
  EXPECT_FALSE(KeyFits(pair.certificate, Peer(3).key));
}

TEST_F(CertificateTest, IsOnlyValidWithinItsDays) {
  const KeyPair pair = Peer(3);
  EXPECT_TRUE(trust_.Check(pair.certificate, now_ + kDay / 2).ok());
  const auto late =
      trust_.Check(pair.certificate, now_ + kDay + absl::Seconds(2));
  EXPECT_TRUE(absl::IsUnauthenticated(late.status()));
  EXPECT_THAT(late.status().message(), HasSubstr("peer 3"));
  EXPECT_THAT(late.status().message(), HasSubstr("expired at 2023-11-15"));
  const auto early = trust_.Check(pair.certificate, now_ - absl::Hours(2));
  EXPECT_THAT(early.status().message(), HasSubstr("clock"));
}

TEST_F(CertificateTest, NeverOutlivesItsAuthority) {
  const auto read = ReadCertificate(Peer(1, 1000 * kDay).certificate);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->until, now_ + 100 * kDay);
}

TEST_F(CertificateTest, ACertificateOfAnotherAuthorityIsRefused) {
  const KeyPair impostor = *MakeAuthority("run", now_, kDay);
  const KeyPair pair =
      *Issue(impostor, {.run = "run", .peer = {3}}, {}, now_, kDay);
  const auto refused = trust_.Check(pair.certificate, now_);
  EXPECT_TRUE(absl::IsUnauthenticated(refused.status()));
  EXPECT_THAT(refused.status().message(), HasSubstr("another authority"));
}

TEST_F(CertificateTest, APeerCannotIssue) {
  const KeyPair peer = Peer(3);
  const KeyPair forged =
      *Issue(peer, {.run = "run", .peer = {4}}, {}, now_, kDay);
  EXPECT_FALSE(trust_.Check(forged.certificate, now_).ok());
  EXPECT_FALSE(trust_.Check(forged.certificate + peer.certificate, now_).ok());
  EXPECT_FALSE(Trust::Create(peer.certificate, "").ok());
}

TEST_F(CertificateTest, TheAuthoritysOwnCertificateIsRefused) {
  EXPECT_FALSE(trust_.Check(authority_.certificate, now_).ok());
}

TEST_F(CertificateTest, ARevokedCertificateIsRefusedAndOthersAreNot) {
  const KeyPair three = Peer(3), four = Peer(4), five = Peer(5);
  const std::string serial = ReadCertificate(three.certificate)->serial;
  const std::string other = ReadCertificate(five.certificate)->serial;
  const std::string first = *Revoke(authority_, "", {serial}, now_);
  const std::string second = *Revoke(authority_, first, {other}, now_);
  const auto trust = Trust::Create(authority_.certificate, second);
  ASSERT_TRUE(trust.ok()) << trust.status();
  EXPECT_EQ(trust->Revoked().size(), 2u);
  EXPECT_THAT(trust->Check(three.certificate, now_).status().message(),
              HasSubstr("revoked"));
  EXPECT_FALSE(trust->Check(five.certificate, now_).ok());
  EXPECT_TRUE(trust->Check(four.certificate, now_).ok());
}

// Returns the list `crl` with another end, signed again.  A list of another
// tool may end before its authority does.
std::string EndsAt(absl::Time end, const KeyPair& authority,
                   const std::string& crl) {
  const openssl::CrlPtr list = openssl::ReadCrlPem(crl);
  const openssl::KeyPtr key = openssl::ReadKeyPem(authority.key);
  const openssl::TimePtr time(ASN1_TIME_set(nullptr, absl::ToTimeT(end)));
  EXPECT_EQ(X509_CRL_set1_nextUpdate(list.get(), time.get()), 1);
  EXPECT_NE(X509_CRL_sign(list.get(), key.get(), EVP_sha256()), 0);
  return openssl::ToPem(
      [&](BIO* out) { return PEM_write_bio_X509_CRL(out, list.get()); });
}

TEST_F(CertificateTest, NoCertificateIsAcceptedAfterTheRevocationListExpires) {
  const KeyPair three = Peer(3, 100 * kDay);
  const std::string own = *Revoke(authority_, "", {"0a"}, now_);
  const auto trust = Trust::Create(authority_.certificate,
                                   EndsAt(now_ + kDay, authority_, own));
  ASSERT_TRUE(trust.ok()) << trust.status();
  EXPECT_TRUE(trust->Check(three.certificate, now_).ok());
  const absl::Status late =
      trust->Check(three.certificate, now_ + 2 * kDay).status();
  EXPECT_TRUE(absl::IsUnauthenticated(late)) << late;
  EXPECT_THAT(late.message(),
              HasSubstr("list of revoked certificates expired at 2023-11-15"));
  // The authority's own list never ends before the authority.
  EXPECT_TRUE(Trust::Create(authority_.certificate, own)
                  ->Check(three.certificate, now_ + 99 * kDay)
                  .ok());
}

TEST_F(CertificateTest, ACertificateOfAnExpiredAuthoritySaysSo) {
  const KeyPair three = Peer(3, 100 * kDay);
  for (const std::string& crl :
       {std::string(), *Revoke(authority_, "", {"0a"}, now_)}) {
    const absl::Status late = Trust::Create(authority_.certificate, crl)
                                  ->Check(three.certificate, now_ + 101 * kDay)
                                  .status();
    EXPECT_TRUE(absl::IsUnauthenticated(late)) << late;
    EXPECT_THAT(late.message(),
                HasSubstr("the authority itself expired at 2024-02-22"));
  }
}

TEST_F(CertificateTest, AListOfAnotherAuthorityIsRefused) {
  const KeyPair other = *MakeAuthority("run", now_, kDay);
  const std::string list = *Revoke(other, "", {"0a"}, now_);
  EXPECT_FALSE(Trust::Create(authority_.certificate, list).ok());
  EXPECT_FALSE(Trust::Create(authority_.certificate, "garbage").ok());
}

TEST_F(CertificateTest, WrongInputsAreErrors) {
  EXPECT_FALSE(ReadCertificate("").ok());
  EXPECT_FALSE(ReadCertificate(std::string(1 << 20, 'x')).ok());
  EXPECT_FALSE(trust_.Check(Peer(1).certificate.substr(0, 300), now_).ok());
  EXPECT_FALSE(Issue(authority_, {.run = "run", .peer = {1}},
                     {"a,URI:gossamer://b/1"}, now_, kDay)
                   .ok());
  EXPECT_FALSE(Revoke(authority_, "", {"not hexadecimal"}, now_).ok());
}

TEST_F(CertificateTest, SignaturesHoldForOneHolderPurposeAndText) {
  const auto signer = [&] {
    return *IssueSigner(authority_,
                        {.run = "run", .role = Role::kTopology, .peer = {}},
                        now_, kDay);
  };
  const KeyPair service = signer();
  const std::string signature = *SignBytes(service.key, "view", "text");
  EXPECT_EQ(signature.size(), 64u);
  EXPECT_EQ(signature, *SignBytes(service.key, "view", "text"));
  EXPECT_TRUE(
      CheckSignature(service.certificate, "view", "text", signature).ok());
  EXPECT_FALSE(
      CheckSignature(service.certificate, "view", "texT", signature).ok());
  EXPECT_FALSE(
      CheckSignature(service.certificate, "token", "text", signature).ok());
  EXPECT_FALSE(
      CheckSignature(signer().certificate, "view", "text", signature).ok());
  EXPECT_FALSE(CheckSignature(service.certificate, "view", "text", "").ok());
  // The key of a connection signs nothing else.
  EXPECT_FALSE(SignBytes(Peer(1).key, "view", "text").ok());
  EXPECT_FALSE(
      CheckSignature(Peer(1).certificate, "view", "text", signature).ok());
}

TEST(CertificateFolderTest, AnIssuedFolderOpens) {
  const TestRun run;
  const auto folder = run.Certificates(run.Peer(3));
  ASSERT_NE(folder, nullptr);
  EXPECT_EQ(folder->identity(), run.Peer(3));
  struct stat info = {};
  ASSERT_EQ(::stat(folder->key_path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST(CertificateFolderTest, EveryFlawIsNamed) {
  const TestRun run;
  const auto flaw = [&](auto damage) {
    const std::string path = run.Issue(run.Peer(3));
    damage(path);
    const absl::Status status = CertificateFolder::Open(path).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(flaw([](const std::string& path) {
                ::chmod((path + "/key.pem").c_str(), 0640);
              }),
              HasSubstr("chmod 600"));
  EXPECT_THAT(flaw([](const std::string& path) {
                std::filesystem::remove(path + "/ca.pem");
              }),
              HasSubstr("ca.pem cannot be read"));
  EXPECT_THAT(flaw([&](const std::string& path) {
                const std::string other = run.Issue(run.Peer(4));
                std::filesystem::copy_file(
                    other + "/cert.pem", path + "/cert.pem",
                    std::filesystem::copy_options::overwrite_existing);
              }),
              HasSubstr("not the private key"));
  EXPECT_THAT(flaw([](const std::string& path) {
                Write(path + "/crl.pem", "garbage");
              }),
              HasSubstr("revoked"));
  EXPECT_THAT(flaw([](const std::string& path) {
                std::filesystem::remove(path + "/crl.pem");
              }),
              HasSubstr("copy crl.pem from the authority's folder"));
  EXPECT_THAT(flaw([](const std::string& path) {
                Write(path + "/cert.pem", std::string(100'000, 'x'));
              }),
              HasSubstr("bytes"));
}

TEST(CertificateFolderTest, TheServicesSigningKeyIsForSigningOnly) {
  const TestRun run;
  const Identity service = run.Other(Role::kTopology);
  const auto folder = run.Certificates(service);
  ASSERT_NE(folder, nullptr);
  struct stat info = {};
  ASSERT_EQ(::stat(folder->signer_key_path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  const auto signature = folder->Sign("view", "text");
  ASSERT_TRUE(signature.ok()) << signature.status();
  EXPECT_THAT(signature->certificate, Not(HasSubstr("PRIVATE")));
  EXPECT_TRUE(
      CheckSignature(signature->certificate, "view", "text", signature->bytes)
          .ok());
  const auto peer = run.Certificates(run.Peer(3));
  EXPECT_TRUE(peer->CheckSigner(signature->certificate).ok());
  EXPECT_THAT(peer->Check(signature->certificate).status().message(),
              HasSubstr("no connection"));
  EXPECT_THAT(peer->CheckSigner(*ReadPemFile(folder->certificate_path()))
                  .status()
                  .message(),
              HasSubstr("for connections"));
  // Both of the service's certificates are revoked.
  run.Revoke(service, {run.Peer(3)});
  EXPECT_THAT(peer->CheckSigner(signature->certificate).status().message(),
              HasSubstr("revoked"));
  // A service without a signing key, or with another one's, does not start.
  const std::string path = run.Issue(service);
  Write(path + "/signer.pem", *ReadPemFile(path + "/cert.pem"));
  EXPECT_THAT(CertificateFolder::Open(path).status().message(),
              HasSubstr("signer-key.pem: is not the private key"));
  std::filesystem::remove(path + "/signer-key.pem");
  EXPECT_THAT(CertificateFolder::Open(path).status().message(),
              AllOf(HasSubstr("signer-key.pem cannot be read"),
                    HasSubstr("gossamer certs issue")));
}

TEST(CertificateFolderTest, AFolderWithAnExpiredCertificateIsRefused) {
  const TestRun run;
  const std::string path =
      run.Issue(run.Peer(3), absl::Now() - absl::Hours(3), absl::Hours(1));
  const absl::Status status = CertificateFolder::Open(path).status();
  EXPECT_THAT(status.message(), HasSubstr("expired"));
  EXPECT_THAT(status.message(), HasSubstr("gossamer certs issue"));
}

TEST(CertificateFolderTest, WarnsBeforeItExpiresAndOnceADay) {
  const TestRun run;  // the authority is valid for a day
  absl::Time now = absl::Now();
  const Identity service = run.Other(Role::kTopology);
  const auto folder = run.Certificates(service, [&] { return now; });
  run.Issue(service, now, absl::Hours(10));
  EXPECT_EQ(folder->TakeExpiryWarning(), "");
  now += absl::Hours(8.8);
  EXPECT_EQ(folder->TakeExpiryWarning(), "");
  now += absl::Hours(0.5);
  EXPECT_THAT(folder->TakeExpiryWarning(),
              AllOf(HasSubstr(folder->certificate_path() + ": expires at "),
                    HasSubstr("gossamer certs issue")));
  now += absl::Minutes(2);
  EXPECT_EQ(folder->TakeExpiryWarning(), "");
  now += absl::Hours(1);
  EXPECT_THAT(folder->TakeExpiryWarning(), HasSubstr("has expired at "));
  now += absl::Hours(23);
  EXPECT_EQ(folder->TakeExpiryWarning(), "");
  now += absl::Hours(2);
  EXPECT_THAT(folder->TakeExpiryWarning(), HasSubstr("has expired at "));
}

TEST(CertificateFolderTest, WarnsOfAnExpiringSignerAndAuthority) {
  const TestRun run;
  absl::Time now = absl::Now();
  const Identity service = run.Other(Role::kTopology);
  const auto folder = run.Certificates(service, [&] { return now; });
  run.Issue(service, now, absl::Hours(1));
  const std::string old = *ReadPemFile(folder->signer_path());
  // The certificate is as long valid as the authority itself.
  run.Issue(service, now, absl::Hours(100));
  const std::string renewed = *ReadPemFile(folder->signer_path());
  Write(folder->signer_path(), old);
  now += absl::Hours(2);
  EXPECT_THAT(folder->TakeExpiryWarning(),
              AllOf(HasSubstr(folder->signer_path() + ": has expired"),
                    HasSubstr("certs issue")));
  Write(folder->signer_path(), renewed);
  now += absl::Hours(21.5);
  EXPECT_THAT(folder->TakeExpiryWarning(),
              AllOf(HasSubstr(folder->certificate_path() + ": expires"),
                    HasSubstr("certs init")));
}

TEST(CertificateFolderTest, ARevocationSurvivesADamagedOrMissingList) {
  const TestRun run;
  const auto folder = run.Certificates(run.Peer(3));
  const std::string four =
      *ReadPemFile(run.Certificates(run.Peer(4))->certificate_path());
  EXPECT_TRUE(folder->Check(four).ok());
  run.Revoke(run.Peer(4), {run.Peer(3)});
  EXPECT_THAT(folder->Check(four).status().message(), HasSubstr("revoked"));
  // Neither a damaged list nor a missing one admits the revoked peer again.
  EXPECT_EQ(folder->Problem(), "");
  const std::string whole = *ReadPemFile(folder->crl_path());
  Write(folder->crl_path(), "half a lis");
  EXPECT_FALSE(folder->Check(four).ok());
  EXPECT_THAT(folder->Problem(), HasSubstr("stays in force"));
  std::filesystem::remove(folder->crl_path());
  EXPECT_FALSE(folder->Check(four).ok());
  EXPECT_THAT(folder->Problem(), HasSubstr("crl.pem"));
  Write(folder->crl_path(), whole);
  EXPECT_EQ(folder->Problem(), "");
  EXPECT_FALSE(folder->Check(four).ok());
}

TEST(CertificateFolderTest, AnOlderListReadmitsNoRevokedPeer) {
  const TestRun run;
  const auto folder = run.Certificates(run.Peer(3));
  const std::string four =
      *ReadPemFile(run.Certificates(run.Peer(4))->certificate_path());
  const std::string five =
      *ReadPemFile(run.Certificates(run.Peer(5))->certificate_path());
  const std::string older = *ReadPemFile(folder->crl_path());
  run.Revoke(run.Peer(4), {run.Peer(3)});
  EXPECT_FALSE(folder->Check(four).ok());
  Write(folder->crl_path(), older);
  EXPECT_FALSE(folder->Check(four).ok());
  EXPECT_THAT(folder->Problem(), HasSubstr("crl.pem is older"));
  EXPECT_FALSE(folder->Check(four).ok());
  // The newest list is taken up.
  run.Revoke(run.Peer(5), {run.Peer(3)});
  EXPECT_FALSE(folder->Check(four).ok());
  EXPECT_FALSE(folder->Check(five).ok());
  EXPECT_EQ(folder->Problem(), "");
}

// A list that was not taken may be damaged and put back as it was.
TEST(CertificateFolderTest, AnOlderListIsKnownThroughDamage) {
  const TestRun run;
  const auto folder = run.Certificates(run.Peer(3));
  run.Issue(run.Peer(4));
  const std::string older = *ReadPemFile(folder->crl_path());
  run.Revoke(run.Peer(4), {run.Peer(3)});
  EXPECT_THAT(folder->Revoked(), SizeIs(1));
  Write(folder->crl_path(), older);
  EXPECT_THAT(folder->Problem(), HasSubstr("crl.pem is older"));
  std::filesystem::remove(folder->crl_path());
  EXPECT_THAT(folder->Problem(), HasSubstr("crl.pem cannot be read"));
  Write(folder->crl_path(), older);
  EXPECT_THAT(folder->Problem(), HasSubstr("crl.pem is older"));
  EXPECT_THAT(folder->Revoked(), SizeIs(1));
}

TEST(CertificateFolderTest, AnotherRunOfTheSameAuthorityIsRefused) {
  const TestRun run;
  const KeyPair pair{
      .certificate = *ReadPemFile(run.authority_path() + "/ca.pem"),
      .key = *ReadPemFile(run.authority_path() + "/ca-key.pem")};
  const KeyPair other = *Issue(pair, {.run = "other", .peer = {4}}, {},
                               absl::Now(), absl::Hours(1));
  const auto folder = run.Certificates(run.Peer(3));
  EXPECT_THAT(folder->Check(other.certificate).status().message(),
              HasSubstr("run \"other\""));
}

TEST(AuthorityFolderTest, AnAuthorityIsMadeOnceAndItsKeyKeptPrivate) {
  const TestRun run;
  EXPECT_FALSE(AuthorityFolder::Init(run.authority_path(), "run", absl::Now(),
                                     absl::Hours(1))
                   .ok());
  const std::string key = run.authority_path() + "/ca-key.pem";
  ::chmod(key.c_str(), 0644);
  EXPECT_THAT(AuthorityFolder::Open(run.authority_path()).status().message(),
              HasSubstr("chmod 600"));
}

TEST(AuthorityFolderTest, AnAuthorityListsTheCertificatesThatItHasIssued) {
  const TestRun run;
  run.Issue(run.Peer(2));
  run.Issue(run.Other(Role::kTopology));
  run.Issue(run.Peer(1));
  run.Revoke(run.Peer(2), {});
  const auto list = run.authority().List();
  ASSERT_TRUE(list.ok()) << list.status();
  std::vector<std::string> seen;
  for (const auto& i : *list) {
    seen.push_back(ToUri(i.certificate.identity) + (i.revoked ? "!" : ""));
  }
  EXPECT_THAT(
      seen, ElementsAre("gossamer://run/1", "gossamer://run/2!",
                        "gossamer://run/topology", "gossamer://run/topology"));
}

// Two people revoke at the same time, and the list has both revocations.
TEST(AuthorityFolderTest, ConcurrentRevocationsAllCount) {
  const TestRun run;
  constexpr int kEach = 10;
  std::vector<std::thread> people;
  for (int who = 0; who < 4; ++who) {
    people.emplace_back([&run, who] {
      const AuthorityFolder authority = run.authority();
      for (int i = 0; i < kEach; ++i) {
        const absl::Status revoked = authority.Revoke(
            {absl::StrCat("1", who, absl::Dec(i, absl::kZeroPad2))},
            absl::Now());
        EXPECT_TRUE(revoked.ok()) << revoked;
      }
    });
  }
  for (std::thread& person : people) person.join();
  const auto trust =
      Trust::Create(*ReadPemFile(run.authority_path() + "/ca.pem"), run.Crl());
  ASSERT_TRUE(trust.ok()) << trust.status();
  EXPECT_EQ(trust->Revoked().size(), people.size() * kEach);
}

std::vector<std::string> Serials(int count) {
  std::vector<std::string> serials;
  for (int i = 0; i < count; ++i) {
    serials.push_back(absl::StrCat("7f", absl::Hex(i, absl::kZeroPad8),
                                   "0123456789abcdef01", "23"));
  }
  return serials;
}

// The list is far larger than a certificate's PEM may be.
TEST(AuthorityFolderTest, AListOfThousandsOfRevocationsCanBeRead) {
  const TestRun run;
  const auto folder = run.Certificates(run.Peer(3));
  const std::string four =
      *ReadPemFile(run.Certificates(run.Peer(4))->certificate_path());
  ASSERT_TRUE(run.authority().Revoke(Serials(5000), absl::Now()).ok());
  ASSERT_GT(run.Crl().size(), 2 * kMaxPemBytes);
  EXPECT_TRUE(folder->Check(four).ok());
  run.Revoke(run.Peer(4), {run.Peer(3)});
  EXPECT_THAT(folder->Check(four).status().message(), HasSubstr("revoked"));
  EXPECT_EQ(folder->Problem(), "");
  EXPECT_TRUE(CertificateFolder::Open(run.Issue(run.Peer(5))).ok());
}

TEST(AuthorityFolderTest, ARevocationListTooLongToReadIsNotWritten) {
  const TestRun run;
  const AuthorityFolder authority = run.authority();
  ASSERT_TRUE(authority.Revoke({"0a"}, absl::Now()).ok());
  const std::string before = run.Crl();
  const absl::Status refused = authority.Revoke(Serials(25000), absl::Now());
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("nothing was revoked"),
                                       HasSubstr("gossamer certs init")));
  EXPECT_EQ(run.Crl(), before);
  EXPECT_TRUE(authority.Revoke({"0b"}, absl::Now()).ok());
  // The README names this number as the room of a list.
  EXPECT_TRUE(authority.Revoke(Serials(18000), absl::Now()).ok());
  EXPECT_TRUE(CertificateFolder::Open(run.Issue(run.Peer(5))).ok());
}

TEST(FileLockTest, ALockHasOneHolderAtATime) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/lock";
  {
    const auto held = FileLock::Take(file, absl::ZeroDuration());
    ASSERT_TRUE(held.ok()) << held.status();
    const absl::Status refused =
        FileLock::Take(file, absl::Milliseconds(20)).status();
    EXPECT_TRUE(absl::IsDeadlineExceeded(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(file));
  }
  EXPECT_TRUE(FileLock::Take(file, absl::ZeroDuration()).ok());
  EXPECT_TRUE(absl::IsUnavailable(
      FileLock::Take(folder.path() + "/none/lock", absl::ZeroDuration())
          .status()));
}

TEST(OpenDoorTest, AnAddressBeyondThisMachineNeedsCertificatesOrInsecure) {
  EXPECT_TRUE(OpenCertificates({}, "127.0.0.1:7700").ok());
  EXPECT_TRUE(OpenCertificates({}, "localhost:7700").ok());
  EXPECT_THAT(OpenCertificates({}, "10.0.0.1:7700").status().message(),
              HasSubstr("--insecure"));
  EXPECT_FALSE(OpenCertificates({}, "127.evil.org:7700").ok());
  EXPECT_EQ(*OpenCertificates({.certificates = "", .insecure = true},
                              "10.0.0.1:7700"),
            nullptr);
  EXPECT_FALSE(
      OpenCertificates({.certificates = "x", .insecure = true}, "10.0.0.1:1")
          .ok());
  EXPECT_THAT(OpenCertificates({.certificates = "/nowhere"}, "10.0.0.1:1")
                  .status()
                  .message(),
              HasSubstr("--certs: /nowhere/ca.pem"));
}

}  // namespace identity_test
}  // namespace gossamer
