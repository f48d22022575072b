// The parts of a peer process, each without the others, in virtual time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "runtime/daemon/last_view.h"
#include "runtime/daemon/process_reports.h"
#include "runtime/daemon/service_registration.h"
#include "runtime/sim/virtual_loop.h"
#include "tests/testing/temporary_folder.h"
#include "topology/fleet/view_message.h"

namespace gossamer {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
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

// All are kept; the log has the others' lines, and of these one a minute.
TEST_F(ProcessReportsTest, EventsThatAskForAnActionAreLoggedOnceAMinute) {
  ASSERT_TRUE(reports_.Open(folder_.path(), 0).ok());
  const auto report = [&](EventKind kind, absl::Duration after) {
    reports_.sink()->OnEvent(
        {.time = absl::UnixEpoch() + after, .kind = kind, .detail = "no room"});
  };
  ::testing::internal::CaptureStderr();
  report("checkpoint", absl::ZeroDuration());
  report("checkpoint_failed", absl::ZeroDuration());
  report("checkpoint_failed", absl::Seconds(59));
  report("checkpoint_room", absl::Seconds(59));
  report("checkpoint_failed", absl::Seconds(61));
  const std::vector<std::string> log = absl::StrSplit(
      ::testing::internal::GetCapturedStderr(), '\n', absl::SkipEmpty());
  EXPECT_EQ(Events().size(), 5u);
  EXPECT_THAT(
      log,
      ElementsAre(EndsWith("peer 3: checkpoint_failed: no room (make room, or "
                           "mend the disk that it names)"),
                  HasSubstr("peer 3: checkpoint_room: no room (make room"),
                  HasSubstr("peer 3: checkpoint_failed: ")));
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

class LastViewTest : public ::testing::Test {
 protected:
  static std::shared_ptr<const ReceivedView> Received(uint64_t epoch) {
    auto received = std::make_shared<ReceivedView>();
    received->view.run_id = "run";
    received->view.generation = 7;
    received->view.epoch = epoch;
    received->view.members = {{.id = {1}, .address = "a"},
                              {.id = {2}, .address = "b"}};
    received->message = ToMessage(received->view);
    return received;
  }
  void Keep(std::shared_ptr<const ReceivedView> received) {
    view_.Keep(std::move(received));
  }
  absl::StatusOr<std::shared_ptr<const ReceivedView>> Read(
      const std::string& run = "run", uint64_t self = 2) {
    return ReadLastView(SystemFileOps(), path_, run, {self});
  }

  const TemporaryFolder folder_;
  const std::string path_ = LastViewPath(folder_.path());
  VirtualLoop shared_;
  VirtualPeerLoop loop_{&shared_};
  VirtualCompute disk_{&loop_,
                       VirtualCompute::Around(RngKey(1), absl::Seconds(1), 0)};
  std::vector<absl::Status> failures_;
  LastView view_{SystemFileOps(), path_, &disk_,
                 [this](const absl::Status& why) { failures_.push_back(why); }};
};

TEST_F(LastViewTest, ComesBackAsItWasKept) {
  EXPECT_EQ(Read().value(), nullptr) << "there is none yet";
  Keep(Received(3));
  Keep(Received(4));
  Keep(Received(5));
  shared_.RunFor(absl::Minutes(1));
  const auto read = Read();
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ((*read)->view.epoch, 5u);
  EXPECT_EQ((*read)->view.members, Received(5)->view.members);
  EXPECT_THAT(failures_, IsEmpty());
}

TEST_F(LastViewTest, OfAnotherRunOrPeerIsRefused) {
  Keep(Received(3));
  shared_.RunFor(absl::Minutes(1));
  EXPECT_THAT(std::string(Read("another").status().message()),
              HasSubstr("run \"another\""));
  EXPECT_THAT(std::string(Read("run", 9).status().message()),
              HasSubstr("peer 9"));
}

TEST_F(LastViewTest, ADamagedByteIsSeen) {
  Keep(Received(3));
  shared_.RunFor(absl::Minutes(1));
  const std::string sound = *SystemFileOps().ReadText(path_);
  for (size_t i = 0; i < sound.size(); ++i) {
    std::string damaged = sound;
    damaged[i] ^= 1;
    ASSERT_TRUE(SystemFileOps().WriteText(path_, damaged).ok());
    EXPECT_TRUE(absl::IsDataLoss(Read().status())) << "byte " << i;
    ASSERT_TRUE(SystemFileOps().WriteText(path_, sound.substr(0, i)).ok());
    EXPECT_TRUE(absl::IsDataLoss(Read().status())) << i << " bytes";
  }
}

TEST_F(LastViewTest, AFailureIsReported) {
  LastView nowhere(
      SystemFileOps(), folder_.path() + "/none/view.pb", &disk_,
      [this](const absl::Status& why) { failures_.push_back(why); });
  nowhere.Keep(Received(3));
  shared_.RunFor(absl::Minutes(1));
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_THAT(std::string(failures_[0].message()), HasSubstr("none/view.pb"));
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
    options.incarnation_id = 1;
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
