// The factory makes each transport by its name, and lists them for a wrong one.

#include "runtime/transport/transport_factory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/base/real_loop.h"

namespace gossamer {
namespace {

using testing::HasSubstr;

TEST(TransportFactory, MakesEachByItsName) {
  RealLoop loop;
  InprocNetwork network;
  for (const std::string_view name : TransportNames()) {
    auto made = MakeTransport(name, &loop,
                              {.self = {1},
                               .run_id = "run",
                               .listen_address = "127.0.0.1:0",
                               .network = &network});
    ASSERT_TRUE(made.ok()) << name << ": " << made.status();
    ASSERT_NE(made->transport, nullptr);
    EXPECT_EQ(made->port != 0, name == "grpc");
  }
}

TEST(TransportFactory, SaysWhichThereAreAndWhatOneNeeds) {
  RealLoop loop;
  const auto unknown = MakeTransport("pigeon", &loop, {.self = {1}});
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.status().message()),
              HasSubstr("\"pigeon\"; there are grpc, inproc"));
  const auto alone = MakeTransport("inproc", &loop, {.self = {1}});
  EXPECT_EQ(alone.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(alone.status().message()), HasSubstr("one process"));
}

}  // namespace
}  // namespace gossamer
