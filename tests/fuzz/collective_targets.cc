// Bytes that members of an all-reduce send: heads, and messages of any size at
// any time.

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/base/crc32c.h"
#include "algorithms/base/little_endian.h"
#include "algorithms/collective/all_reduce.h"
#include "algorithms/collective/all_reduce_schedule.h"
#include "algorithms/collective/collective_message.h"
#include "tests/fuzz/fuzz.h"

namespace gossamer::fuzz {
namespace {

// The size of an all-reduce's body, which the target never makes.
constexpr size_t kBodyBytes = 1000;
constexpr int kRanks = 5;
constexpr size_t kFloats = 37;

void HeadOf(Bytes bytes, size_t body) {
  const auto head = DecodeCollectiveHead(bytes, body);
  if (!head.ok()) return;
  Require(head->body_bytes == body, "a head belongs to its body");
  const auto again =
      DecodeCollectiveHead(EncodeCollectiveHead(*head), head->body_bytes);
  Require(again.ok() && *again == *head, "a head says the same once more");
}

// Reads a head beside a body of a fixed size, and beside one of the size that
// it claims.
void CollectiveMessage(Bytes input) {
  HeadOf(input, kBodyBytes);
  constexpr size_t kBodyAt = 20;
  if (input.size() >= kBodyAt + 8) HeadOf(input, Get<uint64_t>(input, kBodyAt));
  if (input.size() < 4) return;
  std::vector<std::byte> mended = Copy(input);
  const size_t at = mended.size() - 4;
  Put<uint32_t>(mended, at, Crc32c(input.first(at)));
  HeadOf(mended, kBodyBytes);
}

// One rank of an all-reduce and any messages of the others: the schedule, the
// rank, then the steps.
void AllReduceMessages(Bytes input) {
  Input in(input);
  const auto& schedules = AllReduceSchedules();
  const auto& schedule = schedules[in.Byte() % schedules.size()];
  const int self = in.Byte() % kRanks;
  auto op = AllReduce::Create(schedule.name, self, kRanks,
                              AllReduceForm{.floats = kFloats});
  Require(op.ok(), "an all-reduce can be of five");
  const auto steps = schedule.steps(self, kRanks, kFloats);
  std::vector<float> x(kFloats, 1.0f);
  size_t sent = 0;
  while (!in.empty()) {
    const uint8_t kind = in.Byte();
    if (kind % 4 == 0) {
      if (!op->started()) op->Start(x);
      continue;
    }
    // Most messages are awaited ones; any other is possible.
    const auto awaited = op->awaited();
    int rank = awaited ? awaited->rank : 0;
    uint32_t step = awaited ? awaited->step : 0;
    if (kind % 4 == 1) rank = in.Byte() % (kRanks + 1);
    if (kind % 4 == 2) step = in.Byte();
    std::vector<std::byte> body = Copy(in.TakePiece());
    if (kind < 200 && step < steps.size()) {
      body.resize(steps[step].receive.size * sizeof(float));
    }
    const bool taken =
        op->OnMessage(rank, step, SharedBytes::FromVector(std::move(body)))
            .ok();
    Require(taken || op->awaited() == awaited,
            "what is refused changes nothing");
    sent += op->TakeOutgoing().size();
    Require(sent <= steps.size() * kRanks, "what goes out is bounded");
  }
}

}  // namespace

std::span<const Target> CollectiveTargets() {
  static constexpr Target kTargets[] = {{"collective", CollectiveMessage},
                                        {"all-reduce", AllReduceMessages}};
  return kTargets;
}

}  // namespace gossamer::fuzz
