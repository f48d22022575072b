// The device of a peer as its machine has it, and the words where it has not
// what is asked for.

#include "runtime/device/peer_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/real_loop.h"
#include "runtime/transport/nccl/nccl_plan.h"
#include "tests/testing/fake_device.h"
#include "tests/testing/fake_nccl.h"

namespace gossamer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class PeerDeviceTest : public testing::Test {
 protected:
  // Of a machine that has everything.
  PeerDeviceOptions On(const std::string& device,
                       const std::string& transport = "auto") {
    return {.device = device,
            .transport = transport,
            .cuda = [] { return &FakeDevice::library(); },
            .torch = [] { return absl::OkStatus(); },
            .nccl = [this]() -> absl::StatusOr<std::unique_ptr<NcclApi>> {
              return nccl_.NewRank("gpu");
            }};
  }
  static std::string Refusal(const PeerDeviceOptions& options) {
    const absl::Status status = PeerDevice::Open(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
    return std::string(status.message());
  }

  RealLoop loop_;
  FakeNccl nccl_{&loop_, {}};
};

PeerDeviceOptions WithoutNccl(PeerDeviceOptions options) {
  options.nccl = []() -> absl::StatusOr<std::unique_ptr<NcclApi>> {
    return absl::FailedPreconditionError("NCCL does not open: no such file");
  };
  return options;
}

TEST_F(PeerDeviceTest, OnTheCpuNothingIsOpened) {
  PeerDeviceOptions options = On("cpu");
  options.cuda = []() -> absl::StatusOr<const CudaLibrary*> {
    ADD_FAILURE() << "opened";
    return absl::UnknownError("");
  };
  options.torch = [] { return absl::UnknownError(""); };
  const auto device = PeerDevice::Open(WithoutNccl(options));
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_TRUE((*device)->queue().on_host());
  EXPECT_EQ((*device)->nccl(), nullptr);
  EXPECT_EQ((*device)->place(), "");
  EXPECT_THAT((*device)->notes(), IsEmpty());
}

TEST_F(PeerDeviceTest, AGpuIsTakenAndSaid) {
  FakeDevice fake({.devices = 4});
  for (const char* request : {"auto", "cuda", "cuda:2"}) {
    PeerDeviceOptions options = On(request);
    options.ordinal = 6;
    const auto device = PeerDevice::Open(options);
    ASSERT_TRUE(device.ok()) << device.status();
    EXPECT_EQ((*device)->queue().device(), (Device{Device::kCuda, 2}));
    EXPECT_THAT((*device)->notes(),
                ElementsAre(StartsWith("device: cuda:2, Fake GPU at "
                                       "0000:03:00.0, ")));
    EXPECT_NE((*device)->nccl(), nullptr);
    EXPECT_NE((*device)->nccl_device(), nullptr);
    const auto place = NcclPlace::Parse((*device)->place());
    ASSERT_TRUE(place) << (*device)->place();
    EXPECT_EQ(place->gpu, "0000:03:00.0");
    EXPECT_EQ(place->version, 22809);
  }
}

TEST_F(PeerDeviceTest, PeersOfOneMachineAreOnOneFabricAndGpusOfTheirOwn) {
  FakeDevice fake({.devices = 2});
  NcclPlace places[3];
  for (uint64_t ordinal : {0, 1, 2}) {
    PeerDeviceOptions options = On("auto");
    options.ordinal = ordinal;
    places[ordinal] =
        *NcclPlace::Parse(PeerDevice::Open(options).value()->place());
  }
  EXPECT_EQ(places[0].fabric, places[1].fabric);
  EXPECT_NE(places[0].gpu, places[1].gpu);
  EXPECT_EQ(places[0].gpu, places[2].gpu);
}

TEST_F(PeerDeviceTest, AFabricJoinsMachines) {
  FakeDevice fake({.devices = 2});
  PeerDeviceOptions options = On("cuda:0");
  const auto place = [&](const char* machine) {
    setenv("NCCL_HOSTID", machine, 1);
    const auto device = PeerDevice::Open(options).value();
    unsetenv("NCCL_HOSTID");
    return *NcclPlace::Parse(device->place());
  };
  EXPECT_NE(place("a/1").fabric, place("b").fabric);
  options.fabric = "rack-1";
  EXPECT_EQ(place("a/1").fabric, "rack-1");
  EXPECT_EQ(place("b").fabric, "rack-1");
  // GPUs at one address of two machines are two.
  EXPECT_NE(place("a/1").gpu, place("b").gpu);
  EXPECT_EQ(place("b").gpu, place("b").gpu);
}

TEST_F(PeerDeviceTest, AutoFallsBackToTheCpuAndSaysWhyOnce) {
  FakeDevice fake({.driver = 12040});
  const auto old = PeerDevice::Open(On("auto"));
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_TRUE((*old)->queue().on_host());
  EXPECT_EQ((*old)->nccl(), nullptr);
  EXPECT_THAT((*old)->notes(),
              ElementsAre(AllOf(StartsWith("device: the CPU, since "),
                                HasSubstr("knows CUDA 12.4"))));
}

TEST_F(PeerDeviceTest, AutoLeavesARunOfTheCpuThere) {
  FakeDevice fake;
  PeerDeviceOptions options = On("auto");
  options.why_on_host = "game bilinear is computed on the CPU alone";
  const auto device = PeerDevice::Open(options);
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_TRUE((*device)->queue().on_host());
  EXPECT_THAT((*device)->notes(), ElementsAre(HasSubstr("game bilinear")));
}

TEST_F(PeerDeviceTest, ADemandSaysWhatIsMissingAndWhatToDo) {
  const auto instead = HasSubstr("; or set resources.device=cpu");
  {
    FakeDevice fake({.driver = 12040});
    EXPECT_THAT(Refusal(On("cuda")),
                AllOf(StartsWith("resources.device is cuda, but "),
                      HasSubstr("install a newer driver"), instead));
  }
  {
    FakeDevice fake({.driver = 0});
    EXPECT_THAT(Refusal(On("cuda")),
                AllOf(HasSubstr("there is no NVIDIA driver"), instead));
  }
  {
    FakeDevice fake({.devices = 0});
    EXPECT_THAT(Refusal(On("cuda")),
                AllOf(HasSubstr("the driver has no GPU"), instead));
  }
  FakeDevice fake;
  EXPECT_THAT(Refusal(On("cuda:1")),
              AllOf(HasSubstr("the last is cuda:0"), instead));
  PeerDeviceOptions torch = On("cuda");
  torch.torch = [] {
    return absl::FailedPreconditionError("torch's CUDA half does not open");
  };
  EXPECT_THAT(Refusal(torch), AllOf(HasSubstr("torch's CUDA half"), instead));
  PeerDeviceOptions library = On("cuda");
  library.cuda = []() -> absl::StatusOr<const CudaLibrary*> {
    return absl::NotFoundError("libgossamer_cuda.so is not there");
  };
  EXPECT_THAT(Refusal(library),
              AllOf(HasSubstr("libgossamer_cuda.so is not there"), instead));
}

TEST_F(PeerDeviceTest, WithoutNcclAutoIsGrpcAndNcclIsRefused) {
  FakeDevice fake;
  const auto device = PeerDevice::Open(WithoutNccl(On("auto")));
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_FALSE((*device)->queue().on_host());
  EXPECT_EQ((*device)->nccl(), nullptr);
  EXPECT_THAT((*device)->notes(),
              testing::Contains("transport: gRPC alone, since NCCL does not "
                                "open: no such file"));
  // For people; no view joins it by NCCL.
  EXPECT_THAT((*device)->place(), HasSubstr("/0000:01:00.0/0"));
  EXPECT_FALSE(NcclPlace::Parse((*device)->place()));
  EXPECT_THAT(Refusal(WithoutNccl(On("cuda", "nccl"))),
              AllOf(StartsWith("transport is nccl, but NCCL does not open"),
                    HasSubstr("; or set transport=auto")));
}

TEST_F(PeerDeviceTest, WithoutAGpuNcclIsRefused) {
  EXPECT_THAT(Refusal(On("cpu", "nccl")),
              HasSubstr("this peer is on the CPU: resources.device is "
                        "cpu; or set transport=auto"));
  FakeDevice fake({.devices = 0});
  EXPECT_THAT(Refusal(On("auto", "nccl")),
              AllOf(StartsWith("transport is nccl, which joins GPUs, but this "
                               "peer is on the CPU: the driver has no GPU"),
                    HasSubstr("; or set transport=auto")));
}

TEST_F(PeerDeviceTest, TheMachinesNcclOpensOrIsNamed) {
  const auto nccl = OpenNcclApi();
  if (nccl.ok()) {
    EXPECT_GE((*nccl)->version(), 21400);
  } else {
    EXPECT_THAT(std::string(nccl.status().message()),
                HasSubstr("libnccl.so.2"));
  }
}

TEST_F(PeerDeviceTest, GrpcOpensNoNccl) {
  FakeDevice fake;
  PeerDeviceOptions options = On("cuda", "grpc");
  options.nccl = []() -> absl::StatusOr<std::unique_ptr<NcclApi>> {
    ADD_FAILURE() << "opened";
    return absl::UnknownError("");
  };
  const auto device = PeerDevice::Open(options);
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ((*device)->nccl(), nullptr);
}

TEST_F(PeerDeviceTest, AFullDeviceIsExplainedByWhatToLower) {
  FakeDevice fake({.memory = size_t{1} << 20});
  const auto device = PeerDevice::Open(On("cuda")).value();
  const DeviceVector<float> moments(device->queue(), size_t{1} << 20,
                                    "a moment of the optimizer");
  const absl::Status why = device->Explain(absl::DataLossError("loss is 0"));
  EXPECT_EQ(why.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(why.message()),
              AllOf(StartsWith("loss is 0 (cuda:0: 4.2 MB for a moment of the "
                               "optimizer, with "),
                    HasSubstr("lower game.gan.batch")));
  EXPECT_TRUE(device->Explain(absl::OkStatus()).ok());
}

TEST_F(PeerDeviceTest, AVanishedDeviceIsExplainedByTheWayToGoOn) {
  FakeDevice fake;
  const auto device = PeerDevice::Open(On("cuda")).value();
  const absl::Status lost = absl::UnavailableError("a neighbour is lost");
  EXPECT_EQ(device->Explain(lost), lost);
  fake.Vanish("Xid 79: GPU has fallen off the bus");
  const absl::Status status = device->queue().Wait();
  const std::string why(device->Explain(status).message());
  EXPECT_THAT(why, AllOf(StartsWith("cuda:0: "), HasSubstr("Xid 79"),
                         HasSubstr("--resume with --set "
                                   "resources.device=cpu")));
}

}  // namespace
}  // namespace gossamer
