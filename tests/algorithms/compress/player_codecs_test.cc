// Codecs of each player: the text, which parts are due when, joint payloads and
// what is refused of them.

#include "algorithms/compress/player_codecs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "algorithms/base/ids.h"
#include "algorithms/compress/joint_payload.h"
#include "algorithms/compress/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/algorithms/compress/codec_testing.h"
#include "tests/algorithms/golden_file.h"

namespace gossamer {
namespace player_codecs_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PlayerCodecsTest, ATextNamesPlayersAndRounds) {
  for (const char* plain :
       {"innov-int4", "innov-topk:k=64,least=512", "auto"}) {
    EXPECT_FALSE(NamesPlayers(plain)) << plain;
    const auto read = ReadPlayerCodecs(plain).value();
    ASSERT_EQ(read.size(), 1u);
    EXPECT_EQ(read[0].player, "");
    EXPECT_EQ(read[0].codec, plain);
    EXPECT_EQ(read[0].every, 1);
  }
  const std::string text =
      "innov-int4 ;G=innov-topk:k=32 every 4; my player = dense-f32 every 1000";
  EXPECT_TRUE(NamesPlayers(text));
  EXPECT_TRUE(NamesPlayers("innov-int4 every 2"));
  EXPECT_TRUE(NamesPlayers("G=innov-int4"));
  const auto read = ReadPlayerCodecs(text).value();
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[0].codec, "innov-int4");
  EXPECT_EQ(read[1].player, "G");
  EXPECT_EQ(read[1].codec, "innov-topk:k=32");
  EXPECT_EQ(read[1].every, 4);
  EXPECT_EQ(read[2].player, "my player");
  EXPECT_EQ(read[2].every, 1000);
}

TEST(PlayerCodecsTest, AWrongTextIsRefusedWithTheReason) {
  const auto refused = [](const char* text, const char* why) {
    const auto made = Codec::Create(text, Layout());
    ASSERT_FALSE(made.ok()) << text;
    EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(made.status().message(), HasSubstr(why)) << text;
  };
  refused("innov-int4;", "is no list of CODEC or PLAYER=CODEC");
  refused("generator=", "is no list of CODEC or PLAYER=CODEC");
  refused("=innov-int4", "is no list of CODEC or PLAYER=CODEC");
  refused("a=b=innov-int4", "is no list of CODEC or PLAYER=CODEC");
  refused("innov-int4 every 2 every 3", "is no list of CODEC or PLAYER=CODEC");
  refused("innov-int4 every 0", "is not a number of rounds from 1 to 1000");
  refused("innov-int4 every 1001", "is not a number of rounds");
  refused("innov-int4 every two", "\"every two\" is not a number of rounds");
  refused("innov-int4; innov-int8", "two codecs of all players");
  refused("generator=auto; generator=auto", "two codecs of player generator");
  refused("innov-int4; generater=innov-int8",
          "there is no player \"generater\"");
  refused("generator=innov-int8", "player \"discriminator\" has no codec");
  refused("innov-int4; generator=innov-in8", "unknown codec \"innov-in8\"");
  refused("innov-int4; generator=power-gossip", "is for all players together");
  EXPECT_THAT(
      CheckPlayers(*ReadPlayerCodecs("x=auto"), {"x", "a:b"}).message(),
      HasSubstr("add a codec without a player's name for all others (a name "
                "with ; = :"));
  // Players are known with the game, the rest of a text at once.
  EXPECT_TRUE(Codec::Create("student=innov-int8", {}).ok());
  EXPECT_FALSE(Codec::Create("student=innov-in8", {}).ok());
}

TEST(PlayerCodecsTest, EachPlayerIsDueOncePerPeriod) {
  const auto codec =
      Make("innov-int4:fragments=3; discriminator=innov-int8 every 4");
  EXPECT_TRUE(codec->joint());
  ASSERT_EQ(codec->parts(), 4);
  const size_t generator = Layout().extent(Player::kGenerator).size;
  EXPECT_EQ(codec->part(0).extent.offset, 0u);
  EXPECT_EQ(codec->part(3).extent, Layout().extent(Player::kDiscriminator));
  EXPECT_EQ(codec->part(2).extent.offset + codec->part(2).extent.size,
            generator);
  std::map<int, int> times;
  for (uint64_t cycle = 0; cycle < 30; ++cycle) {
    int discriminator = 0;
    for (uint64_t round = 4 * cycle; round < 4 * cycle + 4; ++round) {
      const DueParts due = codec->Due(round);
      for (const int part : due) ++times[part];
      discriminator += due.back() == 3;
      EXPECT_LT(due.front(), 3) << "a fragment of the generator every round";
    }
    EXPECT_EQ(discriminator, 1);
  }
  EXPECT_EQ(times[0] + times[1] + times[2], 120);
  EXPECT_EQ(times[0], 40);
  EXPECT_EQ(times[3], 30);

  EXPECT_EQ(codec->idle_rounds(), 0);

  // All players at once: rounds without an exchange, and with all of it.
  const auto seldom = Make("innov-int4:fragments=2 every 3");
  std::map<int, int> fragments;
  for (uint64_t round = 0; round < 60; ++round) {
    const DueParts due = seldom->Due(round);
    if (due.empty()) continue;
    ASSERT_EQ(due.size(), 2u);
    for (const int part : due) ++fragments[part];
  }
  for (int part = 0; part < 4; ++part) EXPECT_EQ(fragments[part], 10) << part;
  int idle = 0, longest = 0;
  for (uint64_t round = 0; round < 600; ++round) {
    idle = seldom->Due(round).empty() ? idle + 1 : 0;
    longest = std::max(longest, idle);
  }
  EXPECT_EQ(seldom->idle_rounds(), longest);
}

// Made by exact arithmetic, so that no library's rounding is in a golden file.
std::vector<float> Values(size_t n) {
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) {
    const auto integer = static_cast<int>(RngKey(7).Below(20001, i)) - 10000;
    x[i] = std::ldexp(static_cast<float>(integer), -12);
  }
  return x;
}

struct JointPayload {
  explicit JointPayload(const Codec& codec, PartFormats formats, uint64_t round)
      : key(MakeExchangeId(round)) {
    const std::vector<float> x = Values(codec.size());
    std::vector<float> replica(codec.size());
    const DueParts due = codec.Due(round);
    bytes.resize(PayloadSize(codec, due, formats));
    EncodeParts(codec, due, formats, x, replica, key, bytes);
  }
  Encoded encoded() const { return {WireFormat::kJoint, bytes, key}; }
  uint64_t key;
  std::vector<std::byte> bytes;
};

TEST(JointPayloadTest, AJointPayloadHoldsThePayloadsOfItsParts) {
  const auto codec = Make("innov-int4; discriminator=innov-sign");
  const JointPayload joint(*codec, {WireFormat::kInt4, WireFormat::kInt8}, 1);
  EXPECT_TRUE(codec->Validate(joint.encoded()).ok());
  const auto parts = SplitPayload(*codec, joint.encoded()).value();
  ASSERT_EQ(parts.size(), 2u);
  const std::vector<float> x = Values(codec->size());
  for (size_t i = 0; i < 2; ++i) {
    const CodecPart part = codec->part(static_cast<int>(i));
    const auto [offset, size] = part.extent;
    std::vector<float> replica(size);
    const Message alone(*part.codec, parts[i].format,
                        std::span(x).subspan(offset, size), replica);
    EXPECT_TRUE(std::ranges::equal(alone.encoded().bytes, parts[i].bytes));
  }
  // The γ of a part is its own: 1 of int4, 0.6 of signs.
  EXPECT_EQ(codec->gamma(), 1);
  EXPECT_EQ(codec->part(0).gamma, 1);
  EXPECT_EQ(codec->part(1).gamma, 0.6f);
  // A codec for all has its own γ, with rounds between exchanges or without.
  const auto seldom = Make("innov-topk every 4");
  EXPECT_EQ(seldom->gamma(), Make("innov-topk")->gamma());
  EXPECT_EQ(seldom->largest_gamma(), Make("innov-topk")->largest_gamma());
  EXPECT_EQ(seldom->part(1).gamma, 1);
  // No player's γ exceeds what it bears.
  const auto mixed = Make("innov-int4; discriminator=innov-topk");
  EXPECT_EQ(mixed->largest_gamma(), 1);
  EXPECT_EQ(mixed->part(1).gamma, Make("innov-topk")->gamma());
}

TEST(JointPayloadTest, AJointPayloadHasTheBytesOfTheGoldenFile) {
  const auto codec = Make("innov-int4; discriminator=innov-sign");
  const JointPayload joint(*codec, {WireFormat::kInt4, WireFormat::kInt8}, 1);
  const std::string kept = GoldenBytes("codec_joint", joint.bytes);
  ASSERT_EQ(kept.size(), joint.bytes.size());
  EXPECT_EQ(std::memcmp(kept.data(), joint.bytes.data(), kept.size()), 0);
}

TEST(JointPayloadTest, APayloadThatNoEncoderWritesIsRefused) {
  const auto codec = Make("innov-int4; discriminator=innov-int8 every 2");
  uint64_t both = 1;
  while (codec->Due(both).size() < 2) ++both;
  uint64_t one = 1;
  while (codec->Due(one).size() != 1) ++one;
  const JointPayload sound(*codec, {WireFormat::kInt4, WireFormat::kInt8},
                           both);
  const auto why = [&](const JointPayload& payload) {
    return std::string(codec->Validate(payload.encoded()).message());
  };
  const auto changed = [&](size_t at, int to) {
    JointPayload payload = sound;
    payload.bytes[at] = static_cast<std::byte>(to);
    return why(payload);
  };
  EXPECT_EQ(why(sound), "");
  EXPECT_THAT(changed(0, 0), HasSubstr("unknown format"));
  EXPECT_THAT(changed(1, 200), HasSubstr("unknown format"));
  EXPECT_THAT(changed(0, 15), HasSubstr("unknown format"));
  EXPECT_THAT(changed(1, 1), HasSubstr("too short"));
  EXPECT_THAT(changed(1, 6), HasSubstr("too long"));
  EXPECT_THAT(changed(5, 1), HasSubstr("padding"));
  // A scale that is no number is the part's own matter.
  JointPayload nan = sound;
  std::memset(nan.bytes.data() + 16, 0xff, 4);
  EXPECT_NE(why(nan), "");

  JointPayload other_round = sound;
  other_round.key = MakeExchangeId(one);
  EXPECT_NE(why(other_round), "");
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{15}, size_t{16}, sound.bytes.size() - 1}) {
    JointPayload cut = sound;
    cut.bytes.resize(size);
    EXPECT_THAT(why(cut), HasSubstr("too short")) << size;
  }
  JointPayload longer = sound;
  longer.bytes.push_back({});
  EXPECT_THAT(why(longer), HasSubstr("too long"));
  EXPECT_THAT(
      codec->Validate({WireFormat::kInt4, sound.bytes, sound.key}).message(),
      HasSubstr("another format"));

  const auto seldom = Make("innov-int4 every 5");
  uint64_t none = 1;
  while (!seldom->Due(none).empty()) ++none;
  EXPECT_THAT(
      seldom->Validate({WireFormat::kJoint, sound.bytes, MakeExchangeId(none)})
          .message(),
      HasSubstr("no part is due"));
}

TEST(PlayerCodecsTest, EncodedSizeIsThatOfAPayloadOfAllPlayers) {
  const auto codec = Make("auto; discriminator=innov-int8 every 9");
  EXPECT_THAT(
      std::vector<WireFormat>(codec->choices().begin(), codec->choices().end()),
      ElementsAre(WireFormat::kInt8, WireFormat::kInt4, WireFormat::kLm2,
                  WireFormat::kSign));
  for (const WireFormat format : codec->choices()) {
    const size_t head = 16;
    const size_t generator = codec->part(0).codec->EncodedSize(format);
    EXPECT_EQ(codec->EncodedSize(format),
              head + (generator + 15) / 16 * 16 +
                  codec->part(1).codec->EncodedSize(WireFormat::kInt8));
  }
  EXPECT_EQ(codec->EncodedSize(WireFormat::kTopK), 0u);
  const auto fixed = Make("innov-int4; generator=innov-int4:fragments=4");
  EXPECT_TRUE(fixed->choices().empty());
  EXPECT_EQ(fixed->format(), WireFormat::kJoint);
  EXPECT_GT(fixed->EncodedSize(WireFormat::kJoint), 0u);
}

}  // namespace player_codecs_test
}  // namespace gossamer
