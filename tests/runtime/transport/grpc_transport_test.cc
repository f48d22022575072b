// The parts of the transport that only gRPC has: hellos, hostile ends, limits,
// addresses.

#include "runtime/transport/grpc/grpc_transport.h"

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/real_loop.h"
#include "runtime/transport/grpc/chunking.h"
#include "tests/runtime/transport/grpc_node.h"

namespace gossamer {
namespace grpc_transport_test {

using ::testing::AnyOf;
using ::testing::HasSubstr;

ByteVector FirstChunk(size_t body, uint64_t declared, size_t parts = 0) {
  FrameChunker chunker(
      Channel::kEdge,
      {SharedBytes(), SharedBytes::FromVector(ByteVector(body))}, body, parts);
  const Chunk chunk = chunker.Next();
  ByteVector bytes(chunk.header().begin(), chunk.header().end());
  bytes.insert(bytes.end(), chunk.body.begin(), chunk.body.end());
  std::memcpy(&bytes[16], &declared, sizeof declared);
  return bytes;
}

class HostileTest : public ::testing::Test {
 protected:
  HostileTest() : node_(OptionsOf(kA)) { node_.Connect(kB, ""); }

  // Checks that an honest peer is still served.
  void ExpectStillServing() {
    Node honest(OptionsOf(kB));
    honest.Connect(kA, "");
    node_.Connect(kB, honest.address());
    ASSERT_TRUE(honest.Await([](const Seen& s) { return !s.open.empty(); }));
    ASSERT_TRUE(honest.Send(kA, 1000));
    ASSERT_TRUE(node_.Await([](const Seen& s) { return !s.frames.empty(); }));
  }
  void ExpectNothingReceived() {
    EXPECT_TRUE(
        node_.recorder.With([](const Seen& s) { return s.frames.empty(); }));
  }
  Node node_;
};

TEST_F(HostileTest, BytesThatAreNoHelloAreRefused) {
  RawClient client(node_.address());
  client.Write(ByteVector(100, std::byte{'x'}));
  const grpc::Status status = client.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_THAT(status.error_message(), HasSubstr("hello"));
  ExpectNothingReceived();
  ExpectStillServing();
}

TEST_F(HostileTest, AnEmptyOrAnEndlessFirstMessageIsRefused) {
  for (size_t bytes : {0u, 3u, 100'000u}) {
    RawClient client(node_.address());
    client.Write(ByteVector(bytes));
    EXPECT_EQ(client.Finish().error_code(), grpc::StatusCode::DATA_LOSS);
  }
}

TEST_F(HostileTest, AnotherRunPeerOrVersionIsRefusedWithTheReason) {
  const auto refusal = [&](TransportHello hello) {
    RawClient client(node_.address());
    client.Write(EncodeHello(hello));
    return client.Finish();
  };
  TransportHello hello = HelloOfB();
  hello.run_id = "other";
  EXPECT_THAT(refusal(hello).error_message(), HasSubstr("run \"other\""));
  hello = HelloOfB();
  hello.target = PeerId{9};
  EXPECT_THAT(refusal(hello).error_message(), HasSubstr("this is peer 1"));
  hello = HelloOfB();
  hello.versions = {77, 77};
  EXPECT_THAT(refusal(hello).error_message(), HasSubstr("version 77"));
  hello = HelloOfB();
  hello.self = PeerId{1234};
  EXPECT_THAT(refusal(hello).error_message(), HasSubstr("not a neighbour"));
  EXPECT_EQ(node_.CountProblems(), 4u) << "each is reported once";
  EXPECT_TRUE(node_.recorder.With([](const Seen& s) { return s.ups.empty(); }));
  ExpectStillServing();
}

// The end that dials says how many there are, so this one, which wants one,
// takes a second.
TEST(LanesOverGrpcTest, ALaneOfNoConnectionIsRefused) {
  Node node(OptionsOf(kA));
  node.Connect(kB, "");
  const auto refusal = [&](uint32_t lane, uint64_t attempt) {
    RawClient client(node.address());
    TransportHello hello = HelloOfB();
    hello.lane = lane;
    hello.attempt = attempt;
    client.Write(EncodeHello(hello));
    return std::string(client.Finish().error_message());
  };
  EXPECT_THAT(refusal(1, 1), HasSubstr("no such connection"));
  RawClient first(node.address());
  first.Write(EncodeHello(HelloOfB()));
  ASSERT_TRUE(first.Read()) << "the answer";
  EXPECT_THAT(refusal(1, 2), HasSubstr("no such connection"));
  EXPECT_THAT(refusal(8, 1), HasSubstr("no connection has so many"));
  EXPECT_THAT(refusal(~0u, 1), HasSubstr("no such connection"));
  RawClient lane(node.address());
  TransportHello hello = HelloOfB();
  hello.lane = 1;
  lane.Write(EncodeHello(hello));
  ASSERT_TRUE(lane.Read()) << "the answer";
  EXPECT_THAT(refusal(1, 1), HasSubstr("it has that lane"));
  // The two lanes carry one frame, which needs both.
  ASSERT_TRUE(lane.Write(FirstChunk(300, 300, 2)));
  ASSERT_TRUE(first.Write(FirstChunk(1000, 1000, 2)));
  ASSERT_TRUE(node.Await([](const Seen& s) { return s.frames.size() == 1; }));
  EXPECT_TRUE(node.recorder.With([](const Seen& s) {
    return s.ups.size() == 1 && s.frames[0].frame.body.size() == 1300;
  }));
  // A lane that sends what no peer sends ends the whole connection.
  ASSERT_TRUE(lane.Write(FirstChunk(300, 300)));
  ASSERT_TRUE(node.Await([](const Seen& s) { return s.downs.size() == 1; }));
  EXPECT_FALSE(first.Finish().ok());
}

// The other end takes only two of the three streams that this one wants.
TEST(LanesOverGrpcTest, AConnectionDoesWithoutALaneThatIsRefused) {
  GrpcOptions few = OptionsOf(kB);
  few.max_connections = 2;
  few.lanes = 3;
  few.max_body_bytes = 4 << 20;
  Node b(few);
  b.Connect(kA, "");
  GrpcOptions many = OptionsOf(kA);
  many.lanes = 3;
  many.max_body_bytes = 4 << 20;
  Node a(many);
  a.Connect(kB, b.address());
  EXPECT_TRUE(absl::IsResourceExhausted(a.AwaitProblem()));
  for (const size_t bytes : {3'000'000u, 100u, 1'000'000u}) {
    ASSERT_TRUE(a.Send(kB, bytes));
    ASSERT_TRUE(b.Send(kA, bytes));
  }
  for (Node* node : {&a, &b}) {
    ASSERT_TRUE(
        node->Await([](const Seen& s) { return s.frames.size() == 3; }));
    EXPECT_TRUE(node->recorder.With([](const Seen& s) {
      return s.frames[0].frame.body.size() == 3'000'000 &&
             s.frames[1].frame.body.size() == 100 && s.downs.empty();
    }));
  }
}

TEST_F(HostileTest, ABadChunkEndsTheConnection) {
  ByteVector damaged = FirstChunk(1000, 1000);
  damaged.back() ^= std::byte{1};
  const std::vector<ByteVector> attacks = {
      ByteVector(5),
      ByteVector(5000, std::byte{0xff}),
      damaged,
      FirstChunk(1000, uint64_t{1} << 40),  // declares more than is allowed
      FirstChunk(1000, 999),                // sends more than it declares
  };
  for (size_t i = 0; i < attacks.size(); ++i) {
    RawClient client(node_.address());
    client.Write(EncodeHello(HelloOfB()));
    ASSERT_TRUE(client.Read()) << "the answer";
    client.Write(attacks[i]);
    // A stream that ends while its answer is being written is cancelled, and
    // the other end then hears no reason.
    EXPECT_THAT(client.Finish().error_code(),
                AnyOf(grpc::StatusCode::DATA_LOSS, grpc::StatusCode::CANCELLED))
        << i;
    ASSERT_TRUE(node_.Await([&](const Seen& s) {
      return s.downs.size() == i + 1 && s.open.empty();
    }));
    EXPECT_TRUE(node_.recorder.With([](const Seen& s) {
      return absl::IsDataLoss(s.reasons.back());
    })) << i;
  }
  ExpectNothingReceived();
  ExpectStillServing();
}

TEST_F(HostileTest, AMessageOverTheLimitEndsTheConnection) {
  RawClient client(node_.address());
  client.Write(EncodeHello(HelloOfB()));
  ASSERT_TRUE(client.Read());
  client.Write(ByteVector(5 << 20));
  EXPECT_FALSE(client.Finish().ok());
  ASSERT_TRUE(node_.Await([](const Seen& s) { return s.open.empty(); }));
  ExpectStillServing();
}

TEST_F(HostileTest, HalfAFrameIsDroppedWithItsConnection) {
  {
    RawClient client(node_.address());
    client.Write(EncodeHello(HelloOfB()));
    ASSERT_TRUE(client.Read());
    FrameChunker chunker(
        Channel::kEdge,
        {SharedBytes(), SharedBytes::FromVector(ByteVector(200'000))}, 100'000);
    const Chunk chunk = chunker.Next();
    ByteVector bytes(chunk.header().begin(), chunk.header().end());
    bytes.insert(bytes.end(), chunk.body.begin(), chunk.body.end());
    ASSERT_TRUE(client.Write(bytes));
    // The peer lives, though its frame does not end.
    ASSERT_TRUE(node_.Await([](const Seen& s) { return s.parts == 1; }));
  }
  ASSERT_TRUE(node_.Await([](const Seen& s) { return s.downs.size() == 1; }));
  ExpectNothingReceived();
  ExpectStillServing();
}

TEST_F(HostileTest, OtherMethodsAreNotServed) {
  RawClient client(node_.address(), "/grpc.health.v1.Health/Watch");
  EXPECT_EQ(client.Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(HostileTest, ConnectionsOfOnePeerAreBounded) {
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(std::make_unique<RawClient>(node_.address()));
    clients.back()->Write(EncodeHello(HelloOfB()));
    ASSERT_TRUE(clients.back()->Read());
    ASSERT_TRUE(node_.Await([&](const Seen& s) {
      return s.ups.size() == static_cast<size_t>(i + 1) && s.open.size() <= 4;
    }));
  }
}

TEST(GrpcTransportTest, StreamsAreBounded) {
  GrpcOptions options = OptionsOf(kA);
  options.max_connections = 2;
  Node node(options);
  RawClient first(node.address());
  RawClient second(node.address());
  RawClient third(node.address());
  // The refused one of the three is not determined; the end that is refused
  // hears the reason.
  EXPECT_EQ(node.AwaitProblem().code(), absl::StatusCode::kResourceExhausted);
}

TEST(GrpcTransportTest, SilenceInsteadOfAHelloIsCutOff) {
  GrpcOptions options = OptionsOf(kA);
  options.hello_timeout = absl::Milliseconds(20);
  Node node(options);
  RawClient client(node.address());
  EXPECT_EQ(client.Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST(GrpcTransportTest, ABusyReaderLosesNothing) {
  Node a(OptionsOf(kA));
  Node b(OptionsOf(kB));
  b.Connect(kA, "");
  a.Connect(kB, b.address());
  ASSERT_TRUE(b.Await([](const Seen& s) { return !s.open.empty(); }));
  Mutex mu;
  CondVar sent;
  bool all_sent = false;
  a.loop.Post([&] {
    MutexLock lock(&mu);
    sent.AwaitFor(&mu, kLimit, [&] { return all_sent; });
  });
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(b.Send(kA, 100'000));
  {
    MutexLock lock(&mu);
    all_sent = true;
    sent.Signal();
  }
  ASSERT_TRUE(a.Await([](const Seen& s) { return s.frames.size() == 100; }));
}

TEST(GrpcTransportTest, AQueueOverItsLimitClosesTheConnection) {
  GrpcOptions options = OptionsOf(kA);
  options.max_queued_bytes = 1 << 20;
  Node a(options);
  // This peer sends a hello and then reads nothing more.
  Node b(OptionsOf(kB));
  b.Connect(kA, "");
  a.Connect(kB, b.address());
  ASSERT_TRUE(a.Await([](const Seen& s) { return !s.open.empty(); }));
  bool refused = false;
  a.loop.PostAndWait([] {}, kLimit);
  for (int i = 0; i < 100'000 && !refused; ++i) refused = !a.Send(kB, 1 << 20);
  EXPECT_TRUE(refused);
  ASSERT_TRUE(a.Await([](const Seen& s) { return !s.downs.empty(); }));
}

TEST(GrpcTransportTest, TheWrongPeerAtAnAddressIsReported) {
  Node a(OptionsOf(kA));
  Node c(OptionsOf(PeerId{3}));
  c.Connect(kA, "");
  a.Connect(kB, c.address());
  EXPECT_THAT(a.AwaitProblem().message(), HasSubstr("this is peer 3"));
}

TEST(GrpcTransportTest, NobodyAtAnAddressIsReported) {
  Node a(OptionsOf(kA));
  a.Connect(kB, "127.0.0.1:1");
  EXPECT_EQ(a.AwaitProblem().code(), absl::StatusCode::kUnavailable);
}

TEST(GrpcTransportTest, APeerThatOnlyDialsReachesOneThatListens) {
  GrpcOptions options = OptionsOf(kA);
  options.listen_address = "";
  Node a(options);
  Node b(OptionsOf(kB));
  b.Connect(kA, "");
  a.Connect(kB, b.address());
  ASSERT_TRUE(a.Await([](const Seen& s) { return !s.open.empty(); }));
  ASSERT_TRUE(a.Send(kB, 10));
  ASSERT_TRUE(b.Await([](const Seen& s) { return s.frames.size() == 1; }));
}

// A release of version 2 would end a connection on which a notice comes.
TEST(GrpcTransportTest, NoticesGoToWhoKnowsThem) {
  for (const uint32_t newest : {2u, 3u}) {
    Recorder recorder;
    RealLoop loop;
    auto transport = *GrpcTransport::Create(&loop, OptionsOf(kA));
    transport->SetListener(&recorder);
    transport->Connect(kB, "");
    loop.Start();
    RawClient client(absl::StrCat("127.0.0.1:", transport->port()));
    TransportHello hello = HelloOfB();
    hello.versions = {2, newest};
    ASSERT_TRUE(client.Write(EncodeHello(hello)));
    ASSERT_TRUE(client.Read());
    ASSERT_TRUE(recorder.Await(
        [](const Seen& seen) { return seen.ups.size() == 1; }, kLimit));
    bool sent = false, edge = false;
    loop.PostAndWait(
        [&] {
          const Frame frame{SharedBytes::FromVector(ByteVector(3)),
                            SharedBytes()};
          sent = transport->Send(kB, Channel::kNotice, frame);
          edge = transport->Send(kB, Channel::kEdge, frame);
        },
        kLimit);
    EXPECT_EQ(sent, newest == 3);
    EXPECT_TRUE(edge) << "the connection stays";
    EXPECT_TRUE(client.Read());
    loop.PostAndWait([&] { transport.reset(); }, kLimit);
  }
}

TEST(GrpcTransportTest, RefusesOptionsThatCannotBe) {
  RealLoop loop;
  const auto refusal = [&](auto change) {
    GrpcOptions options = OptionsOf(kA);
    change(options);
    return GrpcTransport::Create(&loop, options).status();
  };
  EXPECT_TRUE(refusal([](GrpcOptions&) {}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(
      refusal([](GrpcOptions& o) { o.self = PeerId{}; })));
  EXPECT_TRUE(
      absl::IsInvalidArgument(refusal([](GrpcOptions& o) { o.run_id = ""; })));
  EXPECT_TRUE(absl::IsInvalidArgument(
      refusal([](GrpcOptions& o) { o.chunk_bytes = 0; })));
  EXPECT_TRUE(absl::IsInvalidArgument(
      refusal([](GrpcOptions& o) { o.congestion_control = "slow"; })));
  EXPECT_TRUE(
      refusal([](GrpcOptions& o) { o.congestion_control = "cubic"; }).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(
      refusal([](GrpcOptions& o) { o.listen_address = "0.0.0.0:0"; })));
  EXPECT_TRUE(absl::IsInvalidArgument(
      refusal([](GrpcOptions& o) { o.listen_address = "127.evil.org:0"; })));
  EXPECT_TRUE(refusal([](GrpcOptions& o) {
                o.listen_address = "0.0.0.0:0";
                o.allow_insecure_remote = true;
              }).ok());
}

TEST(GrpcTransportTest, AnAddressOfAnotherMachineIsNotDialled) {
  Node a(OptionsOf(kA));
  a.Connect(kB, "192.0.2.1:7700");
  EXPECT_THAT(a.AwaitProblem().message(), HasSubstr("allow_insecure_remote"));
}

TEST(GrpcTransportTest, APortInUseIsSaid) {
  Node a(OptionsOf(kA));
  RealLoop loop;
  GrpcOptions options = OptionsOf(kB);
  options.listen_address = a.address();
  const absl::Status status = GrpcTransport::Create(&loop, options).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(status.message(), HasSubstr("in use"));
}

}  // namespace grpc_transport_test
}  // namespace gossamer
