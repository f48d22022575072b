// What comes of an end that answers a lane, or reads it, as no peer does.

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/transport/grpc/byte_budget.h"
#include "runtime/transport/grpc/grpc_stream.h"
#include "runtime/transport/grpc/grpc_transport.h"
#include "tests/transport/grpc_node.h"
#include "tests/transport/hostile_server.h"

namespace gossamer {
namespace {

using ::testing::HasSubstr;

// Taken for a connection of its own it would be in two, and in one of them
// after it has ended.
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
  // The connection does without.
  EXPECT_TRUE(node.Send(kB, 1 << 20));
  EXPECT_TRUE(node.recorder.With(
      [](const Seen& s) { return s.ups.size() == 1 && s.downs.empty(); }));
}

TEST(GrpcLanesTest, NobodyIsAtAStreamThatIsNotOpen) {
  for (const bool dialled : {false, true}) {
    const GrpcStream stream(nullptr,
                            {.max_body_bytes = 1,
                             .chunk_bytes = 1,
                             .max_queued_bytes = 1,
                             .all_bytes = std::make_shared<ByteBudget>(1)},
                            dialled);
    EXPECT_EQ(stream.caller(), nullptr);
  }
}

}  // namespace
}  // namespace gossamer
