// Requests for certificates, made on one machine and signed on another.

#include "runtime/identity/signing_request.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/identity/authority_folder.h"
#include "runtime/identity/certificate_folder.h"
#include "runtime/identity/openssl.h"
#include "runtime/identity/request_folder.h"
#include "tests/runtime/identity/test_run.h"

namespace gossamer {
namespace signing_request_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const Identity kPeer{.run = "run", .peer = {9}};
const Identity kService{.run = "run", .role = Role::kTopology, .peer = {}};
const Identity kOperator{.run = "run", .role = Role::kOperator, .peer = {}};

std::string RequestOf(const Identity& identity) {
  return *WriteSigningRequest(identity, *MakeRequestKeys(identity.role));
}

// Returns a request as another tool makes it: of any key, for any names in
// OpenSSL's own spelling; with none if `names` is empty.
std::string Foreign(const openssl::KeyPtr& key, const std::string& names,
                    bool repeated = false) {
  const openssl::RequestPtr request(X509_REQ_new());
  EXPECT_EQ(X509_REQ_set_pubkey(request.get(), key.get()), 1);
  if (!names.empty()) {
    const openssl::ExtensionsPtr extensions(sk_X509_EXTENSION_new_null());
    for (int times = 0; times < (repeated ? 2 : 1); ++times) {
      sk_X509_EXTENSION_push(
          extensions.get(),
          X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name,
                              names.c_str()));
    }
    EXPECT_EQ(X509_REQ_add_extensions(request.get(), extensions.get()), 1);
  }
  EXPECT_GT(
      X509_REQ_sign(request.get(), key.get(),
                    openssl::IsEd25519(key.get()) ? nullptr : EVP_sha256()),
      0);
  return openssl::ToPem(
      [&](BIO* out) { return PEM_write_bio_X509_REQ(out, request.get()); });
}

std::string Refusal(const std::string& pem) {
  const absl::Status status = ReadSigningRequest(pem).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(SigningRequestTest, ARequestSaysTheIdentityThatItIsFor) {
  for (const Identity& identity : {kPeer, kService, kOperator}) {
    const std::string pem = RequestOf(identity);
    EXPECT_THAT(pem, Not(HasSubstr("PRIVATE")));
    const auto read = ReadSigningRequest(pem);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->identity, identity);
    EXPECT_EQ(read->signer_key.empty(), identity.role != Role::kTopology);
    EXPECT_EQ(KeyDigest(*read).size(), 64u);
    EXPECT_LT(pem.size(), kMaxSigningRequestBytes / 4);
  }
}

TEST(SigningRequestTest, EveryFlawIsNamed) {
  const std::string uri = "URI:gossamer://run/9";
  const auto p256 = [](const std::string& names) {
    return Foreign(openssl::MakeP256(), names);
  };
  EXPECT_TRUE(ReadSigningRequest(p256(uri)).ok());
  EXPECT_THAT(Refusal(""), HasSubstr("no certificate request"));
  EXPECT_THAT(Refusal(std::string(kMaxSigningRequestBytes + 1, 'x')),
              HasSubstr("bytes"));
  EXPECT_THAT(Refusal(RequestOf(kPeer).substr(0, 200)),
              HasSubstr("no certificate request"));
  EXPECT_THAT(Refusal(p256("")), HasSubstr("0 names"));
  EXPECT_THAT(Refusal(p256(uri + ",URI:gossamer://run/10")),
              HasSubstr("2 names"));
  EXPECT_THAT(Refusal(p256(uri + ",DNS:bank.example")), HasSubstr("2 names"));
  EXPECT_THAT(Refusal(p256("DNS:bank.example")), HasSubstr("1 names"));
  EXPECT_THAT(Refusal(Foreign(openssl::MakeP256(), uri, /*repeated=*/true)),
              HasSubstr("0 names"));
  EXPECT_THAT(Refusal(p256("URI:gossamer://run/09")),
              HasSubstr("is no identity"));
  EXPECT_THAT(Refusal(p256("URI:https://example.com")),
              HasSubstr("is no identity"));
  EXPECT_THAT(Refusal(p256("URI:gossamer://run/authority")),
              HasSubstr("to be the authority"));
  EXPECT_THAT(Refusal(RequestOf(kPeer) + RequestOf(kPeer)),
              HasSubstr("one request too many"));
  // Keys of another kind, or weak ones.
  for (const openssl::KeyPtr& key :
       {openssl::KeyPtr(EVP_EC_gen("P-384")), openssl::KeyPtr(EVP_RSA_gen(512)),
        openssl::MakeEd25519()}) {
    EXPECT_THAT(Refusal(Foreign(key, uri)),
                HasSubstr("another kind than EC P-256"));
  }
}

// One bit is changed anywhere: in the key, the names or the signature.
TEST(SigningRequestTest, ARequestWithOneBitChangedIsRefused) {
  const std::string pem = RequestOf(kPeer);
  const openssl::BioPtr reader = openssl::Reader(pem);
  const openssl::RequestPtr request = openssl::ReadRequestPem(reader.get());
  unsigned char* bytes = nullptr;
  const int size = i2d_X509_REQ(request.get(), &bytes);
  const std::string der(reinterpret_cast<char*>(bytes),
                        static_cast<size_t>(size));
  OPENSSL_free(bytes);
  for (size_t i = 0; i < der.size(); ++i) {
    std::string changed = der;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    const std::string text = absl::StrCat(
        "-----BEGIN CERTIFICATE REQUEST-----\n", absl::Base64Escape(changed),
        "\n-----END CERTIFICATE REQUEST-----\n");
    EXPECT_FALSE(ReadSigningRequest(text).ok()) << i;
  }
}

TEST(SigningRequestTest, TheServicesRequestHasTwoKeysOfOneIdentity) {
  const std::string whole = RequestOf(kService);
  const std::string kBegin = "-----BEGIN CERTIFICATE REQUEST-----";
  const size_t second = whole.find(kBegin, 1);
  ASSERT_NE(second, whole.npos);
  EXPECT_THAT(Refusal(whole.substr(0, second)),
              HasSubstr("without one for the key that signs views"));
  EXPECT_THAT(Refusal(whole.substr(second)), HasSubstr("EC P-256"));
  EXPECT_THAT(Refusal(whole.substr(0, second) + whole.substr(0, second)),
              HasSubstr("another kind than Ed25519"));
  EXPECT_THAT(
      Refusal(whole.substr(0, second) +
              Foreign(openssl::MakeEd25519(), "URI:gossamer://other/topology")),
      HasSubstr("different identities"));
  EXPECT_THAT(Refusal(whole + RequestOf(kPeer)),
              HasSubstr("one request too many"));
}

TEST(SigningRequestTest, ARequestNeedsKeysOfTheRightKind) {
  const RequestKeys keys = *MakeRequestKeys(Role::kTopology);
  for (const RequestKeys& wrong :
       {RequestKeys{}, RequestKeys{"no key", ""},
        RequestKeys{keys.signer_key, keys.signer_key},
        RequestKeys{keys.key, keys.key}, RequestKeys{keys.key, ""}}) {
    EXPECT_TRUE(
        absl::IsInvalidArgument(WriteSigningRequest(kService, wrong).status()));
  }
}

class RequestFolderTest : public ::testing::Test {
 protected:
  std::string Folder(const std::string& name) const {
    return absl::StrCat(machine_.path(), "/", name);
  }
  SigningRequest Request(const Identity& identity, const std::string& folder,
                         RequestedKey which = RequestedKey::kNew) const {
    const auto made = WriteRequest(folder, identity, which);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.value_or(SigningRequest{});
  }
  absl::StatusOr<Certificate> Sign(const SigningRequest& request,
                                   const std::string& out) const {
    return run_.authority().Sign(request, {"host.example"}, absl::Now(),
                                 absl::Hours(2), out);
  }
  static void Copy(const std::string& from, const std::string& to) {
    std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
  }

  const TestRun run_;
  const TemporaryFolder machine_;
};

TEST_F(RequestFolderTest, TheSignedAnswerCompletesTheFolder) {
  for (const Identity& who : {kPeer, kOperator, kService}) {
    const std::string mine = Folder(Describe(who));
    const std::string answer = Folder("answer to " + Describe(who));
    Request(who, mine);
    EXPECT_FALSE(CertificateFolder::Open(mine).ok());
    // The request has travelled.
    const auto request = ReadRequest(mine + "/request.pem");
    ASSERT_TRUE(request.ok()) << request.status();
    const auto issued = Sign(*request, answer);
    ASSERT_TRUE(issued.ok()) << issued.status();
    EXPECT_EQ(issued->identity, who);
    for (const auto& file : std::filesystem::directory_iterator(answer)) {
      EXPECT_THAT(*ReadCrlFile(file.path()), Not(HasSubstr("PRIVATE")));
    }
    Copy(answer, mine);
    const auto opened = CertificateFolder::Open(mine);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ((*opened)->identity(), who);
    for (const char* key : {"/key.pem", "/signer-key.pem"}) {
      struct stat info = {};
      if (::stat((mine + key).c_str(), &info) != 0) continue;
      EXPECT_EQ(info.st_mode & 0777, 0600u) << key;
    }
    // The run believes the certificate, and what it signs.
    const auto member = run_.Certificates(run_.Peer(1));
    EXPECT_TRUE(
        member->Check(*ReadPemFile((*opened)->certificate_path())).ok());
    if (who.role == Role::kTopology) {
      const auto signature = (*opened)->Sign("view", "text");
      ASSERT_TRUE(signature.ok()) << signature.status();
      EXPECT_TRUE(member->CheckSigner(signature->certificate).ok());
    }
  }
}

TEST_F(RequestFolderTest, ASignedCertificateIsListedAndCanBeRevoked) {
  const std::string mine = Folder("mine");
  const auto issued = Sign(Request(kPeer, mine), mine);
  ASSERT_TRUE(issued.ok()) << issued.status();
  EXPECT_THAT(issued->names, testing::ElementsAre("host.example"));
  const auto opened = CertificateFolder::Open(mine);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const auto list = run_.authority().List();
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->size(), 1u);
  EXPECT_EQ((*list)[0].certificate.serial, issued->serial);
  EXPECT_EQ((*list)[0].certificate.identity, kPeer);
  ASSERT_TRUE(run_.authority().Revoke({issued->serial}, absl::Now()).ok());
  ASSERT_TRUE(run_.authority().Publish(mine).ok());
  EXPECT_THAT(CertificateFolder::Open(mine).status().message(),
              HasSubstr("revoked"));
}

TEST_F(RequestFolderTest, AnotherRunsRequestIsNotSigned) {
  const Identity other{.run = "other", .peer = {9}};
  const auto refused = Sign(Request(other, Folder("mine")), Folder("answer"));
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
  EXPECT_THAT(refused.status().message(),
              AllOf(HasSubstr("\"other\""), HasSubstr("\"run\"")));
  EXPECT_FALSE(std::filesystem::exists(Folder("answer")));
  EXPECT_TRUE(run_.authority().List()->empty());
}

TEST_F(RequestFolderTest, KeysAreNeverReplaced) {
  const std::string mine = Folder("mine");
  const SigningRequest first = Request(kPeer, mine);
  const std::string key = *ReadPemFile(mine + "/key.pem");
  const auto refused = WriteRequest(mine, kPeer, RequestedKey::kNew);
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
  EXPECT_THAT(refused.status().message(),
              AllOf(HasSubstr("key.pem"), HasSubstr("--same-key")));
  // A lost request is made again, and a certificate is renewed, with the same
  // key.
  const SigningRequest again = Request(kPeer, mine, RequestedKey::kSame);
  EXPECT_EQ(KeyDigest(again), KeyDigest(first));
  EXPECT_EQ(*ReadPemFile(mine + "/key.pem"), key);
  ASSERT_TRUE(Sign(again, mine).ok());
  ASSERT_TRUE(Sign(Request(kPeer, mine, RequestedKey::kSame), mine).ok());
  EXPECT_TRUE(CertificateFolder::Open(mine).ok());
  // The authority's own folder gets no other key either.
  EXPECT_FALSE(
      WriteRequest(run_.authority_path(), kPeer, RequestedKey::kNew).ok());
  EXPECT_THAT(WriteRequest(Folder("none"), kPeer, RequestedKey::kSame)
                  .status()
                  .message(),
              HasSubstr("cannot be read"));
  ::chmod((mine + "/key.pem").c_str(), 0640);
  EXPECT_THAT(WriteRequest(mine, kPeer, RequestedKey::kSame).status().message(),
              HasSubstr("chmod 600"));
}

TEST_F(RequestFolderTest, AnAnswerReplacesNoOtherHoldersCertificate) {
  const SigningRequest request = Request(kPeer, Folder("mine"));
  const std::string theirs = run_.Issue(run_.Peer(3));
  const std::string before = *ReadPemFile(theirs + "/cert.pem");
  const size_t kept = run_.authority().List()->size();
  EXPECT_THAT(Sign(request, theirs).status().message(),
              HasSubstr("is not the key of the request"));
  EXPECT_EQ(*ReadPemFile(theirs + "/cert.pem"), before);
  ASSERT_TRUE(
      Sign(Request(kOperator, Folder("operator")), Folder("answer")).ok());
  EXPECT_THAT(Sign(request, Folder("answer")).status().message(),
              HasSubstr("is not of gossamer://run/9"));
  EXPECT_EQ(run_.authority().List()->size(), kept + 1);
  // An earlier answer to the same machine is removed.
  ASSERT_TRUE(Sign(request, Folder("own")).ok());
  EXPECT_TRUE(Sign(request, Folder("own")).ok());
}

TEST_F(RequestFolderTest, AFileThatIsNoRequestIsNamed) {
  EXPECT_THAT(ReadRequest(Folder("none.pem")).status().message(),
              AllOf(HasSubstr("none.pem"), HasSubstr("certs request")));
  for (const size_t size :
       {size_t{3}, kMaxSigningRequestBytes + 1, kMaxPemBytes + 1}) {
    std::ofstream(Folder("request.pem")) << std::string(size, 'x');
    const absl::Status status = ReadRequest(Folder("request.pem")).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("request.pem"));
  }
}

}  // namespace signing_request_test
}  // namespace gossamer
