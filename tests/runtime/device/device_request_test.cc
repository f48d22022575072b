// Devices as they are asked for and as machines have them: no driver, an old
// one, no GPU, several.

#include "runtime/device/device_request.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/device/cuda_library.h"

namespace gossamer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The answers of a machine's driver.
struct Machine {
  int driver = 13000, build = 13000, devices = 2;
  const char* versions_error = nullptr;
  const char* count_error = nullptr;
};
Machine machine;

const CudaLibrary& Library() {
  static constexpr DeviceCalls calls = {
      .versions =
          [](int* driver, int* build) {
            *driver = machine.driver;
            *build = machine.build;
            return machine.versions_error;
          },
      .count =
          [](int* devices) {
            *devices = machine.devices;
            return machine.count_error;
          },
  };
  static constexpr CudaLibrary library = {.version = "", .calls = &calls};
  return library;
}

absl::StatusOr<ChosenDevice> Choose(std::string_view text,
                                    const Machine& has = {},
                                    uint64_t ordinal = 0) {
  machine = has;
  return ChooseDevice(
      ParseDeviceRequest(text).value().index, ordinal,
      []() -> absl::StatusOr<const CudaLibrary*> { return &Library(); });
}

std::string Reason(const Machine& has, std::string_view text = "cuda") {
  const auto chosen = Choose(text, has);
  EXPECT_EQ(chosen.status().code(), absl::StatusCode::kFailedPrecondition);
  return std::string(chosen.status().message());
}

TEST(DeviceRequestTest, TextsAreReadOrRefused) {
  using Request = DeviceRequest;
  EXPECT_EQ(ParseDeviceRequest("auto").value(), Request{Request::kAuto});
  EXPECT_EQ(ParseDeviceRequest("cpu").value(), Request{Request::kCpu});
  EXPECT_EQ(ParseDeviceRequest("cuda").value(), Request{Request::kCuda});
  EXPECT_EQ(ParseDeviceRequest("cuda:7").value(), (Request{Request::kCuda, 7}));
  for (const char* bad : {"", "gpu", "CUDA", "cuda:", "cuda:-1", "cuda:x",
                          "cuda:1x", "cuda:01", "cuda: 1", "cuda:+1",
                          "cuda:1024", "cuda:99999999999", "cuda0", "cpu:0"}) {
    const auto request = ParseDeviceRequest(bad);
    EXPECT_EQ(request.status().code(), absl::StatusCode::kInvalidArgument)
        << bad;
    EXPECT_THAT(std::string(request.status().message()),
                HasSubstr("write auto, cpu, cuda, or cuda:N"));
  }
}

TEST(DeviceRequestTest, AGpuIsTakenWhereThereIsOne) {
  for (const char* text : {"auto", "cuda", "cuda:0"}) {
    const auto chosen = Choose(text);
    ASSERT_TRUE(chosen.ok()) << chosen.status();
    EXPECT_EQ(chosen->device, (Device{Device::kCuda, 0}));
    EXPECT_EQ(chosen->library, &Library());
  }
  EXPECT_EQ(Choose("cuda:1")->device, (Device{Device::kCuda, 1}));
  EXPECT_TRUE(Choose("cuda", {.driver = 13010}).ok());
  EXPECT_TRUE(Choose("cuda", {.driver = 13000, .build = 13010}).ok())
      << "of one major version";
}

TEST(DeviceRequestTest, PeersAreSpreadOverGpusUnlessTheyAskForOne) {
  const Machine three = {.devices = 3};
  for (const uint64_t ordinal : {0, 1, 2, 3, 8}) {
    const Device own = {Device::kCuda, static_cast<int>(ordinal % 3)};
    EXPECT_EQ(Choose("auto", three, ordinal)->device, own) << ordinal;
    EXPECT_EQ(Choose("cuda", three, ordinal)->device, own) << ordinal;
    EXPECT_EQ(Choose("cuda:2", three, ordinal)->device,
              (Device{Device::kCuda, 2}));
  }
}

TEST(DeviceRequestTest, AMissingDriverOrGpuIsNamed) {
  EXPECT_THAT(Reason({.driver = 0}), HasSubstr("no NVIDIA driver"));
  EXPECT_THAT(Reason({.driver = 12080}),
              HasSubstr("knows CUDA 12.8, and this build is of 13.0"));
  EXPECT_THAT(Reason({.versions_error = "broken"}), HasSubstr("broken"));
  EXPECT_THAT(Reason({.devices = 0}), HasSubstr("no GPU"));
  EXPECT_THAT(Reason({.count_error = "cudaErrorNoDevice"}),
              HasSubstr("no GPU: cudaErrorNoDevice"));
  EXPECT_THAT(Reason({}, "cuda:2"), HasSubstr("has 2, the last is cuda:1"));
}

TEST(CudaLibraryTest, ABuildWithoutCudaSaysHowToGetOne) {
  const auto library = OpenCudaLibraryAt("/nowhere/libgossamer_cuda.so");
  EXPECT_EQ(library.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(library.status().message()),
              HasSubstr("deploy/setup.sh --for cuda"));
}

TEST(CudaLibraryTest, AFileThatIsNotTheCudaLibraryIsRefused) {
  const auto other = OpenCudaLibraryAt("/proc/self/exe");
  EXPECT_EQ(other.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("cannot open"));
}

TEST(CudaLibraryTest, TorchsCudaLibraryOpensOrAMissingOneIsNamed) {
  const absl::Status status = OpenTorchCuda();
  if (status.ok()) return;
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("torch's CUDA half does not open: lib"),
                    HasSubstr(".so"), HasSubstr("deploy/setup.sh --for cuda")));
}

TEST(CudaLibraryTest, NcclTellsItsVersionOrIsNamed) {
  const auto version = NcclVersion();
  if (version.ok()) {
    EXPECT_THAT(*version, testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  } else {
    EXPECT_THAT(std::string(version.status().message()),
                HasSubstr("libnccl.so.2"));
  }
}

#if defined(GOSSAMER_CUDA_LIBRARY)
TEST(CudaLibraryTest, TheBuildsCudaLibraryOpensWithoutADriver) {
  const auto library = OpenCudaLibraryAt(GOSSAMER_CUDA_LIBRARY);
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_EQ((*library)->kernels->name, "CUDA");
  const absl::Status status = CheckCudaDevice(*(*library)->calls, 1000);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
}
#endif

}  // namespace
}  // namespace gossamer
