// Lanes that the other end answers, or reads, as no peer does.

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/transport/grpc/byte_budget.h"
#include "runtime/transport/grpc/grpc_stream.h"
#include "runtime/transport/grpc/grpc_transport.h"
#include "tests/runtime/transport/grpc_node.h"
#include "tests/runtime/transport/hostile_server.h"

namespace gossamer {
namespace grpc_lanes_test {

using ::testing::HasSubstr;

// A lane taken for a connection of its own would be in two connections, and in
// one of them after that has ended.
TEST(GrpcLanesTest, ALaneThatIsAnsweredAsAnotherIsRefused) {
  const std::vector<std::byte> hello =
      EncodeHello({.self = kB, .target = kA, .attempt = 1, .run_id = "run"});
  const HostileServer hostile(
      std::string(reinterpret_cast<const char*>(hello.data()), hello.size()),
      true);
  GrpcOptions options = OptionsOf(kA);
  options.lanes = 2;
  Node node(options);
  node.Connect(kB, hostile.address());
  const absl::Status problem = node.AwaitProblem();
  EXPECT_TRUE(absl::IsFailedPrecondition(problem)) << problem;
  EXPECT_THAT(problem.message(), HasSubstr("lane 1 as if it were lane 0"));
  // The connection works without that lane.
  EXPECT_TRUE(node.Send(kB, 1 << 20));
  EXPECT_TRUE(node.recorder.With(
      [](const Seen& s) { return s.ups.size() == 1 && s.downs.empty(); }));
}

TEST(GrpcLanesTest, AStreamThatIsNotOpenHasNoCaller) {
  for (const bool dialled : {false, true}) {
    const GrpcStream stream(nullptr,
                            {.max_body_bytes = 1,
                             .chunk_bytes = 1,
                             .all_bytes = std::make_shared<ByteBudget>(1)},
                            dialled);
    EXPECT_EQ(stream.caller(), nullptr);
  }
}

// Sends a hello, takes the answer, and then reads nothing.
class DeafClient {
 public:
  DeafClient(const Node& node, const TransportHello& hello)
      : client_(node.address(), "/gossamer.Edge/Exchange",
                grpc::InsecureChannelCredentials(), SmallWindow()) {
    EXPECT_TRUE(client_.Write(EncodeHello(hello)) && client_.Read());
  }

 private:
  // A window that grows would take the bytes that should wait at the other end.
  static grpc::ChannelArguments SmallWindow() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    return arguments;
  }
  RawClient client_;
};

// Every lane has a queue, but the waiting bytes of one peer are summed.
TEST(GrpcLanesTest, BytesWaitingForAConnectionAreBoundedOverItsLanes) {
  GrpcOptions options = OptionsOf(kA);
  options.lanes = 2;
  options.max_queued_bytes = 6 << 20;
  Node node(options);
  node.Connect(kB, "");
  TransportHello hello = HelloOfB();
  const DeafClient first(node, hello);
  hello.lane = 1;
  const DeafClient lane(node, hello);
  int sent = 0;
  while (sent < 20 && node.Send(kB, 1 << 20)) ++sent;
  // Bytes that are being written do not wait: at most one chunk of each lane.
  EXPECT_GE(sent, 5);
  EXPECT_LE(sent, 7);
  EXPECT_TRUE(node.Await([](const Seen& s) { return s.downs.size() == 1; }));
}

// The newest connection, which carries all frames, goes on.
TEST(GrpcLanesTest, APeerThatExceedsTheBudgetLosesAnOlderConnection) {
  constexpr size_t kLarge = 3 << 20;
  GrpcOptions options = OptionsOf(kA);
  options.max_body_bytes = 4 << 20;
  options.max_bytes_in_flight = 8 << 20;
  Node node(options);
  node.Connect(kB, "");
  std::vector<std::unique_ptr<DeafClient>> connections;
  for (size_t i = 1; i <= 3; ++i) {
    connections.push_back(std::make_unique<DeafClient>(node, HelloOfB()));
    ASSERT_TRUE(node.Await([i](const Seen& s) { return s.ups.size() == i; }));
    EXPECT_TRUE(node.Send(kB, kLarge)) << i;
  }
  ASSERT_TRUE(node.Await([](const Seen& s) { return s.downs.size() == 1; }));
  EXPECT_TRUE(node.recorder.With(
      [](const Seen& s) { return s.downs[0] != s.ups.back(); }));
}

// A peer that does not read, with several connections, and an honest one that
// sends and receives large frames.
TEST(GrpcLanesTest, ThePeerThatHoldsTheMostBytesLosesAConnection) {
  constexpr size_t kLarge = 3 << 20;
  constexpr PeerId kC{3};
  for (const bool comes_in : {false, true}) {
    SCOPED_TRACE(comes_in);
    GrpcOptions options = OptionsOf(kA);
    options.max_body_bytes = options.max_queued_bytes = 4 << 20;
    options.max_bytes_in_flight = 8 << 20;
    Node node(options);
    GrpcOptions honest_options = OptionsOf(kC);
    honest_options.max_body_bytes = 4 << 20;
    Node honest(honest_options);
    honest.Connect(kA, "");
    node.Connect(kC, honest.address());
    const auto up = [](size_t connections) {
      return [=](const Seen& s) { return s.ups.size() == connections; };
    };
    ASSERT_TRUE(node.Await(up(1)) && honest.Await(up(1)));
    node.Connect(kB, "");
    std::vector<std::unique_ptr<DeafClient>> hostile;
    for (const size_t connections : {2u, 3u}) {
      hostile.push_back(std::make_unique<DeafClient>(node, HelloOfB()));
      ASSERT_TRUE(node.Await(up(connections)));
      ASSERT_TRUE(node.Send(kB, kLarge));
    }
    ASSERT_TRUE(comes_in ? honest.Send(kA, kLarge) : node.Send(kC, kLarge));
    Node& receiver = comes_in ? node : honest;
    ASSERT_TRUE(
        receiver.Await([](const Seen& s) { return s.frames.size() == 1; }));
    ASSERT_TRUE(node.Await([](const Seen& s) { return s.downs.size() == 1; }));
    EXPECT_TRUE(node.recorder.With([](const Seen& s) {
      return s.downs[0] != s.ups[0] && absl::IsResourceExhausted(s.reasons[0]);
    }));
    EXPECT_TRUE(
        honest.recorder.With([](const Seen& s) { return s.downs.empty(); }));
  }
}

}  // namespace grpc_lanes_test
}  // namespace gossamer
