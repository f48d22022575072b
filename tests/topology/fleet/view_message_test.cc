// A view comes back from its message as it was, an impossible one is refused,
// and the largest fits into an answer.

#include "topology/fleet/view_message.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "topology/fleet/protocol.h"
#include "topology/graph.h"

namespace gossamer {
namespace view_message_test {

View Sample() {
  View view;
  view.run_id = "run";
  view.generation = 3;
  view.epoch = 2;
  view.from_round = 17;
  view.members = {{{4}, "a:1"}, {{9}, "b:2"}};
  view.departures = {{{5}, 17, "c:3"}};
  view.schedule = {.graph = "edge-list",
                   .degree = 5,
                   .edge_probability = 0.25,
                   .edges = "0-1",
                   .sites = "a:4 b:9",
                   .variance_budget = 0.5};
  view.seed = ~uint64_t{0};
  view.gamma = 0.5;
  view.overlap_steps = 4;
  view.configuration_hash = 0xdeadbeefdeadbeef;
  view.resume_round = 16;
  return view;
}

TEST(ViewMessageTest, KeepsEverything) {
  const wire::ViewMessage message = ToMessage(Sample());
  const auto view = FromMessage(message);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(ToMessage(*view).SerializeAsString(), message.SerializeAsString());
  EXPECT_EQ(view->members, Sample().members);
  EXPECT_EQ(view->schedule, Sample().schedule);
  EXPECT_EQ(view->departures, Sample().departures);
  EXPECT_EQ(view->overlap_steps, 4);
}

TEST(ViewMessageTest, DevicesTravelByRankAndCostNothingWithoutAny) {
  EXPECT_EQ(ToMessage(Sample()).member_device_size(), 0);
  View view = Sample();
  view.members[1].device = "host/gpu";
  const wire::ViewMessage message = ToMessage(view);
  EXPECT_EQ(FromMessage(message)->members, view.members);
  wire::ViewMessage short_of_one = message;
  short_of_one.mutable_member_device()->RemoveLast();
  EXPECT_FALSE(FromMessage(short_of_one).ok());
  wire::ViewMessage too_long = message;
  too_long.set_member_device(0, std::string(kMaxDeviceBytes + 1, 'd'));
  EXPECT_FALSE(FromMessage(too_long).ok());
}

// Peers of older releases read a time-varying graph as a schedule
// beside the graph ring.
TEST(ViewMessageTest, ATimeVaryingGraphIsASchedule) {
  for (const char* const graph : {"permuted-ring", "random-matching",
                                  "one-peer-exponential", "locality-skewed"}) {
    View view = Sample();
    view.schedule.graph = graph;
    const wire::ViewMessage message = ToMessage(view);
    EXPECT_EQ(message.graph(), "ring");
    EXPECT_EQ(message.schedule(), graph);
    EXPECT_EQ(message.weights(), "metropolis");
    EXPECT_EQ(FromMessage(message)->schedule, view.schedule);
  }
  wire::ViewMessage older = ToMessage(Sample());
  older.set_schedule("random-matching");
  older.set_graph("complete");
  older.set_weights("uniform");
  EXPECT_EQ(FromMessage(older)->schedule.graph, "random-matching");
  older.set_schedule("fixed");
  older.set_graph("one-peer-exponential");
  EXPECT_EQ(FromMessage(older)->schedule.graph, "one-peer-exponential");
}

TEST(ViewMessageTest, RefusesWhatIsNoView) {
  using Spoil = void (*)(wire::ViewMessage&);
  for (const Spoil spoil : std::initializer_list<Spoil>{
           [](auto& m) { m.clear_member_id(); },
           [](auto& m) { m.add_member_id(10); },
           [](auto& m) { m.set_member_id(0, 0); },
           [](auto& m) { m.set_member_id(1, 4); },
           [](auto& m) { m.set_member_address(0, ""); },
           [](auto& m) { m.set_member_address(0, std::string(300, 'a')); },
           [](auto& m) { m.add_departing_id(6); },
           [](auto& m) { m.set_departing_id(0, 0); },
           [](auto& m) { m.set_departing_round(0, ~uint64_t{0}); },
           [](auto& m) { m.set_departing_address(0, ""); },
           [](auto& m) { m.set_departing_address(0, std::string(300, 'a')); },
           [](auto& m) { m.set_epoch(0); },
           [](auto& m) { m.set_weights("lazy"); },
           [](auto& m) { m.set_schedule("torus"); },
           [](auto& m) { m.set_graph("permuted-ring"); },
           [](auto& m) { m.set_from_round(~uint64_t{0}); },
           [](auto& m) { m.set_resume_round(~uint64_t{0}); },
           [](auto& m) { m.set_gamma(-1); },
           [](auto& m) {
             m.set_gamma(std::numeric_limits<double>::quiet_NaN());
           },
           [](auto& m) { m.set_degree(~uint32_t{0}); },
           [](auto& m) { m.set_variance_budget(HUGE_VAL); },
           [](auto& m) { m.set_overlap_steps(~uint32_t{0}); },
           [](auto& m) {
             for (int i = 0; i < kMaxPeers; ++i) {
               m.add_member_id(100 + i);
               m.add_member_address("c:3");
             }
           }}) {
    wire::ViewMessage message = ToMessage(Sample());
    spoil(message);
    EXPECT_EQ(FromMessage(message).status().code(), absl::StatusCode::kDataLoss)
        << message.ShortDebugString();
  }
}

// The longest view of so many peers is within what its peers accept.
TEST(ViewMessageTest, FitsIntoWhatIsTakenOfAFleet) {
  for (const int peers : {1, 8, 64, 128, 256}) {
    View view = Sample();
    view.members.clear();
    view.departures.clear();
    std::string edges;
    for (int i = 0; i < peers; ++i) {
      const PeerId id{~uint64_t{0} - static_cast<uint64_t>(i)};
      const std::string address(kMaxAddressBytes, 'a');
      view.members.push_back({id, address});
      view.departures.push_back(
          {.id = {id.value - 5000}, .round = kMaxRound, .address = address});
      for (int j = 0; j < i; ++j)
        edges += std::to_string(j) + "-" + std::to_string(i) + " ";
    }
    view.schedule.edges = edges;
    EXPECT_LE(ToMessage(view).ByteSizeLong(), MaxAnswerBytes(peers)) << peers;
  }
}

}  // namespace view_message_test
}  // namespace gossamer
