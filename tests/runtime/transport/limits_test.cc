// The bytes and the time that a hostile end can cost a peer.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/transport/grpc/chunking.h"
#include "runtime/transport/grpc/grpc_transport.h"
#include "runtime/transport/grpc/hello.h"
#include "tests/runtime/identity/test_run.h"
#include "tests/runtime/transport/grpc_node.h"
#include "tests/runtime/transport/hostile_server.h"
#include "tests/runtime/transport/raw_socket.h"
#include "tests/runtime/transport/tcp_relay.h"
#include "tests/testing/peak_memory.h"

namespace gossamer {
namespace limits_test {

constexpr absl::Duration kShort = absl::Milliseconds(300);

// The first bytes of an HTTP/2 connection, and empty settings.
const std::string kPreface = std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") +
                             std::string("\0\0\0\4\0\0\0\0\0", 9);

ByteVector BytesOf(const Chunk& chunk) {
  ByteVector bytes;
  for (const auto part : {chunk.header(), chunk.head, chunk.body}) {
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  return bytes;
}

GrpcOptions Hasty() {
  GrpcOptions options = OptionsOf(kA);
  options.hello_timeout = kShort;
  return options;
}

TEST(LimitsTest, AClientsCompressionBombIsRefusedWithoutUnpackingIt) {
  Node node(OptionsOf(kA));
  node.Connect(kB, "");
  grpc::ChannelArguments arguments;
  arguments.SetCompressionAlgorithm(GRPC_COMPRESS_GZIP);
  RawClient client(node.address(), "/gossamer.Edge/Exchange",
                   grpc::InsecureChannelCredentials(), arguments);
  const grpc::ByteBuffer bomb = Bomb(256);
  ResetPeakMemory();
  const int64_t before = PeakMemory();
  client.Write(bomb);
  const grpc::Status status = client.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED)
      << status.error_message();
  EXPECT_LT(PeakMemory() - before, kBombRefusal);
  EXPECT_TRUE(node.recorder.With([](const Seen& s) { return s.ups.empty(); }));
}

// gRPC itself refuses both.  Only the sending end hears that.  The other end
// learns that the stream is over, and not why: for an unauthenticated end that
// its connection failed, for a neighbour that it is down.
TEST(LimitsTest, AMessageThatGrpcRefusesIsReportedToItsSenderOnly) {
  constexpr size_t kTooMuch = (size_t{4} << 20) + kMaxChunkOverhead + 1;
  for (const bool compressed : {false, true}) {
    for (const bool greets : {false, true}) {
      SCOPED_TRACE(testing::Message() << compressed << greets);
      Node node(OptionsOf(kA));
      node.Connect(kB, "");
      grpc::ChannelArguments arguments;
      if (compressed) {
        arguments.SetCompressionAlgorithm(GRPC_COMPRESS_GZIP);
      }
      RawClient client(node.address(), "/gossamer.Edge/Exchange",
                       grpc::InsecureChannelCredentials(), arguments);
      if (greets && !compressed) {
        ASSERT_TRUE(client.Write(EncodeHello(HelloOfB())));
        ASSERT_TRUE(client.Read());
      }
      client.Write(ByteVector(kTooMuch));
      EXPECT_EQ(client.Finish().error_code(),
                compressed ? grpc::StatusCode::UNIMPLEMENTED
                           : grpc::StatusCode::RESOURCE_EXHAUSTED);
      if (greets && !compressed) {
        ASSERT_TRUE(
            node.Await([](const Seen& s) { return s.downs.size() == 1; }));
        EXPECT_TRUE(absl::IsUnavailable(
            node.recorder.With([](const Seen& s) { return s.reasons[0]; })));
        EXPECT_EQ(node.CountProblems(), 0u);
      } else {
        EXPECT_TRUE(absl::IsUnavailable(node.AwaitProblem()));
      }
    }
  }
}

TEST(LimitsTest, ADialledPeersCompressionBombIsRefusedWithoutUnpackingIt) {
  const HostileServer hostile;
  GrpcOptions options = OptionsOf(kA);
  options.initial_backoff = options.max_backoff = kLimit;
  ResetPeakMemory();
  const int64_t before = PeakMemory();
  Node node(options);
  node.Connect(kB, hostile.address());
  const absl::Status problem = node.AwaitProblem();
  // Either check may come first: of compression, or of the bytes as they came.
  EXPECT_TRUE(absl::IsUnimplemented(problem) || absl::IsDataLoss(problem))
      << problem;
  EXPECT_LT(PeakMemory() - before, kBombRefusal);
  EXPECT_TRUE(node.recorder.With([](const Seen& s) { return s.ups.empty(); }));
}

// The machine has lost its network: no end of the connection arrives.
TEST(LimitsTest, ANeighbourThatVanishesIsNoticedAtBothEnds) {
  GrpcOptions a_options = OptionsOf(kA), b_options = OptionsOf(kB);
  for (GrpcOptions* options : {&a_options, &b_options}) {
    options->keepalive_time = options->keepalive_timeout = kShort;
  }
  Node b(b_options);
  TcpRelay relay(PortOf(b.address()));
  Node a(a_options);
  b.Connect(kA, "");
  a.Connect(kB, relay.address());
  const auto up = [](const Seen& s) { return s.ups.size() == 1; };
  ASSERT_TRUE(a.Await(up) && b.Await(up));
  relay.StandStill();
  const auto down = [](const Seen& s) { return s.downs.size() == 1; };
  EXPECT_TRUE(a.Await(down));
  EXPECT_TRUE(b.Await(down));
}

TEST(LimitsTest, ASilentClientIsCutOff) {
  Node node(Hasty());
  RawSocket silent(PortOf(node.address()));
  EXPECT_TRUE(silent.EndsWithin(kLimit));
}

TEST(LimitsTest, AClientThatSendsByteByByteIsCutOff) {
  Node node(Hasty());
  RawSocket slow(PortOf(node.address()));
  // The client never gets to the end of the preface.
  EXPECT_LT(slow.Drip(kPreface, kShort / 5), kPreface.size());
}

TEST(LimitsTest, AConnectionWithoutAStreamIsCutOff) {
  Node node(Hasty());
  RawSocket idle(PortOf(node.address()));
  ASSERT_TRUE(idle.Send(kPreface));
  EXPECT_TRUE(idle.EndsWithin(kLimit));
}

TEST(LimitsTest, AHandshakeThatNeverEndsIsCutOff) {
  const TestRun run;
  GrpcOptions options = Hasty();
  options.certificates = run.Certificates(run.Peer(1));
  Node node(options);
  RawSocket silent(PortOf(node.address()));
  EXPECT_TRUE(silent.EndsWithin(kLimit));
  RawSocket half(PortOf(node.address()));
  ASSERT_TRUE(half.Send(kHalfHandshake));
  EXPECT_TRUE(half.EndsWithin(kLimit));
}

TEST(LimitsTest, UnauthenticatedConnectionsAreBoundedInNumber) {
  GrpcOptions options = OptionsOf(kA);
  options.max_unauthenticated = 8;  // four of one host
  Node node(options);
  node.Connect(kB, "");
  const int port = PortOf(node.address());
  std::vector<std::unique_ptr<RawSocket>> silent;
  for (int i = 0; i < 4; ++i) {
    silent.push_back(std::make_unique<RawSocket>(port));
  }
  // Connections are accepted in their order.
  RawSocket one_too_many(port);
  EXPECT_TRUE(one_too_many.EndsWithin(kLimit));
  EXPECT_EQ(node.UnauthenticatedRefused(), 1u);
  for (auto& socket : silent) EXPECT_FALSE(socket->EndsWithin(kShort / 10));
  // A client that leaves makes room.
  silent.pop_back();
  GrpcOptions dialling = OptionsOf(kB);
  dialling.dial_from_both_ends = true;
  Node peer(dialling);
  peer.Connect(kA, node.address());
  ASSERT_TRUE(node.Await([](const Seen& s) { return s.ups.size() == 1; }));
  // A peer is authenticated: its place is free again.
  silent.push_back(std::make_unique<RawSocket>(port));
  RawSocket again(port);
  EXPECT_TRUE(again.EndsWithin(kLimit));
  for (auto& socket : silent) EXPECT_FALSE(socket->EndsWithin(kShort / 10));
  EXPECT_TRUE(node.Send(kB, 1000));
}

TEST(LimitsTest, BytesOnTheirWayAreBoundedOverAllConnections) {
  GrpcOptions options = OptionsOf(kA);
  options.max_bytes_in_flight = 1 << 20;
  options.max_body_bytes = 2 << 20;
  Node node(options);
  constexpr PeerId kC{3};
  node.Connect(kB, "");
  node.Connect(kC, "");
  // Sends the first chunk of a frame of 700 KiB each; the rest comes later.
  const auto begin = [&](RawClient& client, PeerId self,
                         FrameChunker& chunker) {
    TransportHello hello = HelloOfB();
    hello.self = self;
    ASSERT_TRUE(client.Write(EncodeHello(hello)));
    ASSERT_TRUE(client.Read());
    client.Write(BytesOf(chunker.Next()));
  };
  const Frame frame{SharedBytes(),
                    SharedBytes::FromVector(ByteVector(700 << 10))};
  FrameChunker first(Channel::kEdge, frame, 512 << 10);
  FrameChunker second(Channel::kEdge, frame, 512 << 10);
  RawClient b(node.address());
  RawClient c(node.address());
  begin(b, kB, first);
  begin(c, kC, second);
  // The connection that is read second finds no room.
  ASSERT_TRUE(node.Await([](const Seen& s) { return s.downs.size() == 1; }));
  const bool b_stays =
      node.recorder.With([](const Seen& s) { return s.downs[0] == s.ups[1]; });
  RawClient& refused = b_stays ? c : b;
  const grpc::Status status = refused.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
      << status.error_message();
  // The other connection has lost nothing.
  RawClient& other = b_stays ? b : c;
  FrameChunker& rest = b_stays ? first : second;
  while (!rest.done()) other.Write(BytesOf(rest.Next()));
  EXPECT_TRUE(node.Await([](const Seen& s) { return s.frames.size() == 1; }));
  // Bytes that wait to go out count as well.
  EXPECT_FALSE(node.Send(b_stays ? kB : kC, (1 << 20) + 1));
}

// The peer answers keepalives, and holds bytes that all connections share.
TEST(LimitsTest, APeerThatDoesNotEndItsFrameIsCutOff) {
  GrpcOptions options = OptionsOf(kA);
  options.lanes = 2;
  options.frame_slack = kShort;
  options.check_again = kShort / 10;
  Node node(options);
  node.Connect(kB, "");
  const Frame frame{SharedBytes(),
                    SharedBytes::FromVector(ByteVector(4 << 10))};
  // A peer that has nothing to send stays.
  constexpr PeerId kC{3};
  node.Connect(kC, "");
  RawClient idle(node.address());
  TransportHello hello = HelloOfB();
  hello.self = kC;
  idle.Write(EncodeHello(hello));
  ASSERT_TRUE(idle.Read());
  for (const size_t parts : {0u, 2u}) {
    RawClient client(node.address());
    client.Write(EncodeHello(HelloOfB()));
    ASSERT_TRUE(client.Read());
    FrameChunker whole(Channel::kEdge, frame, 1 << 10);
    while (!whole.done()) client.Write(BytesOf(whole.Next()));
    // Half of a frame's bytes, or of its parts.
    FrameChunker half(Channel::kEdge, frame, 2 << 10, parts);
    client.Write(BytesOf(half.Next()));
    if (parts != 0) client.Write(BytesOf(half.Next()));
    const grpc::Status status = client.Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED)
        << status.error_message();
    EXPECT_TRUE(absl::IsDeadlineExceeded(node.AwaitProblem()));
  }
  EXPECT_TRUE(node.Await([](const Seen& s) {
    return s.frames.size() == 2 && s.downs.size() == 2;
  }));
  FrameChunker last(Channel::kEdge, frame, 4 << 10);
  EXPECT_TRUE(idle.Write(BytesOf(last.Next())));
  EXPECT_TRUE(node.Await([](const Seen& s) { return s.frames.size() == 3; }));
}

TEST(LimitsTest, StreamsOfOneConnectionAreBounded) {
  Node node(OptionsOf(kA));
  node.Connect(kB, "");
  // Streams past the first of a connection wait at the client's end.
  const auto channel =
      grpc::CreateChannel(node.address(), grpc::InsecureChannelCredentials());
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  constexpr int kCalls = 8;
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::GenericClientAsyncReaderWriter>> calls;
  for (int i = 0; i < kCalls; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    calls.push_back(stub.PrepareCall(contexts.back().get(),
                                     "/gossamer.Edge/Exchange", &queue));
    calls.back()->StartCall(nullptr);
  }
  int started = 0;
  void* tag = nullptr;
  bool ok = false;
  const auto next = [&](std::chrono::milliseconds limit) {
    return queue.AsyncNext(&tag, &ok,
                           std::chrono::system_clock::now() + limit) ==
           grpc::CompletionQueue::GOT_EVENT;
  };
  // The connection takes one; a wait shows that no more come.
  if (next(std::chrono::seconds(60))) ++started;
  while (next(std::chrono::milliseconds(300))) ++started;
  EXPECT_EQ(started, 1);
  for (auto& context : contexts) context->TryCancel();
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
}

std::string FrameOf(char type, char flags, uint32_t stream,
                    const std::string& payload) {
  std::string frame;
  for (const int shift : {16, 8, 0}) {
    frame += static_cast<char>(payload.size() >> shift);
  }
  frame += {type, flags};
  for (const int shift : {24, 16, 8, 0}) {
    frame += static_cast<char>(stream >> shift);
  }
  return frame + payload;
}

constexpr char kData = 0, kHeaders = 1, kReset = 3;
constexpr char kEndStream = 1, kEndHeaders = 4;

// The headers of a call that opens a stream of this transport.
std::string HeadersOf(uint32_t stream) {
  const auto text = [](const std::string& s) {
    return std::string(1, static_cast<char>(s.size())) + s;
  };
  std::string fields;
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{
           {":method", "POST"},
           {":scheme", "http"},
           {":path", "/gossamer.Edge/Exchange"},
           {":authority", "localhost"},
           {"te", "trailers"},
           {"content-type", "application/grpc"}}) {
    fields += std::string(1, '\0') + text(name) + text(value);
  }
  return FrameOf(kHeaders, kEndHeaders, stream, fields);
}

// Returns whether the other end ends this stream, by trailers or by a reset.
bool Ends(const RawSocket& socket, uint32_t stream) {
  for (;;) {
    unsigned char frame[9];
    if (::recv(socket.fd(), frame, sizeof frame, MSG_WAITALL) !=
        static_cast<ssize_t>(sizeof frame)) {
      return false;
    }
    std::string payload(frame[0] << 16 | frame[1] << 8 | frame[2], '\0');
    if (!payload.empty() &&
        ::recv(socket.fd(), payload.data(), payload.size(), MSG_WAITALL) <= 0) {
      return false;
    }
    const bool last = frame[3] == kReset ||
                      (frame[3] == kHeaders && (frame[4] & kEndStream) != 0);
    if (last && frame[8] == stream) return true;
  }
}

// A client that never acknowledges the settings gets no more streams either:
// newer releases of gRPC refuse the second one, and with 1.51 the transport
// does.
TEST(LimitsTest, StreamsOfAConnectionThatIgnoresSettingsAreBounded) {
  GrpcOptions options = OptionsOf(kA);
  options.hello_timeout = kLimit;
  Node node(options);
  RawSocket rude(PortOf(node.address()));
  ASSERT_TRUE(rude.Send(kPreface + HeadersOf(1) + HeadersOf(3)));
  EXPECT_TRUE(Ends(rude, 3));
}

// Resets of HTTP/2 end the connection, and the peer's host is kept out; before
// a hello and after one.
TEST(LimitsTest, AFloodEndsItsConnection) {
  for (const bool greets : {false, true}) {
    GrpcOptions options = OptionsOf(kA);
    // Newer releases of gRPC refuse most of these calls themselves.  Nobody
    // hears of them then, and after a hello they may be bytes of a message
    // under way.
    options.stream_window_bytes = 64 << 10;
    options.max_queued_bytes = 1 << 20;
    Node node(options);
    node.Connect(kB, "");
    RawSocket rude(PortOf(node.address()));
    std::string flood = kPreface;
    if (greets) {
      const ByteVector hello = EncodeHello(HelloOfB());
      const std::string text(reinterpret_cast<const char*>(hello.data()),
                             hello.size());
      // gRPC puts the length of a message before it.
      flood +=
          HeadersOf(1) +
          FrameOf(kData, 0, 1,
                  std::string(4, '\0') + static_cast<char>(text.size()) + text);
      ASSERT_TRUE(rude.Send(std::exchange(flood, "")));
      ASSERT_TRUE(node.Await([](const Seen& s) { return s.ups.size() == 1; }));
    }
    constexpr uint32_t kResets = 20'000;
    for (uint32_t stream = 3; stream < 2 * kResets; stream += 2) {
      flood += HeadersOf(stream) +
               FrameOf(kReset, 0, stream, std::string(3, '\0') + '\x8');
    }
    ResetPeakMemory();
    const int64_t before = PeakMemory();
    rude.Send(flood);  // some of it, before the end
    EXPECT_TRUE(rude.EndsWithin(kLimit));
    EXPECT_LT(PeakMemory() - before, kPeakFactor * (128 << 10));
    EXPECT_TRUE(node.AwaitProblem(absl::StatusCode::kResourceExhausted));
    RawSocket again(PortOf(node.address()));
    EXPECT_TRUE(again.EndsWithin(kLimit));
  }
}

}  // namespace limits_test
}  // namespace gossamer
