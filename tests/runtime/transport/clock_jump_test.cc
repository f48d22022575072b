// Connections stay open when the machine's date is set.

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "runtime/transport/grpc/chunking.h"
#include "runtime/transport/grpc/grpc_transport.h"
#include "tests/runtime/transport/grpc_node.h"

static std::atomic<int64_t> date_is_off_by{0};  // seconds

// Replaces the C library's function in all of this program.
extern "C" int clock_gettime(clockid_t clock, timespec* time) {
  const auto result =
      static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  if (clock == CLOCK_REALTIME) time->tv_sec += date_is_off_by.load();
  return result;
}

namespace gossamer {
namespace clock_jump_test {

// Shifts the date as long as it lives.
class DateOffBy {
 public:
  explicit DateOffBy(absl::Duration d) {
    const absl::Time before = absl::Now();
    date_is_off_by = absl::ToInt64Seconds(d);
    // Without the shift the tests would show nothing.
    EXPECT_GT(absl::AbsDuration(absl::Now() - before),
              absl::AbsDuration(d) / 2);
  }
  ~DateOffBy() { date_is_off_by = 0; }
};

class ClockJumpTest : public testing::TestWithParam<int> {
 protected:
  static absl::Duration Jump() { return absl::Hours(GetParam()); }
};

ByteVector BytesOf(const Chunk& chunk) {
  ByteVector bytes;
  for (const auto part : {chunk.header(), chunk.head, chunk.body}) {
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  return bytes;
}

// Lets the node read what was written, and check its connections.
void LetItPoll(Node& node) {
  auto polled = std::make_shared<absl::Notification>();
  node.loop.PostAndWait(
      [&node, polled] {
        node.loop.RunAt(node.loop.Now() + absl::Milliseconds(50),
                        [polled] { polled->Notify(); });
      },
      kLimit);
  ASSERT_TRUE(polled->WaitForNotificationWithTimeout(kLimit));
}

TEST_P(ClockJumpTest, AFrameUnderWayArrivesAndItsMeasuredRateIsRight) {
  GrpcOptions options = OptionsOf(kA);
  options.lanes = 2;
  options.check_again = absl::Milliseconds(5);
  Node node(options);
  node.Connect(kB, "");
  RawClient client(node.address());
  ASSERT_TRUE(client.Write(EncodeHello(HelloOfB())));
  ASSERT_TRUE(client.Read());
  const Frame frame{SharedBytes(),
                    SharedBytes::FromVector(ByteVector(4 << 10))};
  {
    FrameChunker whole(Channel::kEdge, frame, 1 << 10);
    ASSERT_TRUE(client.Write(BytesOf(whole.Next())));
    LetItPoll(node);
    const DateOffBy jump(Jump());
    LetItPoll(node);
    while (!whole.done()) ASSERT_TRUE(client.Write(BytesOf(whole.Next())));
    ASSERT_TRUE(node.Await([](const Seen& s) { return s.frames.size() == 1; }));
  }
  const Transit transit = node.recorder.With(
      [](const Seen& s) { return s.frames[0].frame.transit; });
  EXPECT_EQ(transit.bytes, 3u << 10);
  EXPECT_GT(transit.took, absl::ZeroDuration());
  EXPECT_LT(transit.took, absl::Minutes(30));
  // Half of a frame of two parts; the other part would come on another lane.
  FrameChunker half(Channel::kEdge, frame, 1 << 10, 2);
  while (!half.done()) ASSERT_TRUE(client.Write(BytesOf(half.Next())));
  LetItPoll(node);
  const DateOffBy jump(Jump());
  LetItPoll(node);
  EXPECT_EQ(node.CountProblems(), 0u);
  EXPECT_TRUE(
      node.recorder.With([](const Seen& s) { return s.downs.empty(); }));
}

INSTANTIATE_TEST_SUITE_P(Hours, ClockJumpTest, testing::Values(1, -1));

}  // namespace clock_jump_test
}  // namespace gossamer
