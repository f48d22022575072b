// Admission where certificates are required, and the right to stay.

#include "runtime/transport/grpc/tls.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/transport/grpc/grpc_transport.h"
#include "tests/runtime/identity/test_run.h"
#include "tests/runtime/transport/grpc_node.h"
#include "tests/runtime/transport/raw_socket.h"
#include "tests/runtime/transport/tls_client.h"

namespace gossamer {
namespace tls_test {

using ::testing::HasSubstr;

// With a gate before gRPC, and without.
class TlsTest : public ::testing::TestWithParam<bool> {
 protected:
  GrpcOptions OptionsWith(PeerId self,
                          std::shared_ptr<CertificateFolder> certificates) {
    GrpcOptions options = OptionsOf(self);
    options.certificates = std::move(certificates);
    options.tls_gate = GetParam();
    options.check_again = absl::Milliseconds(20);
    return options;
  }
  GrpcOptions LockedOptions(PeerId self) {
    return OptionsWith(self, run_.Certificates(run_.Peer(self.value)));
  }
  // Returns the status that peer A gives a client with these credentials that
  // calls itself B.
  grpc::Status Refusal(std::shared_ptr<grpc::ChannelCredentials> credentials) {
    Node a(LockedOptions(kA));
    a.Connect(kB, "");
    RawClient client(a.address(), "/gossamer.Edge/Exchange", credentials);
    client.Write(EncodeHello(HelloOfB()));
    const grpc::Status status = client.Finish();
    EXPECT_TRUE(a.recorder.With([](const Seen& s) { return s.ups.empty(); }));
    return status;
  }
  static std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(
      std::shared_ptr<CertificateFolder> folder) {
    return TlsCredentials(std::move(folder)).Channel(Role::kPeer);
  }

  const TestRun run_;
};

TEST_P(TlsTest, TwoPeersOfARunExchangeFrames) {
  Node a(LockedOptions(kA));
  Node b(LockedOptions(kB));
  b.Connect(kA, "");
  a.Connect(kB, b.address());
  ASSERT_TRUE(a.Await([](const Seen& s) { return !s.open.empty(); }));
  ASSERT_TRUE(a.Send(kB, 100'000));
  ASSERT_TRUE(b.Await([](const Seen& s) { return s.frames.size() == 1; }));
  ASSERT_TRUE(b.Send(kA, 100'000));
  ASSERT_TRUE(a.Await([](const Seen& s) { return s.frames.size() == 1; }));
}

// More connections than all lanes need, old and new; each has sent a valid
// hello.
TEST_P(TlsTest, ConnectionsOfOneNeighbourAreBounded) {
  constexpr size_t kMax = 32;
  GrpcOptions options = LockedOptions(kA);
  options.max_connections_per_peer = kMax + 8;  // the streams in them
  Node a(options);
  a.Connect(kB, "");
  const auto credentials = CredentialsOf(run_.Certificates(run_.Peer(2)));
  std::vector<std::unique_ptr<RawClient>> clients;
  for (size_t i = 0; i <= kMax; ++i) {
    EXPECT_TRUE(a.recorder.With([](const Seen& s) { return s.downs.empty(); }));
    clients.push_back(std::make_unique<RawClient>(
        a.address(), "/gossamer.Edge/Exchange", credentials));
    ASSERT_TRUE(clients.back()->Write(EncodeHello(HelloOfB())));
    ASSERT_TRUE(clients.back()->Read()) << i;
  }
  // The server ends them before the clients' own deadline does.
  ASSERT_TRUE(a.recorder.Await(
      [](const Seen& s) { return s.downs.size() == 1; }, kLimit / 4));
  EXPECT_TRUE(a.recorder.With([](const Seen& s) {
    return s.downs[0] == s.ups[0] && s.open.size() == kMax;
  }));
}

TEST_P(TlsTest, NobodyWithoutACertificateGetsIn) {
  EXPECT_FALSE(Refusal(grpc::InsecureChannelCredentials()).ok());
  Node a(LockedOptions(kA));
  a.Connect(kB, "");
  Node open(OptionsOf(kB));
  open.Connect(kA, "");
  a.Connect(kB, open.address());
  EXPECT_FALSE(a.AwaitProblem().ok());
  EXPECT_TRUE(a.recorder.With([](const Seen& s) { return s.ups.empty(); }));
  EXPECT_TRUE(open.recorder.With([](const Seen& s) { return s.ups.empty(); }));
}

TEST_P(TlsTest, ACertificateOfAnotherAuthorityIsRefused) {
  const TestRun impostor;
  EXPECT_FALSE(
      Refusal(CredentialsOf(impostor.Certificates(impostor.Peer(2)))).ok());
}

TEST_P(TlsTest, TheCertificateOfAnotherPeerIsRefused) {
  const grpc::Status status =
      Refusal(CredentialsOf(run_.Certificates(run_.Peer(3))));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(status.error_message(),
              HasSubstr("who says to be peer 2 has the certificate of peer 3"));
}

TEST_P(TlsTest, AnOperatorIsNoPeer) {
  const grpc::Status status =
      Refusal(CredentialsOf(run_.Certificates(run_.Other(Role::kOperator))));
  EXPECT_THAT(status.error_message(), HasSubstr("an operator"));
}

TEST_P(TlsTest, AnExpiredCertificateIsRefused) {
  const Identity b = run_.Peer(2);
  const absl::Time then = absl::Now() - absl::Minutes(30);
  const std::string path = run_.Issue(b, then, absl::Minutes(10));
  // The certificate is still valid by the folder's own clock only.
  const auto folder = CertificateFolder::Open(path, [then] { return then; });
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_FALSE(Refusal(CredentialsOf(*folder)).ok());
}

TEST_P(TlsTest, TheHolderOfARevokedCertificateGetsTheReason) {
  const auto b = run_.Certificates(run_.Peer(2));
  run_.Revoke(run_.Peer(2), {});
  const grpc::Status status = Refusal(CredentialsOf(b));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(status.error_message(), HasSubstr("revoked"));
}

TEST_P(TlsTest, RevocationEndsOpenConnections) {
  Node a(LockedOptions(kA));
  Node b(LockedOptions(kB));
  b.Connect(kA, "");
  a.Connect(kB, b.address());
  ASSERT_TRUE(a.Await([](const Seen& s) { return !s.open.empty(); }));
  run_.Revoke(run_.Peer(2), {run_.Peer(1)});
  ASSERT_TRUE(a.Await([](const Seen& s) { return !s.downs.empty(); }));
  a.recorder.With([](const Seen& s) {
    EXPECT_THAT(s.reasons.front().message(), HasSubstr("revoked"));
    return 0;
  });
}

// A thief of a peer's old key may be faster than that peer at a further lane.
TEST_P(TlsTest, RevocationEndsALaneOfAnotherCertificate) {
  GrpcOptions two = LockedOptions(kA);
  two.lanes = 2;
  Node a(two);
  a.Connect(kB, "");
  const std::string own = run_.Issue(run_.Peer(2));
  const std::string stolen = absl::StrCat(own, "-stolen");
  std::filesystem::copy(own, stolen);
  const std::string serial = run_.authority().List()->back().certificate.serial;
  run_.Issue(run_.Peer(2));
  const auto open = [](const std::string& path) {
    return CredentialsOf(CertificateFolder::Open(path).value());
  };
  RawClient first(a.address(), "/gossamer.Edge/Exchange", open(own));
  first.Write(EncodeHello(HelloOfB()));
  ASSERT_TRUE(first.Read()) << "the answer";
  RawClient lane(a.address(), "/gossamer.Edge/Exchange", open(stolen));
  TransportHello hello = HelloOfB();
  hello.lane = 1;
  lane.Write(EncodeHello(hello));
  ASSERT_TRUE(lane.Read()) << "the answer";
  ASSERT_TRUE(run_.authority().Revoke({serial}, absl::Now()).ok());
  ASSERT_TRUE(run_.authority().Publish(run_.PathOf(run_.Peer(1))).ok());
  ASSERT_TRUE(a.Await([](const Seen& s) { return !s.downs.empty(); }));
  a.recorder.With([](const Seen& s) {
    EXPECT_THAT(s.reasons.front().message(), HasSubstr("revoked"));
    return 0;
  });
}

TEST_P(TlsTest, RenewedFilesAreUsedAndOpenConnectionsStay) {
  Node a(LockedOptions(kA));
  Node b(LockedOptions(kB));
  b.Connect(kA, "");
  a.Connect(kB, b.address());
  ASSERT_TRUE(a.Await([](const Seen& s) { return !s.open.empty(); }));
  const auto shown = [&] {
    RawClient client(b.address(), "/gossamer.Edge/Exchange",
                     CredentialsOf(run_.Certificates(run_.Peer(3))));
    client.Write(ByteVector(10));
    client.Finish();
    const auto pem = client.context().auth_context()->FindPropertyValues(
        GRPC_X509_PEM_CERT_PROPERTY_NAME);
    return pem.empty() ? "" : std::string(pem[0].data(), pem[0].size());
  };
  const std::string before = shown();
  ASSERT_NE(before, "");
  run_.Issue(run_.Peer(2));
  const absl::Time limit = absl::Now() + kLimit;
  std::string after = before;
  while ((after == before || after.empty()) && absl::Now() < limit) {
    after = shown();
  }
  EXPECT_NE(after, before);
  EXPECT_EQ(after, *ReadPemFile(run_.PathOf(run_.Peer(2)) + "/cert.pem"));
  ASSERT_TRUE(b.Send(kA, 1000));
  ASSERT_TRUE(a.Await([](const Seen& s) { return s.frames.size() == 1; }));
  EXPECT_TRUE(a.recorder.With([](const Seen& s) { return s.downs.empty(); }));
}

TEST_P(TlsTest, TheOptionsMustNameThePeerOfTheCertificate) {
  RealLoop loop;
  const absl::Status status =
      GrpcTransport::Create(&loop,
                            OptionsWith(kB, run_.Certificates(run_.Peer(1))))
          .status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(status.message(), HasSubstr("gossamer://run/1"));
}

int Threads() {
  int threads = 0;
  for (const auto& t : std::filesystem::directory_iterator("/proc/self/task")) {
    threads += t.exists();
  }
  return threads;
}

// Every watched folder has a thread, and lives as long as its users.
TEST_P(TlsTest, AnEndedConnectionLeavesNoThreadBehind) {
  Node a(LockedOptions(kA));
  const auto folder = run_.Certificates(run_.Peer(3));
  const auto dial = [&] {
    RawClient client(a.address(), "/gossamer.Edge/Exchange",
                     CredentialsOf(folder));
    client.Write(ByteVector(10));
    client.Finish();
  };
  dial();
  const int before = Threads();
  for (int i = 0; i < 20; ++i) dial();
  // gRPC releases a connection a little after its last user does.
  const absl::Time limit = absl::Now() + absl::Seconds(20);
  while (Threads() > before + 4 && absl::Now() < limit) {
    absl::SleepFor(absl::Milliseconds(50));
  }
  EXPECT_LE(Threads(), before + 4);
}

TEST_P(TlsTest, OlderVersionsOfTlsAreRefused) {
  Node a(LockedOptions(kA));
  const int port = PortOf(a.address());
  const std::string folder = run_.Issue(run_.Peer(2));
  EXPECT_EQ(TlsClient(port, folder, "h2", TLS1_3_VERSION).Agree(), "TLSv1.3");
  EXPECT_EQ(TlsClient(port, folder, "h2", TLS1_2_VERSION).Agree(), "");
}

INSTANTIATE_TEST_SUITE_P(Gate, TlsTest, ::testing::Bool());

}  // namespace tls_test
}  // namespace gossamer
