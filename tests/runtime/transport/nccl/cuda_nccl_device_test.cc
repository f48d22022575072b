// A GPU's stream and memory for NCCL, on a device that refuses the host: no
// call waits, and memory is used again.

#include "runtime/transport/nccl/cuda_nccl_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/testing/fake_device.h"

namespace gossamer {
namespace cuda_nccl_device_test {

using testing::AllOf;
using testing::HasSubstr;

constexpr size_t kSize = 100'000;

std::unique_ptr<CudaNcclDevice> Open() {
  return CudaNcclDevice::Open(FakeDevice::calls(), 0).value();
}

std::vector<std::byte> Body(std::byte first) {
  std::vector<std::byte> body(kSize);
  for (size_t i = 0; i < kSize; ++i) {
    body[i] = first ^ static_cast<std::byte>(i % 251);
  }
  return body;
}

// Waits without blocking, as a communicator's owner does.
bool BecomesIdle(CudaNcclDevice& device) {
  for (int i = 0; i < 100; ++i) {
    const auto idle = device.Idle();
    EXPECT_TRUE(idle.ok()) << idle.status();
    if (!idle.ok() || *idle) return idle.ok();
  }
  return false;
}

TEST(CudaNcclDevice, ABodyGoesThroughWithoutAWait) {
  FakeDevice fake;
  const auto device = Open();
  for (const std::byte round : {std::byte{1}, std::byte{2}, std::byte{3}}) {
    const auto send = device->Allocate(kSize);
    const auto receive = device->Allocate(kSize);
    const auto landing = device->AllocateHost(kSize);
    ASSERT_TRUE(send.ok() && receive.ok() && landing.ok());
    std::vector<std::byte> body = Body(round);
    ASSERT_TRUE(device->CopyIn(send->get(), body).ok());
    // The operation of NCCL, a pair of a peer with itself.
    fake.Launch([&] { std::memcpy(receive->get(), send->get(), kSize); });
    ASSERT_TRUE(device->CopyOut({landing->get(), kSize}, receive->get()).ok());
    const auto idle = device->Idle();
    ASSERT_TRUE(idle.ok());
    EXPECT_FALSE(*idle);
    ASSERT_TRUE(BecomesIdle(*device));
    EXPECT_EQ(std::memcmp(landing->get(), body.data(), kSize), 0);
  }
  EXPECT_EQ(fake.counts().waits, 0u);
}

TEST(CudaNcclDevice, FreedMemoryIsUsedAgain) {
  FakeDevice fake;
  const auto device = Open();
  const void* const first = device->Allocate(kSize).value().get();
  const void* const host = device->AllocateHost(kSize).value().get();
  // A payload of another round is a little larger or smaller.
  EXPECT_EQ(device->Allocate(kSize + 100).value().get(), first);
  EXPECT_EQ(device->AllocateHost(kSize - 100).value().get(), host);
  const auto kept = device->Allocate(kSize).value();
  EXPECT_NE(device->Allocate(kSize).value(), kept);
}

TEST(CudaNcclDevice, AStagingBufferIsKeptUntilTheDeviceHasReadIt) {
  FakeDevice fake;
  const auto device = Open();
  const auto one = device->Allocate(kSize).value();
  const auto two = device->Allocate(kSize).value();
  // Neither copy has been made when the second is enqueued.
  ASSERT_TRUE(device->CopyIn(one.get(), Body(std::byte{1})).ok());
  ASSERT_TRUE(device->CopyIn(two.get(), Body(std::byte{2})).ok());
  const auto landing = device->AllocateHost(kSize).value();
  ASSERT_TRUE(device->CopyOut({landing.get(), kSize}, one.get()).ok());
  ASSERT_TRUE(BecomesIdle(*device));
  EXPECT_EQ(std::memcmp(landing.get(), Body(std::byte{1}).data(), kSize), 0);
}

TEST(CudaNcclDevice, MemoryOutlivesItsDevice) {
  FakeDevice fake;
  auto device = Open();
  const auto landing = device->AllocateHost(kSize).value();
  auto memory = device->Allocate(kSize).value();
  device = nullptr;
  landing[kSize - 1] = std::byte{1};
  memory = nullptr;
}

TEST(CudaNcclDevice, AFullDeviceSaysHowMuchWasAskedFor) {
  FakeDevice fake({.memory = kSize});
  const auto device = Open();
  const auto refused = device->Allocate(10 * kSize);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.status().message()),
              AllOf(HasSubstr("cuda:0: 1.0 MB of device memory"),
                    HasSubstr("out of memory")));
}

TEST(CudaNcclDevice, ADeviceThatVanishesIsAnError) {
  FakeDevice fake;
  const auto device = Open();
  const auto memory = device->Allocate(kSize).value();
  fake.Vanish("Xid 79: GPU has fallen off the bus");
  EXPECT_THAT(std::string(device->CopyIn(memory.get(), Body({})).message()),
              HasSubstr("cuda:0: use: Xid 79"));
  EXPECT_FALSE(device->Idle().ok());
  EXPECT_FALSE(device->Use().ok());
}

}  // namespace cuda_nccl_device_test
}  // namespace gossamer
