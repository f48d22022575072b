// Frames of neighbours: headers, payloads, and whole conversations.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/base/crc32c.h"
#include "algorithms/base/little_endian.h"
#include "algorithms/base/rng.h"
#include "algorithms/edge/edge.h"
#include "algorithms/edge/frame.h"
#include "algorithms/edge/saved_edge.h"
#include "tests/algorithms/edge/edge_pair.h"
#include "tests/fuzz/fuzz.h"

namespace gossamer::fuzz {
namespace {

constexpr std::array kCodecs = {"dense-f32",
                                "dense-bf16",
                                "innov-int8",
                                "innov-int4",
                                "innov-lm2",
                                "innov-sign",
                                "innov-topk:k=64",
                                "auto",
                                "innov-topk:k=8",
                                "dyna",
                                "power-gossip",
                                "innov-int4:least=16",
                                "innov-int4:fragments=4",
                                "diff-int8"};

// The layout of the pair tests, with a matrix that is quantized only with
// `least`.
const ParameterLayout& Layout() {
  static const auto& layout = *[] {
    std::vector<Segment> segments = PairLayout().segments();
    segments.push_back({.name = "small",
                        .player = Player::kDiscriminator,
                        .shape = {5, 7},
                        .extent = {}});
    return new ParameterLayout(std::move(segments));
  }();
  return layout;
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();

EdgeOptions Options(float largest = kInfinity) {
  EdgeOptions options = PairOptions(1);
  options.limits.largest = largest;
  options.layout = Layout().fingerprint();
  return options;
}

// The codecs above whose names this version has.
const std::vector<std::shared_ptr<const Codec>>& Codecs() {
  static const auto* const codecs = [] {
    auto* all = new std::vector<std::shared_ptr<const Codec>>;
    for (const char* name : kCodecs) {
      auto codec = Codec::Create(name, Layout());
      if (codec.ok()) all->push_back(*std::move(codec));
    }
    return all;
  }();
  return *codecs;
}

bool AllFinite(std::span<const float> values) {
  for (const float v : values) {
    if (!std::isfinite(v)) return false;
  }
  return true;
}

void FrameAsItIs(Bytes bytes) {
  const auto header = DecodeHeader(bytes);
  if (!header.ok()) return;
  const auto again = DecodeHeader(EncodeHeader(*header));
  Require(again.ok() && again->kind == header->kind &&
              again->epoch == header->epoch && again->to == header->to &&
              again->run_id == header->run_id,
          "a header says the same once more");
}

// Reads a frame as it is, and again with the right checksums to reach the code
// behind them.
void Frame(Bytes input) {
  FrameAsItIs(input);
  if (input.size() < kEdgeHeaderBytes) return;
  std::vector<std::byte> mended = Copy(input);
  Put<uint32_t>(mended, 60, Crc32c(input.first(60)));
  if (mended.size() >= kEdgeHeaderBytes + 6) {
    const size_t at = mended.size() - 4;
    Put<uint32_t>(
        mended, at,
        Crc32c(input.subspan(kEdgeHeaderBytes, at - kEdgeHeaderBytes)));
  }
  FrameAsItIs(mended);
}

// The largest value of a correction; neighbours leave out one beyond it
// (`largest`).
constexpr float kLargest = 1;

// The limit is the same for every codec.  An error in a payload's bound could
// make the two ends of an edge leave out different corrections.
void RequireBound(const Codec& codec, const Encoded& payload) {
  if (codec.memory() == EdgeMemory::kShared) return;
  const float bound = codec.MagnitudeBound(payload, kLargest);
  std::vector<float> values(codec.size()), unused(values);
  codec.Complete(nullptr, &payload, 0, values, unused);
  Require(std::ranges::all_of(
              values, [bound](float v) { return std::abs(v) <= bound; }),
          "no value is beyond its payload's bound");
}

// A payload for every codec: which, its format, then its bytes, brought to the
// size that the format has.
void Payloads(Bytes input) {
  Input in(input);
  const auto& codec = *Codecs()[in.Byte() % Codecs().size()];
  const auto format = static_cast<WireFormat>(in.Byte());
  std::vector<std::byte> bytes = Copy(in.Rest());
  bytes.resize(codec.EncodedSize(format));
  const Encoded theirs{format, bytes};
  if (!codec.Validate(theirs).ok()) return;
  RequireBound(codec, theirs);
  std::vector<float> x(Layout().size(), 0.5f);
  std::vector<float> difference;
  if (codec.needs_replica() || codec.memory() == EdgeMemory::kShared) {
    difference = std::vector<float>(codec.memory_size());
  }
  for (int i = 0; i < 3; ++i) {
    codec.Complete(nullptr, &theirs, 1.0f, difference, x);
    codec.Complete(&theirs, &theirs, 1.0f, difference, x);
  }
  Require(AllFinite(difference) && AllFinite(x),
          "what is let through keeps the difference finite");
}

// The payload of players that have codecs of their own: its round, then bytes.
void JointPayloads(Bytes input) {
  static const auto& codec = *new std::shared_ptr<const Codec>(
      Codec::Create("auto; discriminator=innov-int8 every 2", Layout())
          .value());
  Input in(input);
  const uint64_t key = MakeExchangeId(in.Byte());
  const std::vector<std::byte> bytes = Copy(in.Rest());
  const Encoded whole{WireFormat::kJoint, bytes, key};
  if (!codec->Validate(whole).ok()) return;
  const PartPayloads payloads = SplitPayload(*codec, whole).value();
  const DueParts due = codec->Due(RoundOf(key));
  Require(payloads.size() == due.size(), "every part that is due has its own");
  for (size_t i = 0; i < due.size(); ++i) {
    RequireBound(*codec->part(due[i]).codec, payloads[i]);
  }
}

// One end of an edge and any frames of the other end: a step is a call of the
// round loop or a frame of the neighbour.
class Conversation {
 public:
  explicit Conversation(Input& in) : Conversation(in, in.Byte()) {}

  void Step() {
    switch (in_.Byte() % 8) {
      case 0:
        edge_.Emit(MakeExchangeId(++round_), 0.25f, true);
        break;
      case 1:
        edge_.Complete(MakeExchangeId(round_));
        break;
      case 2:
        edge_.Flush();
        (void)edge_.TakeFrames();
        break;
      case 3:
        edge_.ConnectionDown(connection_);
        edge_.ConnectionUp(++connection_);
        break;
      default:
        Hear();
    }
    Require(AllFinite(x_), "parameters stay finite whatever a neighbour says");
    if (largest_ == kLargest) {
      const float moved = static_cast<float>(edge_.corrections()) * kLargest;
      Require(std::ranges::all_of(
                  x_, [moved](float v) { return std::abs(v) <= 1 + moved; }),
              "no correction is beyond the largest");
    }
    Require(edge_.state().Waiting() <= 2 * kMaxEdgeWindow,
            "what waits for its round is bounded");
  }

 private:
  // Half of the conversations have a largest parameter.
  Conversation(Input& in, uint8_t kind)
      : in_(in),
        codec_(Codecs()[kind % 128 % Codecs().size()]),
        largest_(kind < 128 ? kInfinity : kLargest),
        x_(Layout().size(), 0.25f),
        edge_(Options(largest_), codec_, x_,
              std::make_shared<SnapshotCache>()) {
    edge_.ConnectionUp(++connection_);
  }

  void Hear() {
    EdgeHeader h;
    h.kind = static_cast<FrameKind>(1 + in_.Byte() % 3);
    h.format = static_cast<WireFormat>(in_.Byte() % 64);
    // Mostly near what is expected; anything is possible.
    h.epoch = Near(MakeEpoch(1000, 17));
    h.peer_epoch = Near(edge_.state().epoch);
    h.prev = Near(edge_.received());
    h.to = Near(MakeExchangeId(round_ + 1));
    h.ack = Near(edge_.decided());
    h.basis = Near(0);
    h.c = std::bit_cast<float>(static_cast<uint32_t>(Near(0x3e800000)));
    h.requested_format = in_.Byte() % 16;
    h.layout = FoldFingerprint(Layout().fingerprint());
    h.run_id = "run";
    h.replica = codec_->needs_replica();
    std::vector<std::byte> body;
    if (h.kind == FrameKind::kPayload) {
      body = Copy(in_.TakePiece());
      body.resize(codec_->EncodedSize(h.format));
    }
    h.payload_bytes = static_cast<uint32_t>(body.size());
    const absl::Status heard = edge_.OnFrame(
        connection_, EncodeHeader(h), SharedBytes::FromVector(std::move(body)));
    if (heard.ok()) return;
    edge_.ConnectionDown(connection_);
    edge_.ConnectionUp(++connection_);
  }
  uint64_t Near(uint64_t expected) {
    const uint8_t how = in_.Byte();
    if (how < 200) return expected;
    if (how < 250) return expected + how - 225;
    return in_.Number();
  }

  Input& in_;
  const std::shared_ptr<const Codec> codec_;
  const float largest_;
  std::vector<float> x_;
  Edge edge_;
  uint64_t connection_ = 0;
  uint64_t round_ = 0;
};

void EdgeConversation(Bytes input) {
  Input in(input);
  Conversation conversation(in);
  while (in.AnotherStep()) conversation.Step();
}

void SavedEdgeRecord(Bytes input) {
  auto saved = DecodeSavedEdge(input);
  if (!saved.ok()) return;
  std::vector<float> x(Layout().size());
  for (const auto& codec : Codecs()) {
    saved->codec_state.codec = codec->name();
    (void)Edge::Resume(Options(), codec, x, std::make_shared<SnapshotCache>(),
                       *saved);
  }
}

void CodecName(Bytes input) {
  const auto codec = Codec::Create(Text(input), Layout());
  if (!codec.ok()) return;
  Require((*codec)->EncodedSize((*codec)->format()) > 0,
          "a codec knows the size of its own format");
}

}  // namespace

std::span<const Target> EdgeTargets() {
  static constexpr Target kTargets[] = {{"frame", Frame},
                                        {"payload", Payloads},
                                        {"joint-payload", JointPayloads},
                                        {"edge", EdgeConversation},
                                        {"saved-edge", SavedEdgeRecord},
                                        {"codec-name", CodecName}};
  return kTargets;
}

}  // namespace gossamer::fuzz
