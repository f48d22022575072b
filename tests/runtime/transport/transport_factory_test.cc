// The factory makes each transport by its name, and lists them for a wrong one.

#include "runtime/transport/transport_factory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/base/real_loop.h"
#include "runtime/transport/transport_choice.h"
#include "tests/testing/fake_nccl.h"

namespace gossamer {
namespace {

using testing::HasSubstr;

TEST(TransportFactory, MakesEachByItsName) {
  RealLoop loop;
  FakeNccl nccl(&loop, {});
  const auto gpu = nccl.NewRank("gpu0");
  for (const std::string_view name : TransportNames()) {
    auto made = MakeTransport(name, &loop,
                              {.self = {1},
                               .run_id = "run",
                               .listen_address = "127.0.0.1:0",
                               .nccl = gpu.get(),
                               .device = gpu.get()});
    ASSERT_TRUE(made.ok()) << name << ": " << made.status();
    ASSERT_NE(made->transport, nullptr);
    EXPECT_NE(made->port, 0);
    EXPECT_EQ(made->nccl != nullptr, name == "nccl" || name == "auto");
  }
}

TEST(TransportFactory, InHostMemoryAutoIsGrpcAndNcclIsRefused) {
  RealLoop loop;
  const TransportOptions options{
      .self = {1}, .run_id = "run", .listen_address = "127.0.0.1:0"};
  const auto chosen = MakeTransport("auto", &loop, options);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->nccl, nullptr);
  const auto refused = MakeTransport("nccl", &loop, options);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("parameters are in host memory"));
}

TEST(TransportFactory, AConfigurationMayAskForWhatIsMade) {
  EXPECT_THAT(TransportNames(), testing::ElementsAreArray(kTransportChoices));
}

TEST(TransportFactory, SaysWhichThereAre) {
  RealLoop loop;
  const auto unknown = MakeTransport("pigeon", &loop, {.self = {1}});
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.status().message()),
              HasSubstr("\"pigeon\"; there are auto, grpc, nccl"));
}

}  // namespace
}  // namespace gossamer
