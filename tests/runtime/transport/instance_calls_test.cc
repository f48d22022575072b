// Calls to a service at several addresses: which instance is asked, in which
// order, and for how long.

#include "runtime/transport/grpc/instance_calls.h"

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// No service listens there; no call of these tests goes over a wire.
constexpr char kAddresses[] = "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3";

class InstanceCallsTest : public testing::Test {
 protected:
  InstanceCalls::MakeChannel Maker() {
    return [this](const std::string& address) {
      auto channel =
          grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
      names_[channel.get()] = address;
      made_.push_back(address);
      kept_.push_back(channel);
      return channel;
    };
  }
  // Makes a call; every address answers by `codes_`.
  grpc::Status Ask(InstanceCalls& instances) {
    asked_.clear();
    limits_.clear();
    return instances.Run(
        absl::Seconds(3), [this](const auto& channel, auto* context) {
          const std::string& name = names_.at(channel.get());
          asked_.push_back(name.back());
          limits_.push_back(absl::Nanoseconds(
              gpr_timespec_to_micros(
                  gpr_time_sub(context->raw_deadline(),
                               gpr_now(context->raw_deadline().clock_type))) *
              1000));
          const auto code = codes_[name.back()];
          return code == grpc::OK ? grpc::Status::OK
                                  : grpc::Status(code, "says " + name);
        });
  }

  std::map<const grpc::Channel*, std::string> names_;
  std::vector<std::shared_ptr<grpc::Channel>> kept_;  // no address twice
  std::vector<std::string> made_;
  std::map<char, grpc::StatusCode> codes_;
  std::vector<char> asked_;
  std::vector<absl::Duration> limits_;
};

TEST_F(InstanceCallsTest, TheInstanceThatServesIsFoundAndAskedFirstAfterwards) {
  InstanceCalls instances(kAddresses, Maker());
  codes_['1'] = grpc::StatusCode::UNAVAILABLE;
  EXPECT_TRUE(Ask(instances).ok());
  EXPECT_THAT(asked_, ElementsAre('1', '2'));
  EXPECT_TRUE(Ask(instances).ok());
  EXPECT_THAT(asked_, ElementsAre('2'));
  codes_['2'] = grpc::StatusCode::DEADLINE_EXCEEDED;
  codes_['3'] = grpc::StatusCode::UNAVAILABLE;
  codes_['1'] = grpc::StatusCode::OK;
  EXPECT_TRUE(Ask(instances).ok());
  EXPECT_THAT(asked_, ElementsAre('2', '3', '1'));
}

TEST_F(InstanceCallsTest, ARefusalIsAnAnswer) {
  InstanceCalls instances(kAddresses, Maker());
  codes_['1'] = grpc::StatusCode::FAILED_PRECONDITION;
  EXPECT_EQ(Ask(instances).error_message(), "says 127.0.0.1:1");
  EXPECT_THAT(asked_, ElementsAre('1'));
}

TEST_F(InstanceCallsTest, EveryAnswerIsReportedIfNoInstanceServes) {
  InstanceCalls instances(kAddresses, Maker());
  for (const char who : {'1', '2', '3'}) {
    codes_[who] = grpc::StatusCode::UNAVAILABLE;
  }
  const grpc::Status nobody = Ask(instances);
  EXPECT_EQ(nobody.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(nobody.error_message(),
            "127.0.0.1:1: says 127.0.0.1:1; 127.0.0.1:2: says 127.0.0.1:2; "
            "127.0.0.1:3: says 127.0.0.1:3");
  InstanceCalls one("127.0.0.1:1", Maker());
  EXPECT_EQ(Ask(one).error_message(), "says 127.0.0.1:1");
}

TEST_F(InstanceCallsTest, SilentInstancesGetEqualSharesOfTheTime) {
  InstanceCalls instances(kAddresses, Maker());
  for (const char who : {'1', '2', '3'}) {
    codes_[who] = grpc::StatusCode::UNAVAILABLE;
  }
  Ask(instances);
  ASSERT_EQ(limits_.size(), 3);
  // No address has taken any time: the limits are a third, half of the rest,
  // the rest.
  EXPECT_LE(limits_[0], absl::Seconds(1));
  EXPECT_LE(limits_[1], absl::Milliseconds(1500));
  EXPECT_LE(limits_[2], absl::Seconds(3));
}

TEST_F(InstanceCallsTest, AnInstanceThatCouldNotBeReachedGetsANewConnection) {
  InstanceCalls instances(kAddresses, Maker());
  codes_['1'] = grpc::StatusCode::UNAVAILABLE;
  Ask(instances);
  codes_['2'] = grpc::StatusCode::UNAVAILABLE;
  Ask(instances);
  EXPECT_THAT(made_, ElementsAre("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"));
  codes_['1'] = codes_['2'] = grpc::StatusCode::OK;
  codes_['3'] = grpc::StatusCode::DEADLINE_EXCEEDED;
  Ask(instances);
  EXPECT_EQ(made_.back(), "127.0.0.1:1");
  EXPECT_EQ(made_.size(), 4);
  instances.ResetChannels();
  Ask(instances);
  EXPECT_EQ(made_.size(), 5);
}

// A connection over a long link may need longer than one call has.
TEST_F(InstanceCallsTest, AnInstanceThatIsSilentTwiceGetsANewConnection) {
  InstanceCalls one("127.0.0.1:1", Maker(), /*silent_calls=*/2);
  codes_['1'] = grpc::StatusCode::DEADLINE_EXCEEDED;
  Ask(one);
  codes_['1'] = grpc::StatusCode::OK;
  Ask(one);
  codes_['1'] = grpc::StatusCode::DEADLINE_EXCEEDED;
  for (int call = 0; call < 2; ++call) {
    Ask(one);
    EXPECT_EQ(made_.size(), 1) << call;
  }
  Ask(one);
  EXPECT_EQ(made_.size(), 2);
}

// It may serve over a slow link, while the others stand by.
TEST_F(InstanceCallsTest, ASilentInstanceGetsAllTheTimeThatTheOthersLeave) {
  InstanceCalls instances(kAddresses, Maker(), /*silent_calls=*/2);
  codes_['1'] = grpc::StatusCode::DEADLINE_EXCEEDED;
  codes_['2'] = codes_['3'] = grpc::StatusCode::UNAVAILABLE;
  EXPECT_EQ(Ask(instances).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(asked_, ElementsAre('1', '2', '3'));
  EXPECT_EQ(Ask(instances).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(asked_, ElementsAre('2', '3', '1'));
  EXPECT_GT(limits_[2], absl::Seconds(2));
}

TEST_F(InstanceCallsTest, AfterCancelNothingIsAsked) {
  InstanceCalls instances(kAddresses, Maker());
  absl::Notification begun, cancelled;
  std::thread asker([&] {
    const grpc::Status status =
        instances.Run(absl::Seconds(30), [&](const auto&, auto*) {
          begun.Notify();
          cancelled.WaitForNotification();
          return grpc::Status(grpc::StatusCode::UNAVAILABLE, "cancelled");
        });
    EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  });
  begun.WaitForNotification();
  instances.Cancel();
  cancelled.Notify();
  asker.join();
  EXPECT_EQ(Ask(instances).error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(InstanceCallsTest, CallsWithoutAnAddressAreUnavailable) {
  InstanceCalls none(",", Maker());
  const grpc::Status status = Ask(none);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("no address"));
}

}  // namespace
}  // namespace gossamer
