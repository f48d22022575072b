// The parts of a peer process, each without the others, in virtual time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/daemon/process_reports.h"
#include "runtime/daemon/service_registration.h"
#include "runtime/sim/virtual_loop.h"
#include "tests/testing/temporary_folder.h"

namespace gossamer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ProcessReportsTest : public ::testing::Test {
 protected:
  std::vector<std::string> Events() {
    std::vector<std::string> lines;
    std::ifstream file(folder_.path() + "/events.jsonl");
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  const TemporaryFolder folder_;
  VirtualLoop loop_;
  uint64_t round_ = 0;
  ProcessReports reports_{&loop_, {3}, [this] { return round_; }};
};

TEST_F(ProcessReportsTest, EventsAreKeptOnceThereIsAFile) {
  reports_.Report("service_found", "early");
  EXPECT_FALSE(reports_.opened());
  ASSERT_TRUE(reports_.Open(folder_.path(), 0).ok());
  EXPECT_THAT(Events(), IsEmpty());
  round_ = 7;
  reports_.Report("service_lost", "late");
  EXPECT_THAT(Events(),
              ElementsAre(AllOf(HasSubstr("service_lost"),
                                HasSubstr("\"round\":7"), HasSubstr("late"))));
}

TEST_F(ProcessReportsTest, RefusalsAreReportedEverMoreSeldom) {
  ASSERT_TRUE(reports_.Open(folder_.path(), 0).ok());
  for (int i = 0; i < 100; ++i) {
    reports_.ReportRefused("view_refused", {}, absl::DataLossError("bad"));
  }
  EXPECT_THAT(Events(), ElementsAre(HasSubstr("bad"), HasSubstr("\"times\":9"),
                                    HasSubstr("\"times\":90")));
}

TEST_F(ProcessReportsTest, ThoseWhoAreNoMembersShareOneThrottle) {
  ASSERT_TRUE(reports_.Open(folder_.path(), 0).ok());
  const absl::Status why = absl::UnauthenticatedError("no certificate");
  for (uint64_t id = 100; id < 109; ++id) {
    reports_.ReportProblem({id}, /*member=*/false, why);
  }
  EXPECT_EQ(Events().size(), 1u);
  reports_.ReportProblem({2}, /*member=*/true, why);
  EXPECT_EQ(Events().size(), 2u);
  // A peer that is silent is no refusal.
  reports_.ReportProblem({4}, /*member=*/true, absl::UnavailableError("gone"));
  EXPECT_EQ(Events().size(), 2u);
}

// A service that answers a registration with one status, or never.
class OneAnswer final : public TopologyCalls {
 public:
  OneAnswer(EventLoop* loop, std::optional<absl::Status> answer)
      : loop_(loop), answer_(std::move(answer)) {}
  void Register(wire::RegisterRequest,
                Done<wire::RegisterResponse> done) override {
    if (!answer_) return;
    wire::RegisterResponse response;
    response.set_peer_id(5);
    response.set_registered(1);
    response.set_expected(2);
    loop_->Post(
        [done, response, answer = *answer_] { done(answer, response); });
  }
  void Heartbeat(wire::HeartbeatRequest,
                 Done<wire::HeartbeatResponse>) override {}

 private:
  EventLoop* const loop_;
  const std::optional<absl::Status> answer_;
};

class ServiceRegistrationTest : public ::testing::Test {
 protected:
  ~ServiceRegistrationTest() override {
    task_ = {};
    registration_.Close();
  }
  void Run(std::optional<absl::Status> answer) {
    TopologyClientOptions options;
    options.service = "here:1";
    options.run_id = "run";
    options.boot_id = 1;
    task_ = registration_.Run(
        std::move(options),
        std::make_unique<OneAnswer>(&loop_, std::move(answer)),
        absl::Seconds(60), [] {});
  }

  VirtualLoop loop_;
  ProcessReports reports_{&loop_, {}, [] { return 0; }};
  Waiter waiter_{&loop_};
  ServiceRegistration registration_{&loop_, &waiter_, &reports_};
  Task<absl::Status> task_;
};

TEST_F(ServiceRegistrationTest, GivesTheIdOfTheService) {
  Run(absl::OkStatus());
  EXPECT_FALSE(task_.done());
  loop_.RunFor(absl::Seconds(1));
  ASSERT_TRUE(task_.done());
  EXPECT_TRUE(task_.value().ok()) << task_.value();
  EXPECT_TRUE(registration_.registered());
  EXPECT_EQ(registration_.client()->peer_id(), PeerId{5});
  EXPECT_FALSE(registration_.HasMember({5}));  // no view yet
}

TEST_F(ServiceRegistrationTest, WaitsSoLongForAnAnswer) {
  Run(std::nullopt);
  loop_.RunFor(absl::Seconds(59));
  EXPECT_FALSE(task_.done());
  loop_.RunFor(absl::Seconds(2));
  ASSERT_TRUE(task_.done());
  EXPECT_TRUE(absl::IsUnavailable(task_.value()));
  EXPECT_THAT(task_.value().message(), HasSubstr("here:1 for 1m"));
}

TEST_F(ServiceRegistrationTest, AProcessThatIsToEndWaitsForNoFirstAnswer) {
  Run(std::nullopt);
  registration_.EndUnlessRegistered();
  loop_.RunFor(absl::ZeroDuration());
  ASSERT_TRUE(task_.done());
  EXPECT_TRUE(task_.value().ok()) << task_.value();
  EXPECT_FALSE(registration_.registered());
}

TEST_F(ServiceRegistrationTest, AReplacedProcessEndsAtOnceAndAnotherSoon) {
  const absl::Time begin = loop_.Now();
  Run(absl::AbortedError("another process has this id"));
  loop_.RunFor(absl::Seconds(1));
  ASSERT_TRUE(task_.done());
  EXPECT_TRUE(absl::IsAborted(task_.value()));
  EXPECT_EQ(registration_.ends_by(), begin);
}

TEST_F(ServiceRegistrationTest, ARefusedProcessHasTimeForItsNextRound) {
  const absl::Time begin = loop_.Now();
  Run(absl::FailedPreconditionError("another configuration"));
  loop_.RunFor(absl::Seconds(1));
  ASSERT_TRUE(task_.done());
  EXPECT_TRUE(absl::IsFailedPrecondition(registration_.refused()));
  EXPECT_EQ(registration_.ends_by(), begin + absl::Seconds(10));
}

}  // namespace
}  // namespace gossamer
