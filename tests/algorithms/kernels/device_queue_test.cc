// Queues of the host and of a device that refuses the host.

#include "algorithms/kernels/device_queue.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/base/rng.h"
#include "algorithms/kernels/cuda/kernels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_device.h"

namespace gossamer {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

std::vector<float> Gaussian(size_t n) {
  std::vector<float> x(n);
  RngKey(7).Fold("queue").FillGaussian(x);
  return x;
}

TEST(HostQueueTest, WorkIsDoneWhenTheCallReturns) {
  const DeviceQueue& queue = DeviceQueue::Host();
  DeviceVector<float> x(queue, 1000);
  EXPECT_THAT(HostSpan(x.span()), Each(0.0f));
  const std::vector<float> y = Gaussian(1000);
  queue.Run(&DeviceKernels::axpy, 2.0f, y, x);
  std::vector<float> expected(1000);
  HostKernels().axpy(2, y, expected);
  EXPECT_EQ(x.ToHost(), expected);
  EXPECT_TRUE(queue.RecordFence().done());
}

TEST(HostQueueTest, ATableIsAQueueOfItsKernels) {
  for (const Kernels* table : AvailableKernels()) {
    const DeviceQueue queue = *table;
    EXPECT_EQ(&queue.host_kernels(), table);
    std::vector<double> sums(1);
    queue.Run(&DeviceKernels::squared_norm, std::vector<float>{3, 4}, sums);
    EXPECT_EQ(sums[0], 25) << table->name;
  }
}

// With the host's kernels, and with those of CUDA as fibers.
class FakeQueueTest : public testing::TestWithParam<bool> {
 protected:
  static FakeDevice::Options Options() {
    FakeDevice::Options options;
    if (GetParam()) {
      options.kernels = &CudaKernels();
      options.stream = nullptr;
    }
    return options;
  }
  FakeDevice device_{Options()};
};
INSTANTIATE_TEST_SUITE_P(Kernels, FakeQueueTest, testing::Bool());

TEST_P(FakeQueueTest, WorkIsDoneLateAndInOrder) {
  const DeviceQueue queue = device_.queue();
  const std::vector<float> y = Gaussian(3000);
  auto there = DeviceVector<float>::Of(queue, y);
  DeviceVector<float> x(queue, y.size());
  queue.Run(&DeviceKernels::axpy, 2.0f, there, x);
  queue.Run(&DeviceKernels::scale, 3.0f, x);
  // A copy of the host's values is made before Upload returns.
  there.CopyFrom(std::vector<float>(y.size(), 1.0f));
  DeviceFence fence = queue.RecordFence();
  EXPECT_GT(device_.pending(), 0);
  EXPECT_FALSE(fence.done());
  EXPECT_FALSE(fence.done());
  EXPECT_TRUE(fence.done());
  EXPECT_EQ(device_.counts().waits, 0);

  std::vector<float> expected(y.size());
  HostKernels().axpy(2, y, expected);
  HostKernels().scale(3, expected);
  EXPECT_EQ(x.ToHost(), expected);
  EXPECT_THAT(there.ToHost(), Each(1.0f));
}

TEST_P(FakeQueueTest, AResultComesToTheHostWithoutABlockingCall) {
  const DeviceQueue queue = device_.queue();
  const std::vector<float> y = Gaussian(9000);
  const auto x = DeviceVector<float>::Of(queue, y);
  DeviceVector<double> sums(queue, NormSumsOf(y.size()));
  queue.Run(&DeviceKernels::squared_norm, x, sums);
  Readback<double> norm(queue, sums.span().first(1));
  int asked = 0;
  while (!norm.ready()) ++asked;
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(norm[0], HostKernels().squared_norm(y));
  EXPECT_EQ(device_.counts().waits, 0);
  EXPECT_THAT(device_.counts().to_host, testing::ElementsAre(8));
}

// A pinned buffer that is used again while a copy from it is under way would
// spoil that copy.
TEST_P(FakeQueueTest, PinnedMemoryIsUsedAgainOnceItsCopyIsDone) {
  const DeviceQueue queue = device_.queue();
  std::vector<DeviceVector<float>> all;
  for (int i = 0; i < 20; ++i) {
    const std::vector<float> values(500, static_cast<float>(i));
    all.push_back(DeviceVector<float>::Of(queue, values));
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(all[static_cast<size_t>(i)].ToHost(),
                Each(static_cast<float>(i)));
  }
}

TEST_P(FakeQueueTest, CapturedWorkIsDoneAgainWithTheValuesOfThen) {
  const DeviceQueue queue = device_.queue();
  const std::vector<float> y = Gaussian(1000);
  DeviceVector<float> from(queue, y.size()), x(queue, y.size());
  const auto work = queue.Capture([&](DeviceStream* stream) {
    FakeDevice::kernels().axpy(stream, 1, from, x);
    return absl::OkStatus();
  });
  ASSERT_TRUE(work.ok()) << work.status();
  EXPECT_EQ(x.ToHost(), std::vector<float>(y.size()));
  from.CopyFrom(y);
  queue.Replay(*work);
  queue.Run(&DeviceKernels::scale, 2.0f, from);
  queue.Replay(*work);
  std::vector<float> expected(y.size());
  for (size_t i = 0; i < y.size(); ++i) expected[i] = y[i] + 2 * y[i];
  EXPECT_EQ(x.ToHost(), expected);
  EXPECT_EQ(device_.counts().captures, 1u);
  EXPECT_EQ(device_.counts().replays, 2u);
}

TEST_P(FakeQueueTest, WorkOfTheQueueIsNotCaptured) {
  const DeviceQueue queue = device_.queue();
  const std::vector<float> ones(10, 1);
  DeviceVector<float> x(queue, ones.size());
  const auto y = DeviceVector<float>::Of(queue, ones);
  const auto work = queue.Capture([&](DeviceStream*) {
    queue.Run(&DeviceKernels::axpy, 1.0f, y, x);
    return absl::OkStatus();
  });
  ASSERT_TRUE(work.ok());
  EXPECT_EQ(x.ToHost(), ones);
  queue.Replay(*work);
  EXPECT_EQ(x.ToHost(), ones);
}

TEST_P(FakeQueueTest, ACaptureThatFailsLeavesTheQueueAsItWas) {
  const DeviceQueue queue = device_.queue();
  device_.FailCapture("operation not permitted when stream is capturing");
  EXPECT_THAT(
      std::string(queue.Capture([](DeviceStream*) { return absl::OkStatus(); })
                      .status()
                      .message()),
      HasSubstr("not permitted"));
  const auto refused = queue.Capture(
      [](DeviceStream*) { return absl::InternalError("no kernel for this"); });
  EXPECT_EQ(refused.status().message(), "no kernel for this");
  EXPECT_TRUE(queue.Wait().ok());
  EXPECT_EQ(DeviceQueue::Host()
                .Capture([](DeviceStream*) { return absl::OkStatus(); })
                .status()
                .code(),
            absl::StatusCode::kUnavailable);
}

TEST_P(FakeQueueTest, HeldBytesGoToTheDeviceWithoutAnotherCopy) {
  const DeviceQueue queue = device_.queue();
  DeviceVector<std::byte> x(queue, 100);
  const auto held = queue.HostBytes(100);
  std::fill_n(held.get(), 100, std::byte{7});
  device_.ResetCounts();
  queue.UploadHeld(held.get(), x);
  EXPECT_THAT(x.ToHost(), Each(std::byte{7}));
  EXPECT_EQ(device_.counts().to_device, std::vector<size_t>{100});
}

TEST_P(FakeQueueTest, AQueueWithoutMemorySaysSoAndDoesNothingMore) {
  const DeviceQueue queue = device_.queue();
  DeviceVector<float> small(queue, 10);
  DeviceVector<float> large(queue, size_t{1} << 29, "the moving average");
  EXPECT_EQ(queue.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(queue.status().message(),
              AllOf(HasSubstr("cuda:0: 2147.5 MB for the moving average"),
                    HasSubstr("free of 1073.7 MB: out of memory")));
  EXPECT_EQ(large.size(), size_t{1} << 29);
  queue.Run(&DeviceKernels::axpy, 1.0f, small, large.span().first(10));
  EXPECT_THAT(small.ToHost(), Each(0.0f));
}

TEST_P(FakeQueueTest, AnotherOwnerGivesBackWhatItDoesNotUse) {
  const DeviceQueue queue = device_.queue();
  constexpr size_t kMost = size_t{200} << 20;
  // The queue of this one ends with it.
  static DeviceVector<float> other;
  other = DeviceVector<float>::Unset(device_.queue(), kMost);
  queue.OnShortage([] { other = DeviceVector<float>(); });
  const auto large = DeviceVector<float>::Unset(queue, kMost);
  EXPECT_TRUE(queue.status().ok()) << queue.status();
  EXPECT_TRUE(other.empty());
}

TEST_P(FakeQueueTest, ADeviceThatVanishesIsReportedOnce) {
  {
    const DeviceQueue queue = device_.queue();
    DeviceVector<float> x(queue, 10);
    DeviceFence fence = queue.RecordFence();
    device_.Vanish("Xid 79");
    EXPECT_TRUE(fence.done());
    EXPECT_THAT(queue.Wait().message(), HasSubstr("Xid 79"));
    x.Clear();
    EXPECT_THAT(x.ToHost(), Each(0.0f));
  }
}

using FakeQueueDeathTest = FakeQueueTest;
INSTANTIATE_TEST_SUITE_P(Kernels, FakeQueueDeathTest, testing::Values(false));

TEST_P(FakeQueueDeathTest, AStrayAccessOfTheHostEndsTheProgram) {
  const DeviceQueue queue = device_.queue();
  DeviceVector<float> x(queue, 10);
  ASSERT_TRUE(queue.Wait().ok());
  EXPECT_DEATH(*x.span().data = 1, "");
  EXPECT_DEATH(HostSpan(x.span()), "lie in the memory of cuda:0");
}

TEST_P(FakeQueueDeathTest, AForgottenSynchronisationEndsTheProgram) {
  const DeviceQueue queue = device_.queue();
  DeviceVector<std::byte> x(queue, 10);
  const auto bytes = queue.Download(x);
  EXPECT_DEATH(std::fprintf(stderr, "%d", static_cast<int>(bytes[0])), "");
  ASSERT_TRUE(queue.Wait().ok());
  EXPECT_EQ(bytes[0], std::byte{0});
}

TEST_P(FakeQueueDeathTest, MemoryOfAnotherDeviceEndsTheProgram) {
  const DeviceQueue queue = device_.queue();
  DeviceVector<float> x(queue, 10);
  const std::vector<float> y(10);
  EXPECT_DEATH(queue.Run(&DeviceKernels::axpy, 1.0f, y, x),
               "memory of the host is given to a queue of cuda:0");
  EXPECT_DEATH(DeviceQueue::Host().Run(&DeviceKernels::axpy, 1.0f, y, x),
               "memory of cuda:0 is given to a queue of the host");
}

}  // namespace
}  // namespace gossamer
