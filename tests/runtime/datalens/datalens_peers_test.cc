// Student and teachers over every transport, without networks: teachers vote by
// a formula, and the student's images are what it has learnt.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/real_loop.h"
#include "runtime/datalens/student_peer.h"
#include "runtime/datalens/teacher_peer.h"
#include "runtime/sim/sim_network.h"
#include "runtime/sim/virtual_loop.h"
#include "runtime/transport/grpc/grpc_transport.h"
#include "runtime/transport/inproc/inproc_network.h"
#include "tests/runtime/datalens/formula_run.h"

namespace gossamer {
namespace {

using ::testing::HasSubstr;

struct Outcome {
  absl::Status student;
  std::vector<absl::Status> teachers;
  std::vector<float> table;
  StudentProgress progress;
  bool budget_spent = false;
};

// All gradients of one teacher.
struct Spoilt {
  int teacher = -1;
  float value = 0;
};

// All in virtual time; `meddle` may do something to the network.
Outcome InVirtualTime(int groups, StudentOptions options,
                      std::function<void(SimNetwork&, VirtualLoop&)> meddle,
                      TeacherOptions teacher_options, int present,
                      Spoilt spoilt = {}) {
  VirtualLoop loop;
  SimNetwork network(&loop, SimOptions{});
  VirtualPeerLoop own(&loop);
  TableStudent student;
  Outcome outcome;
  std::optional<absl::Status> ended;
  auto transport = network.CreateEndpoint(kStudentId, &own);
  StudentPeer peer(&own, transport.get(), &student, std::move(options),
                   [&](absl::Status s) { ended = std::move(s); });
  transport->SetListener(&peer);
  struct Seat {
    std::unique_ptr<VirtualPeerLoop> loop;
    std::unique_ptr<Transport> transport;
    std::unique_ptr<FormulaTeachers> teachers;
    std::unique_ptr<TeacherPeer> peer;
    std::optional<absl::Status> ended;
  };
  std::vector<std::unique_ptr<Seat>> seats;
  for (int g = 0; g < present; ++g) {
    auto s = std::make_unique<Seat>();
    s->loop = std::make_unique<VirtualPeerLoop>(&loop);
    s->transport = network.CreateEndpoint(TeacherGroupId(g), s->loop.get());
    s->teachers = TeachersOf(g, groups);
    s->teachers->spoilt = spoilt.teacher;
    s->teachers->value = spoilt.value;
    s->peer = std::make_unique<TeacherPeer>(
        s->loop.get(), s->transport.get(), s->teachers.get(), teacher_options,
        [p = s.get()](absl::Status status) { p->ended = std::move(status); });
    s->transport->SetListener(s->peer.get());
    s->loop->Post([p = s.get()] { p->peer->Start(); });
    seats.push_back(std::move(s));
  }
  own.Post([&] { peer.Start(); });
  if (meddle) meddle(network, loop);
  EXPECT_TRUE(loop.RunUntil(
      [&] {
        bool all = ended.has_value();
        for (const auto& s : seats) all = all && s->ended.has_value();
        return all;
      },
      absl::Hours(1)));
  outcome.student = ended.value_or(absl::UnknownError("did not end"));
  for (const auto& s : seats) {
    outcome.teachers.push_back(s->ended.value_or(absl::UnknownError("runs")));
    if (outcome.student.ok()) {
      EXPECT_EQ(s->teachers->votes(), static_cast<int>(peer.progress().step))
          << "each question is voted on once";
    }
  }
  outcome.table = student.table;
  outcome.progress = peer.progress();
  outcome.budget_spent = peer.budget_spent();
  return outcome;
}

Outcome Plain(int groups) {
  return InVirtualTime(groups, OptionsFor(groups), nullptr, TeachersFor(),
                       groups);
}

TEST(DataLensPeersTest, StopsInGoodOrderWhenTheBudgetIsSpent) {
  const Outcome outcome = Plain(1);
  EXPECT_TRUE(outcome.student.ok()) << outcome.student;
  EXPECT_TRUE(outcome.teachers[0].ok()) << outcome.teachers[0];
  EXPECT_TRUE(outcome.budget_spent);
  const auto accountant =
      RdpAccountant::Create(VoteSensitivity(Settings()), Settings().sigma);
  const uint64_t allowed = accountant->Allowed(Settings().budget);
  EXPECT_EQ(outcome.progress.step, allowed / 5);
  EXPECT_EQ(outcome.progress.queries, allowed / 5 * 5);
  EXPECT_GT(outcome.progress.step, 10u);
  EXPECT_LE(outcome.progress.epsilon, Settings().budget.epsilon);
  EXPECT_GT(accountant->Epsilon(1e-5, outcome.progress.queries + 5),
            Settings().budget.epsilon);
}

TEST(DataLensPeersTest, HowTeachersAreSpreadChangesNoBit) {
  const Outcome one = Plain(1);
  for (const int groups : {2, 3, 17}) {
    const Outcome outcome = Plain(groups);
    EXPECT_TRUE(outcome.student.ok()) << outcome.student;
    EXPECT_EQ(outcome.table, one.table) << groups;
  }
  // And it did learn something.
  EXPECT_NE(one.table, TableStudent().table);
}

TEST(DataLensPeersTest, LostConnectionsChangeNoBit) {
  const Outcome outcome = InVirtualTime(
      2, OptionsFor(2),
      [](SimNetwork& network, VirtualLoop& loop) {
        // Every few frames, with some lost on the way and back.
        for (int i = 0; i < 40; ++i) {
          loop.RunUntil([] { return false; }, absl::Microseconds(2700));
          network.Break(kStudentId, TeacherGroupId(i % 2));
        }
      },
      TeachersFor(), 2);
  EXPECT_TRUE(outcome.student.ok()) << outcome.student;
  EXPECT_EQ(outcome.table, Plain(1).table);
}

// To end the run for it would tell of one shard what no noise covers.
TEST(DataLensPeersTest, ATeacherThatIsNotFiniteAbstains) {
  std::vector<std::string> said;
  StudentOptions student = OptionsFor(2);
  // So little noise that one vote can be seen.
  student.settings.sigma = 1;
  student.settings.budget.epsilon = 1000;
  TeacherOptions options = TeachersFor();
  options.settings = student.settings;
  options.on_problem = [&](const std::string& what) { said.push_back(what); };
  const auto run = [&](float value, int teacher = 3) {
    return InVirtualTime(2, student, nullptr, options, 2, {teacher, value});
  };
  const Outcome abstains = run(0);
  EXPECT_THAT(said, testing::IsEmpty());
  EXPECT_NE(abstains.table, run(0, /*teacher=*/-1).table);
  for (const float value : {NAN, INFINITY, -INFINITY}) {
    said.clear();
    const Outcome outcome = run(value);
    EXPECT_TRUE(outcome.student.ok()) << outcome.student;
    EXPECT_TRUE(outcome.budget_spent);
    EXPECT_EQ(outcome.table, abstains.table);
    EXPECT_EQ(outcome.progress.queries, abstains.progress.queries);
    EXPECT_EQ(outcome.progress.epsilon, abstains.progress.epsilon);
    EXPECT_THAT(said, testing::ElementsAre(HasSubstr(
                          "from step 1 on 1 of teachers 0 to 7 abstain")));
  }
}

TEST(DataLensPeersTest, SaysWhichTeachersAreMissing) {
  const Outcome outcome =
      InVirtualTime(3, OptionsFor(3), nullptr, TeachersFor(), 2);
  EXPECT_EQ(outcome.student.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(outcome.student.message()),
              HasSubstr("from group 2 (not connected)"));
  EXPECT_EQ(outcome.progress.epsilon, 0) << "nothing was released";
}

TEST(DataLensPeersTest, OtherSettingsAreRefused) {
  TeacherOptions others = TeachersFor();
  others.settings.seed = 2;
  const Outcome outcome = InVirtualTime(1, OptionsFor(1), nullptr, others, 1);
  EXPECT_EQ(outcome.student.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(outcome.student.message()),
              HasSubstr("different settings"));
  EXPECT_EQ(outcome.teachers[0].code(), absl::StatusCode::kFailedPrecondition);
}

TEST(DataLensPeersTest, TeachersDoNotWaitForEver) {
  TeacherOptions impatient = TeachersFor();
  impatient.patience = absl::Seconds(5);
  StudentOptions options = OptionsFor(2);
  options.patience = absl::Seconds(20);
  const Outcome outcome = InVirtualTime(2, options, nullptr, impatient, 1);
  EXPECT_EQ(outcome.teachers[0].code(), absl::StatusCode::kDeadlineExceeded);
}

// Real loops and threads.
class Threads {
 public:
  Outcome Run(int groups, bool grpc) {
    TableStudent student;
    RealLoop loop;
    InprocNetwork network;
    auto transport = Make(grpc, network, &loop, kStudentId);
    const int port =
        grpc ? static_cast<GrpcTransport*>(transport.get())->port() : 0;
    Outcome outcome;
    StudentPeer peer(&loop, transport.get(), &student, OptionsFor(groups),
                     [&](absl::Status s) {
                       outcome.student = std::move(s);
                       loop.Stop();
                     });
    transport->SetListener(&peer);
    struct Seat {
      RealLoop loop;
      std::unique_ptr<Transport> transport;
      std::unique_ptr<FormulaTeachers> teachers;
      std::unique_ptr<TeacherPeer> peer;
    };
    std::vector<std::unique_ptr<Seat>> seats;
    for (int g = 0; g < groups; ++g) {
      auto s = std::make_unique<Seat>();
      s->transport = Make(grpc, network, &s->loop, TeacherGroupId(g));
      s->teachers = TeachersOf(g, groups);
      TeacherOptions options = TeachersFor();
      options.student = absl::StrCat("127.0.0.1:", port);
      s->peer = std::make_unique<TeacherPeer>(
          &s->loop, s->transport.get(), s->teachers.get(), options,
          [p = s.get()](const absl::Status& status) {
            EXPECT_TRUE(status.ok()) << status;
            p->loop.Post([p] { p->transport.reset(); });
          });
      s->transport->SetListener(s->peer.get());
      s->loop.Post([p = s.get()] { p->peer->Start(); });
      s->loop.Start();
      seats.push_back(std::move(s));
    }
    loop.Post([&] { peer.Start(); });
    loop.Run();
    for (auto& s : seats) {
      EXPECT_TRUE(s->loop.PostAndWait([p = s.get()] { p->transport.reset(); },
                                      absl::Minutes(1)));
      s->loop.Stop();
    }
    seats.clear();
    outcome.table = student.table;
    outcome.progress = peer.progress();
    return outcome;
  }

 private:
  static std::unique_ptr<Transport> Make(bool grpc, InprocNetwork& network,
                                         RealLoop* loop, PeerId self) {
    if (!grpc) return network.CreateEndpoint(self, loop);
    GrpcOptions options;
    options.self = self;
    options.run_id = "datalens";
    options.listen_address = self == kStudentId ? "127.0.0.1:0" : "";
    options.dial_from_both_ends = true;
    auto made = GrpcTransport::Create(loop, std::move(options));
    EXPECT_TRUE(made.ok()) << made.status();
    return std::move(made).value();
  }
};

TEST(DataLensPeersTest, OverThreadsAndOverGrpcItIsTheSame) {
  const Outcome plain = Plain(1);
  for (const bool grpc : {false, true}) {
    const Outcome outcome = Threads().Run(3, grpc);
    EXPECT_TRUE(outcome.student.ok()) << outcome.student;
    EXPECT_EQ(outcome.progress.step, plain.progress.step);
    EXPECT_EQ(outcome.table, plain.table) << "grpc: " << grpc;
  }
}

}  // namespace
}  // namespace gossamer
