// Bytes of neighbours before a transport has made frames of them.

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "algorithms/base/crc32c.h"
#include "algorithms/base/little_endian.h"
#include "runtime/base/address.h"
#include "runtime/lab/packet.h"
#include "runtime/transport/grpc/chunking.h"
#include "runtime/transport/grpc/hello.h"
#include "runtime/transport/grpc/lanes.h"
#include "tests/fuzz/fuzz.h"

namespace gossamer::fuzz {
namespace {

constexpr size_t kMaxBody = 1 << 16;

void HelloAsItIs(Bytes bytes) {
  const auto hello = DecodeHello(bytes);
  if (!hello.ok()) return;
  (void)CheckHello(*hello, PeerId{1}, "run");
  Require(EncodeHello(*hello) == Copy(bytes), "a hello has one encoding");
}

// Reads a hello as it is, and again with the right checksum to reach the code
// behind it.
void Hello(Bytes input) {
  HelloAsItIs(input);
  if (input.size() < 4) return;
  std::vector<std::byte> mended = Copy(input);
  const size_t at = mended.size() - 4;
  Put<uint32_t>(mended, at, Crc32c(input.first(at)));
  HelloAsItIs(mended);
}

// A sequence of messages: a byte (odd: mend the checksum), two of length, the
// message.
void Chunks(Bytes input) {
  Input in(input);
  FrameAssembler assembler(kMaxBody);
  while (!in.empty()) {
    const bool mend = in.Byte() % 2 == 1;
    std::vector<std::byte> message = Copy(in.TakePiece());
    if (mend && message.size() >= kChunkHeaderBytes) {
      const Bytes all(message);
      const uint32_t crc =
          ExtendCrc32c(Crc32c(all.first(8)), all.subspan(kChunkHeaderBytes));
      Put<uint32_t>(message, 8, crc);
    }
    const size_t cut = message.size() / 2;
    const std::array<Bytes, 2> pieces = {Bytes(message).first(cut),
                                         Bytes(message).subspan(cut)};
    std::optional<ReceivedFrame> frame;
    const absl::Status added = assembler.Add(pieces, &frame);
    Require(assembler.filled() <= kMaxBody + kMaxHeadBytes,
            "one frame within the limits is all that is held");
    if (!added.ok()) return;
    if (!frame) continue;
    Require(frame->frame.head.size() <= kMaxHeadBytes &&
                frame->frame.body.size() <= kMaxBody,
            "no frame over the limits");
  }
}

// A sequence of parts: a byte for lane and channel, a byte for the number of
// parts, two of length, the body; every seventh has a head.  The target counts
// the waiting parts again by itself.
void Lanes(Bytes input) {
  constexpr size_t kMax = 1 << 14;
  Input in(input);
  const auto budget = std::make_shared<ByteBudget>(kMax);
  LaneJoiner joiner(kMaxBody, budget);
  std::vector<ReceivedFrame> complete;
  size_t taken = 0;
  size_t given = 0;
  size_t waiting = 0;
  std::deque<size_t> first_lane;  // the number of parts of each
  while (!in.empty()) {
    const uint8_t which = in.Byte();
    ReceivedFrame part;
    part.channel = static_cast<Channel>(which / 8 % 5);
    part.parts = in.Byte() % (kMaxLanes + 2);
    part.frame.body = SharedBytes::FromVector(Copy(in.TakePiece()));
    if (which % 7 == 0) part.frame.head = part.frame.body;
    taken += part.frame.head.size() + part.frame.body.size();
    ++waiting;
    if (which % kMaxLanes == 0) first_lane.push_back(part.parts);
    complete.clear();
    const absl::Status added =
        joiner.Add(which % kMaxLanes, std::move(part), &complete);
    Require(budget->used() <= kMax, "what waits is within the budget");
    for (const ReceivedFrame& whole : complete) {
      given += whole.frame.head.size() + whole.frame.body.size();
      Require(whole.parts == 0, "what comes out is whole");
      waiting -= std::max<size_t>(1, first_lane.front());
      first_lane.pop_front();
    }
    if (!added.ok()) return;
    Require(taken + waiting * kHeldOverhead == given + budget->used(),
            "no byte or object is lost or made");
  }
}

// A packet of a lab's host.
void Packet(Bytes input) {
  const std::span<const uint8_t> frame(
      reinterpret_cast<const uint8_t*>(input.data()), input.size());
  const auto info = InspectFrame(frame);
  if (!info) return;
  Require(info->wire_bytes + kFrameHeader >= input.size(),
          "what is split gets headers");
}

void Address(Bytes input) { (void)IsLoopback(AbslText(input)); }

}  // namespace

std::span<const Target> TransportTargets() {
  static constexpr Target kTargets[] = {
      {"transport-hello", Hello},
      {"chunks", Chunks, kMaxBody + kMaxHeadBytes},
      {"lanes", Lanes},
      {"packet", Packet},
      {"address", Address}};
  return kTargets;
}

}  // namespace gossamer::fuzz
