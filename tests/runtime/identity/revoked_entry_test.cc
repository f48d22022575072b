// An entry of a list of revoked certificates ends with its certificate: the
// authority leaves it out then, and a reader lets it go no sooner.

#include "runtime/identity/revoked_entry.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/identity/authority.h"
#include "runtime/identity/certificate.h"
#include "runtime/identity/openssl.h"
#include "tests/runtime/identity/test_run.h"

namespace gossamer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr absl::Time kNever = absl::InfiniteFuture();
constexpr absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);
constexpr absl::Duration kLife = absl::Hours(12);

// Returns the list `crl`, signed anew, after `change` has been made to each of
// its entries.
template <typename F>
std::string Changed(const KeyPair& authority, const std::string& crl,
                    F change) {
  const openssl::CrlPtr list = openssl::ReadCrlPem(crl);
  const openssl::KeyPtr key = openssl::ReadKeyPem(authority.key);
  STACK_OF(X509_REVOKED)* entries = X509_CRL_get_REVOKED(list.get());
  for (int i = 0; i < sk_X509_REVOKED_num(entries); ++i) {
    change(sk_X509_REVOKED_value(entries, i));
  }
  EXPECT_NE(X509_CRL_sign(list.get(), key.get(), EVP_sha256()), 0);
  return openssl::ToPem(
      [&](BIO* out) { return PEM_write_bio_X509_CRL(out, list.get()); });
}

// Returns a change of the bytes of an entry's only extension.
template <typename F>
auto ChangesBytes(F change) {
  return [change](X509_REVOKED* entry) {
    ASSERT_EQ(X509_REVOKED_get_ext_count(entry), 1);
    ASN1_OCTET_STRING* value =
        X509_EXTENSION_get_data(X509_REVOKED_get_ext(entry, 0));
    std::string bytes(openssl::TextOf(value));
    change(bytes);
    ASSERT_EQ(ASN1_OCTET_STRING_set(
                  value, reinterpret_cast<const unsigned char*>(bytes.data()),
                  static_cast<int>(bytes.size())),
              1);
  };
}

class RevokedEntryTest : public ::testing::Test {
 protected:
  KeyPair Peer(uint64_t id) const {
    return *Issue(authority_, {.run = "run", .peer = {id}}, {}, kNow, kLife);
  }
  std::string Revoked(const Revocations& revoked, absl::Time now = kNow,
                      const std::string& crl = "") const {
    return *Revoke(authority_, crl, revoked, now);
  }
  Trust TrustIn(const std::string& crl) const {
    return *Trust::Create(authority_.certificate, crl);
  }
  const KeyPair authority_ = *MakeAuthority("run", kNow, absl::Hours(24 * 365));
};

TEST_F(RevokedEntryTest, SaysWhenItsCertificateEnds) {
  // Dates of certificates have another form from 2050 on.
  const absl::Time late = absl::FromUnixSeconds(4'000'000'000);
  const std::string list =
      Revoked({{"0a", kNow}, {"0b", kNever}, {"0c", late}});
  EXPECT_THAT(
      TrustIn(list).Revoked(),
      ElementsAre(Pair("0a", kNow), Pair("0b", kNever), Pair("0c", late)));
  // Other tools take the list, and refuse what is in it.
  Changed(authority_, list, [](X509_REVOKED* entry) {
    EXPECT_EQ(X509_REVOKED_get_ext_by_critical(entry, 1, -1), -1);
  });
}

TEST_F(RevokedEntryTest, LeavesTheListAnHourAfterItsCertificate) {
  const absl::Time end = kNow + kLife;
  const std::string list = Revoked({{"0a", end}, {"0b", kNever}});
  const absl::Time still = end + kClockSkew - absl::Seconds(1);
  EXPECT_THAT(TrustIn(Revoked({}, still, list)).Revoked(),
              ElementsAre(Pair("0a", end), Pair("0b", kNever)));
  EXPECT_THAT(TrustIn(Revoked({}, end + kClockSkew, list)).Revoked(),
              ElementsAre(Pair("0b", kNever)));
}

// Once the clock is right again, the next list would lack entries for good.
TEST_F(RevokedEntryTest, NoListFollowsOneOfTheFuture) {
  const std::string ahead = Revoked({}, kNow + absl::Hours(24));
  EXPECT_THAT(Revoke(authority_, ahead, {{"0a", kNever}}, kNow).status(),
              testing::Property(&absl::Status::message,
                                HasSubstr("the clock of this machine is, or "
                                          "was, wrong")));
  // An hour is borne, which changes nothing: what it left out had ended.
  const std::string little = Revoked({}, kNow + kClockSkew);
  EXPECT_TRUE(Revoke(authority_, little, {{"0a", kNever}}, kNow).ok());
}

// A reader that knew the entry without an end would never take a list without
// it.
TEST_F(RevokedEntryTest, StaysAsItWasWrittenFirst) {
  const std::string list = Revoked({{"0a", kNever}});
  EXPECT_THAT(TrustIn(Revoked({{"0a", kNow + kLife}}, kNow, list)).Revoked(),
              ElementsAre(Pair("0a", kNever)));
}

// Peers whose certificates are valid for twelve hours are revoked by the
// hundred for days.
TEST_F(RevokedEntryTest, AListOfManyRevocationsStaysBounded) {
  std::string list;
  size_t most = 0;
  for (int hour = 0; hour < 80; ++hour) {
    const absl::Time now = kNow + absl::Hours(hour);
    Revocations revoked;
    for (int i = 0; i < 100; ++i) {
      revoked[absl::StrCat("7f", absl::Hex(hour * 100 + i, absl::kZeroPad8))] =
          now + kLife;
    }
    list = Revoked(revoked, now, list);
    if (hour == 20) most = list.size();
  }
  EXPECT_EQ(TrustIn(list).Revoked().size(), 1300u);
  EXPECT_LE(list.size(), most + 100);
}

// The README names this number of entries as the room of a list.
TEST_F(RevokedEntryTest, ThousandsThatHaveNotEndedFitIntoAList) {
  Revocations revoked;
  for (int i = 0; i < 9000; ++i) {
    revoked[absl::StrCat("7f", absl::Hex(i, absl::kZeroPad8),
                         "0123456789abcdef01", "2345")] = kNow + kLife;
  }
  const std::string list = Revoked(revoked);
  EXPECT_LE(list.size(), kMaxCrlBytes);
  EXPECT_GT(list.size(), kMaxCrlBytes * 9 / 10);
}

TEST_F(RevokedEntryTest, AnEndThatCannotBeReadIsNone) {
  const KeyPair four = Peer(4);
  const std::string serial = ReadCertificate(four.certificate)->serial;
  const std::string list = Revoked({{serial, kNow + kLife}});
  const auto end_after = [&](auto change) {
    const Trust trust = TrustIn(Changed(authority_, list, change));
    EXPECT_THAT(trust.Check(four.certificate, kNow).status().message(),
                HasSubstr("revoked"));
    return trust.Revoked().at(serial);
  };
  using Bytes = std::string;
  EXPECT_EQ(end_after([](X509_REVOKED*) {}), kNow + kLife);
  for (const auto& [change, what] :
       std::vector<std::pair<void (*)(Bytes&), const char*>>{
           {[](Bytes& b) { b.clear(); }, "nothing"},
           {[](Bytes& b) { b = "garbage"; }, "no DER"},
           {[](Bytes& b) { b.pop_back(); }, "cut off"},
           {[](Bytes& b) { b += '\0'; }, "a byte too many"},
           {[](Bytes& b) { b[0] = V_ASN1_UTCTIME; }, "another type"},
           {[](Bytes& b) { b[6] = '9'; }, "month 9x"},
           {[](Bytes& b) { b = Bytes("\x18\0", 2); }, "an empty time"},
           {[](Bytes& b) {
              b = "\x18\x13"
                  "00000101000000+1200";
            },
            "before the year 0"}}) {
    EXPECT_EQ(end_after(ChangesBytes(change)), kNever) << what;
  }
  // Two ends are as bad as none: it would be undecided which one holds.
  EXPECT_EQ(end_after([](X509_REVOKED* entry) {
              EXPECT_TRUE(SetCertificateEnd(kNow, entry));
            }),
            kNever);
}

TEST_F(RevokedEntryTest, OfTwoEntriesOfACertificateTheLaterEndHolds) {
  for (const auto& [first, second] :
       {std::pair(kNow, kNow + kLife), std::pair(kNow + kLife, kNow)}) {
    const std::string twice =
        Changed(authority_, Revoked({{"0a", first}, {"0b", second}}),
                [](X509_REVOKED* entry) {
                  const openssl::IntegerPtr same(ASN1_INTEGER_new());
                  ASN1_INTEGER_set(same.get(), 10);
                  X509_REVOKED_set_serialNumber(entry, same.get());
                });
    EXPECT_THAT(TrustIn(twice).Revoked(),
                ElementsAre(Pair("0a", kNow + kLife)));
  }
}

// A run whose authority revokes, and peer 3, which reads the list by a clock of
// its own.
class ReaderOfListsTest : public ::testing::Test {
 protected:
  // Gives peer 3 the list of an authority that has revoked `revoked` alone;
  // `made`: by the authority's clock.
  void Give(const Revocations& revoked, absl::Time made) {
    const KeyPair pair{
        .certificate = *ReadPemFile(run_.authority_path() + "/ca.pem"),
        .key = *ReadPemFile(run_.authority_path() + "/ca-key.pem")};
    std::ofstream(reader_->crl_path()) << *Revoke(pair, "", revoked, made);
  }
  void Give(const Revocations& revoked) { Give(revoked, start_); }
  const TestRun run_;
  const absl::Time start_ = absl::Now();
  absl::Time now_ = start_;
  const std::shared_ptr<CertificateFolder> reader_ =
      run_.Certificates(run_.Peer(3), [this] { return now_; });
};

// The reader's clock is as far behind that of the authority as is allowed for.
TEST_F(ReaderOfListsTest, TakesAListWithoutWhatHasEnded) {
  const std::string four =
      *ReadPemFile(run_.Certificates(run_.Peer(4))->certificate_path());
  const absl::Time end = ReadCertificate(four)->until;
  run_.Revoke(run_.Peer(4), {run_.Peer(3)});
  EXPECT_THAT(reader_->Check(four).status().message(), HasSubstr("revoked"));
  ASSERT_TRUE(run_.authority().Revoke({"0a"}, end + kClockSkew).ok());
  ASSERT_TRUE(run_.authority().Publish(run_.PathOf(run_.Peer(3))).ok());
  now_ = end;
  EXPECT_THAT(reader_->Revoked(), ElementsAre("0a"));
  EXPECT_EQ(reader_->Problem(), "");
  EXPECT_THAT(reader_->Check(four).status().message(), HasSubstr("expired"));
}

// The dates of lists decide: a reader's clock may jump ahead for a moment.
TEST_F(ReaderOfListsTest, KeepsAnEntryUntilItsCertificateHasEnded) {
  const absl::Time end = absl::FromTimeT(absl::ToTimeT(start_)) + kLife;
  Give({{"0a", end}, {"0b", start_ + absl::Minutes(5)}});
  EXPECT_THAT(reader_->Revoked(), ElementsAre("0a", "0b"));
  now_ = end + absl::Hours(24);
  Give({{"0c", kNever}});
  EXPECT_THAT(reader_->Revoked(), ElementsAre("0a", "0b"));
  EXPECT_THAT(reader_->Problem(), HasSubstr("crl.pem is older"));
  const absl::Time soonest = end + kClockSkew;
  Give({{"0c", kNever}, {"0d", kNever}}, soonest - absl::Seconds(1));
  EXPECT_THAT(reader_->Revoked(), ElementsAre("0a", "0b"));
  Give({{"0c", kNever}, {"0d", kNever}, {"0e", kNever}}, soonest);
  EXPECT_THAT(reader_->Revoked(), ElementsAre("0c", "0d", "0e"));
  EXPECT_EQ(reader_->Problem(), "");
}

// A clock that is so far behind could take the certificate for a good one.
TEST_F(ReaderOfListsTest, LetsNobodyInByAListOfTheFuture) {
  const std::string four =
      *ReadPemFile(run_.Certificates(run_.Peer(4))->certificate_path());
  const absl::Time end = ReadCertificate(four)->until;
  run_.Revoke(run_.Peer(4), {run_.Peer(3)});
  EXPECT_THAT(reader_->Check(four).status().message(), HasSubstr("revoked"));
  Give({}, end + kClockSkew);
  now_ = end - absl::Seconds(1);
  EXPECT_THAT(reader_->Revoked(), ElementsAre());
  EXPECT_FALSE(reader_->Check(four).ok());
}

TEST_F(ReaderOfListsTest, NeverLetsAnEntryWithoutAnEndGo) {
  Give({{"0a", kNever}, {"0b", start_ + absl::Minutes(5)}});
  EXPECT_THAT(reader_->Revoked(), ElementsAre("0a", "0b"));
  Give({});
  now_ += absl::Hours(24 * 36500);
  EXPECT_THAT(reader_->Revoked(), ElementsAre("0a", "0b"));
  EXPECT_THAT(reader_->Problem(), HasSubstr("crl.pem is older"));
}

// A list that was not taken may be damaged and put back as it was.
TEST_F(ReaderOfListsTest, KnowsAnOlderListThroughDamage) {
  Give({{"0a", start_ + kLife}});
  EXPECT_THAT(reader_->Revoked(), ElementsAre("0a"));
  Give({});
  EXPECT_THAT(reader_->Problem(), HasSubstr("crl.pem is older"));
  const std::string kept = reader_->crl_path() + ".kept";
  std::filesystem::rename(reader_->crl_path(), kept);
  EXPECT_THAT(reader_->Problem(), HasSubstr("crl.pem cannot be read"));
  std::filesystem::rename(kept, reader_->crl_path());
  EXPECT_THAT(reader_->Problem(), HasSubstr("crl.pem is older"));
  EXPECT_THAT(reader_->Revoked(), ElementsAre("0a"));
}

// The copy of the certificate is the authority's only source of its end.
TEST_F(ReaderOfListsTest, WithoutItsCopyACertificatesEntryHasNoEnd) {
  const std::string five = run_.Issue(run_.Peer(5));
  const Certificate read = *ReadCertificate(*ReadPemFile(five + "/cert.pem"));
  const std::string copy =
      absl::StrCat(run_.authority_path(), "/issued/", read.serial, ".pem");
  std::filesystem::remove(copy);
  ASSERT_TRUE(run_.authority().Revoke({read.serial}, start_).ok());
  const auto trust = Trust::Create(
      *ReadPemFile(run_.authority_path() + "/ca.pem"), run_.Crl());
  EXPECT_THAT(trust->Revoked(), ElementsAre(Pair(read.serial, kNever)));
  // The name of a file is no serial number, though a certificate is there.
  EXPECT_FALSE(run_.authority().Revoke({"../../peer 3/cert"}, start_).ok());
}

}  // namespace
}  // namespace gossamer
