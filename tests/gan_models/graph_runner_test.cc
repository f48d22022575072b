// Work that warms up, is captured once and then replayed.

#include "gan_models/graph_runner.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_device.h"

namespace gossamer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Adds ones to a vector of the device, a piece of work for each kind.
class GraphRunnerTest : public testing::Test {
 protected:
  GraphRunner Runner(bool graphs = true) {
    return GraphRunner(
        queue_, {.graphs = graphs,
                 .warm_ups = 2,
                 .on_failure = [this](auto why) { failures_.push_back(why); }});
  }
  absl::Status Run(GraphRunner& runner, uint64_t kind = 0) {
    const auto add = [this](DeviceStream* stream) {
      FakeDevice::kernels().axpy(stream, 1, ones_, x_);
      return absl::OkStatus();
    };
    return runner.Run(
        kind,
        [&] {
          ++enqueued_;
          return add(queue_.stream());
        },
        [&] {
          ++captured_;
          return queue_.Capture(add);
        });
  }
  float sum() { return x_.ToHost()[0]; }

  FakeDevice device_;
  const DeviceQueue queue_ = device_.queue();
  const DeviceVector<float> ones_ =
      DeviceVector<float>::Of(queue_, std::vector<float>(10, 1));
  DeviceVector<float> x_ = DeviceVector<float>(queue_, 10);
  int enqueued_ = 0, captured_ = 0;
  std::vector<std::string> failures_;
};

TEST_F(GraphRunnerTest, WarmsUpThenCapturesOnceThenReplays) {
  GraphRunner runner = Runner();
  for (int i = 1; i <= 7; ++i) {
    ASSERT_TRUE(Run(runner).ok());
    EXPECT_EQ(sum(), i);
  }
  EXPECT_EQ(enqueued_, 2);
  EXPECT_EQ(captured_, 1);
  EXPECT_EQ(device_.counts().replays, 5u);
  EXPECT_TRUE(failures_.empty());
}

TEST_F(GraphRunnerTest, EachKindHasItsOwnGraph) {
  GraphRunner runner = Runner();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Run(runner, 0).ok());
    ASSERT_TRUE(Run(runner, 1).ok());
  }
  EXPECT_EQ(sum(), 10);
  EXPECT_EQ(enqueued_, 4);
  EXPECT_EQ(captured_, 2);
}

TEST_F(GraphRunnerTest, ARunThatFailsWarmsNothingUp) {
  GraphRunner runner = Runner();
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(runner
                     .Run(
                         0, [] { return absl::ResourceExhaustedError("full"); },
                         []() -> absl::StatusOr<CapturedWork> {
                           return absl::InternalError("captured too early");
                         })
                     .ok());
  }
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Run(runner).ok());
  EXPECT_EQ(enqueued_, 2);
  EXPECT_EQ(captured_, 1);
}

TEST_F(GraphRunnerTest, ACaptureThatFailsIsReportedOnceAndRunsGoOn) {
  GraphRunner runner = Runner();
  device_.FailCapture("operation not permitted when stream is capturing");
  for (int i = 1; i <= 6; ++i) {
    ASSERT_TRUE(Run(runner).ok());
    EXPECT_EQ(sum(), i);
  }
  EXPECT_EQ(captured_, 1);
  EXPECT_EQ(enqueued_, 6);
  EXPECT_THAT(failures_, ElementsAre(HasSubstr("not permitted")));
}

TEST_F(GraphRunnerTest, WithoutGraphsAndOnTheHostEveryRunEnqueues) {
  GraphRunner off = Runner(/*graphs=*/false);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Run(off).ok());
  EXPECT_EQ(captured_, 0);
  GraphRunner host(DeviceQueue::Host(), {.warm_ups = 0});
  int runs = 0;
  ASSERT_TRUE(host.Run(
                      0,
                      [&] {
                        ++runs;
                        return absl::OkStatus();
                      },
                      []() -> absl::StatusOr<CapturedWork> {
                        ADD_FAILURE();
                        return absl::InternalError("captured");
                      })
                  .ok());
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace gossamer
