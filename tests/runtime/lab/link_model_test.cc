// The model of a link: delay, rate, queue, jitter, loss and outages, in
// simulated time.

#include "runtime/lab/link_model.h"

#include <gtest/gtest.h>

#include <vector>

namespace gossamer {
namespace {

using Fate = LinkModel::Fate;

constexpr Nanos kMilli = 1'000'000;
constexpr uint64_t k100Mbit = 12'500'000;

LinkModel Make(LinkSpec spec) { return LinkModel(std::move(spec), RngKey(1)); }

TEST(LinkModel, DelaysOnly) {
  LinkModel link = Make({.delay = 50 * kMilli});
  const auto d = link.Send(7, 1500);
  EXPECT_EQ(d.fate, Fate::kDelivered);
  EXPECT_EQ(d.when, 7 + 50 * kMilli);
  // Without a rate no packet waits.
  EXPECT_EQ(link.Send(7, 1'000'000).when, 7 + 50 * kMilli);
  EXPECT_EQ(link.Backlog(7), 0u);
}

TEST(LinkModel, SerializesAtItsRate) {
  LinkModel link = Make({.delay = kMilli, .bytes_per_second = k100Mbit});
  // 1250 bytes at 100 Mbit/s are 100 us.
  EXPECT_EQ(link.Send(0, 1250).when, kMilli + 100'000);
  EXPECT_EQ(link.Send(0, 1250).when, kMilli + 200'000);
  EXPECT_EQ(link.Backlog(0), 2500u);
  EXPECT_EQ(link.Backlog(150'000), 625u);
  EXPECT_EQ(link.Backlog(200'000), 0u);
  // An idle wire starts anew.
  EXPECT_EQ(link.Send(kMilli, 1250).when, 2 * kMilli + 100'000);
}

TEST(LinkModel, KeepsOddRatesExactlyAndIsNeverEarly) {
  constexpr uint64_t kRate = 999'983;  // a prime
  constexpr uint64_t kBytes = 61;
  LinkModel link = Make({.bytes_per_second = kRate, .queue_bytes = 1 << 30});
  for (uint64_t i = 1; i <= 100'000; ++i) {
    const Nanos when = link.Send(0, kBytes).when;
    const unsigned __int128 exact =
        static_cast<unsigned __int128>(i) * kBytes * kNanosPerSecond;
    ASSERT_GE(static_cast<unsigned __int128>(when) * kRate, exact) << i;
    ASSERT_LT(static_cast<unsigned __int128>(when - 1) * kRate, exact) << i;
  }
}

TEST(LinkModel, DropsWhatItsQueueCannotHold) {
  LinkModel link =
      Make({.bytes_per_second = k100Mbit, .queue_bytes = 8'000'000});
  int taken = 0;
  while (link.Send(0, 1000).fate == Fate::kDelivered) ++taken;
  EXPECT_EQ(taken, 8000);
  EXPECT_EQ(link.Send(0, 1000).fate, Fate::kQueueFull);
  // 80 us later there is room for one more.
  EXPECT_EQ(link.Send(80'000, 1000).fate, Fate::kDelivered);
  EXPECT_EQ(link.Send(80'000, 1000).fate, Fate::kQueueFull);
}

TEST(LinkModel, AnIdleWireTakesAnyPacket) {
  LinkModel link = Make({.bytes_per_second = 1000, .queue_bytes = 100});
  EXPECT_EQ(link.Send(0, 1500).fate, Fate::kDelivered);
  EXPECT_EQ(link.Send(0, 1500).fate, Fate::kQueueFull);
}

TEST(LinkModel, JitterKeepsOrderAndBounds) {
  LinkModel link = Make({.delay = 10 * kMilli, .jitter = 5 * kMilli});
  Nanos last = 0, least = 1000 * kMilli, most = 0;
  for (int i = 0; i < 2000; ++i) {
    // Far apart, so that order has no effect.
    const Nanos now = i * 10 * kMilli;
    const Nanos took = link.Send(now, 100).when - now;
    least = std::min(least, took);
    most = std::max(most, took);
  }
  EXPECT_GE(least, 10 * kMilli);
  EXPECT_LT(least, 10 * kMilli + kMilli / 10);
  EXPECT_LE(most, 15 * kMilli);
  EXPECT_GT(most, 15 * kMilli - kMilli / 10);
  LinkModel dense = Make({.delay = 10 * kMilli, .jitter = 5 * kMilli});
  for (int i = 0; i < 2000; ++i) {
    const Nanos when = dense.Send(i * 1000, 100).when;
    ASSERT_GE(when, last);
    last = when;
  }
}

TEST(LinkModel, LosesItsShareTheSameWayEveryTime) {
  std::vector<int> lost[2];
  for (auto& mine : lost) {
    LinkModel link = Make({.loss = 0.02});
    for (int i = 0; i < 100'000; ++i) {
      if (link.Send(i, 100).fate == Fate::kLost) mine.push_back(i);
    }
  }
  EXPECT_EQ(lost[0], lost[1]);
  // Five standard deviations around 2000.
  EXPECT_NEAR(static_cast<double>(lost[0].size()), 2000, 5 * 44.3);
  LinkModel none = Make({.loss = 1});
  EXPECT_EQ(none.Send(0, 1).fate, Fate::kLost);
}

TEST(LinkModel, LosesInBursts) {
  constexpr int kPackets = 100'000;
  LinkModel link = Make({.loss = 0.05, .loss_burst = 8});
  int lost = 0, runs = 0;
  bool losing = false;
  for (int i = 0; i < kPackets; ++i) {
    const bool now = link.Send(i, 100).fate == Fate::kLost;
    lost += now;
    runs += now && !losing;
    losing = now;
  }
  // The mean of a thousand runs of eight, and their share of all packets.
  EXPECT_NEAR(static_cast<double>(lost) / runs, 8, 1);
  EXPECT_NEAR(static_cast<double>(lost) / kPackets, 0.05, 0.008);
}

TEST(LinkModel, SomePacketsAreOvertaken) {
  LinkModel link = Make({.delay = kMilli,
                         .jitter = kMilli / 10,
                         .reorder = 0.1,
                         .reorder_delay = 3 * kMilli});
  int late = 0;
  Nanos last = 0;
  for (int i = 0; i < 1000; ++i) {
    const Nanos now = i * kMilli / 10;
    const Nanos when = link.Send(now, 100).when;
    if (when >= now + 4 * kMilli) {
      ++late;
    } else {
      // The others keep their order.
      EXPECT_GE(when, last);
      last = when;
    }
  }
  // Five standard deviations around 100.
  EXPECT_NEAR(late, 100, 5 * 9.5);
}

TEST(LinkModel, ALostPacketStillOccupiesTheWire) {
  LinkModel link = Make({.bytes_per_second = k100Mbit, .loss = 1});
  link.Send(0, 1250);
  EXPECT_EQ(link.Backlog(0), 1250u);
}

TEST(LinkModel, IsDownInItsOutages) {
  LinkModel link = Make({.outages = {{10, 20, 0}, {40, 50, 0}}});
  const auto fate = [&link](Nanos now) { return link.Send(now, 1).fate; };
  EXPECT_EQ(fate(9), Fate::kDelivered);
  EXPECT_EQ(fate(10), Fate::kOutage);
  EXPECT_EQ(fate(19), Fate::kOutage);
  EXPECT_EQ(fate(20), Fate::kDelivered);
  EXPECT_EQ(fate(45), Fate::kOutage);
  EXPECT_EQ(fate(50), Fate::kDelivered);
}

TEST(LinkModel, OutagesComeAgain) {
  LinkModel link = Make({.outages = {{.from = 10, .to = 12, .every = 100}}});
  for (Nanos start : {10, 110, 99'910}) {
    EXPECT_EQ(link.Send(start - 1, 1).fate, Fate::kDelivered);
    EXPECT_EQ(link.Send(start, 1).fate, Fate::kOutage);
    EXPECT_EQ(link.Send(start + 1, 1).fate, Fate::kOutage);
    EXPECT_EQ(link.Send(start + 2, 1).fate, Fate::kDelivered);
  }
}

TEST(LinkModel, AnOutageHitsPacketsWhenTheyReachTheWire) {
  // The packet is sent before the outage, but is on the wire only within it.
  LinkModel link =
      Make({.bytes_per_second = 1'000'000'000, .outages = {{50, 60, 0}}});
  EXPECT_EQ(link.Send(0, 55).fate, Fate::kOutage);
  EXPECT_EQ(link.Send(0, 10).fate, Fate::kDelivered);
}

TEST(LinkModel, TimeDoesNotRunBackwards) {
  LinkModel link = Make({.delay = 5});
  EXPECT_EQ(link.Send(100, 1).when, 105);
  EXPECT_EQ(link.Send(90, 1).when, 105);
}

}  // namespace
}  // namespace gossamer
