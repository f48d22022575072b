#include "algorithms/compress/player_codecs.h"

#include <algorithm>
#include <cassert>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/spelling.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/compress/joint_payload.h"

namespace gossamer {
namespace {

constexpr std::string_view kEvery = " every ";

// The place behind the player's name that begins a clause; npos: none does.  An
// option has an equal sign, too, but behind a colon.
size_t NameEnd(std::string_view clause) {
  const size_t sign = clause.find_first_of("=:");
  return sign != std::string_view::npos && clause[sign] == '='
             ? sign
             : std::string_view::npos;
}

std::string Stripped(std::string_view text) {
  return std::string(absl::StripAsciiWhitespace(std::string(text)));
}

class PlayersCodec final : public Codec {
 public:
  // The codec of one player's extent, mixed once in so many rounds.
  struct PlacedCodec {
    Extent extent;
    std::shared_ptr<const Codec> codec;
    int every = 1;
    int first_part = 0;
  };

  PlayersCodec(std::string_view name, std::vector<PlacedCodec> players,
               size_t size, const DeviceQueue& queue)
      : name_(name), players_(std::move(players)), queue_(queue), size_(size) {
    for (const PlacedCodec& p : players_)
      gamma_ = std::max(gamma_, p.codec->gamma());
    for (PlacedCodec& p : players_) {
      largest_gamma_ = std::min(
          largest_gamma_, p.codec->largest_gamma() * gamma_ / p.codec->gamma());
      p.first_part = static_cast<int>(parts_.size());
      for (int i = 0; i < p.codec->parts(); ++i) {
        CodecPart part = p.codec->part(i);
        part.extent.offset += p.extent.offset;
        part.gamma = p.codec->gamma() / gamma_;
        parts_.push_back(part);
      }
      if (choosing_ == nullptr && !p.codec->choices().empty()) {
        choosing_ = p.codec.get();
      }
    }
  }

  size_t size() const override { return size_; }
  int parts() const override { return static_cast<int>(parts_.size()); }
  CodecPart part(int i) const override {
    return parts_[static_cast<size_t>(i)];
  }
  DueParts Due(uint64_t round) const override {
    DueParts due;
    for (const PlacedCodec& p : players_) {
      if (DuePart(round, p.every) != 0) continue;
      // Its fragments alternate in the rounds in which it is mixed.
      const auto every = static_cast<uint64_t>(p.every);
      for (const int i : p.codec->Due(round / every)) {
        due.push_back(p.first_part + i);
      }
    }
    return due;
  }
  // The longest pause of a player: it is due first in a cycle of N rounds, and
  // last in the next one.
  int idle_rounds() const override {
    int idle = 2 * kMaxRoundsApart;
    for (const PlacedCodec& p : players_)
      idle = std::min(idle, 2 * p.every - 2);
    return players_.empty() ? 0 : idle;
  }
  bool joint() const override { return true; }

  std::string_view name() const override { return name_; }
  const DeviceQueue& queue() const override { return queue_; }
  EdgeMemory memory() const override {
    return std::ranges::any_of(
               players_,
               [](const PlacedCodec& p) { return p.codec->needs_replica(); })
               ? EdgeMemory::kReplicas
               : EdgeMemory::kNone;
  }
  // That of the player that bears most; the others' are in proportion, as each
  // part's is a factor of its corrections.
  float gamma() const override { return gamma_; }
  float largest_gamma() const override { return largest_gamma_; }

  WireFormat format() const override {
    return choosing_ == nullptr ? WireFormat::kJoint : choosing_->format();
  }
  WireFormat first_format() const override { return format(); }
  WireFormat resync_format() const override { return format(); }
  std::span<const WireFormat> choices() const override {
    return choosing_ == nullptr ? std::span<const WireFormat>()
                                : choosing_->choices();
  }
  float RelativeGamma(WireFormat) const override { return 1; }

  // With this format wherever a part has the choice, and all parts due.
  size_t EncodedSize(WireFormat format) const override {
    if (std::ranges::find(choices(), format) == choices().end() &&
        format != WireFormat::kJoint) {
      return 0;
    }
    DueParts due;
    PartFormats formats;
    for (const PlacedCodec& p : players_) {
      // Of fragments, the largest stands for all.
      int largest = p.first_part;
      for (int i = 1; i < p.codec->parts(); ++i) {
        const int at = p.first_part + i;
        if (part(at).extent.size > part(largest).extent.size) largest = at;
      }
      const bool chooses =
          !p.codec->choices().empty() && format != WireFormat::kJoint;
      due.push_back(largest);
      formats.push_back(chooses ? format : p.codec->format());
    }
    return PayloadSize(*this, due, formats);
  }

  // EncodeParts and the parts' own Complete take their places.
  void Encode(WireFormat, DeviceSpan<const float>, DeviceSpan<float>, uint64_t,
              DeviceSpan<std::byte>) const override {
    assert(false);
  }
  void Complete(const Encoded*, const Encoded*, float, DeviceSpan<float>,
                DeviceSpan<float>) const override {
    assert(false);
  }

  absl::Status Validate(const Encoded& payload) const override {
    return ValidateParts(*this, payload);
  }

 private:
  const std::string name_;
  std::vector<PlacedCodec> players_;
  const DeviceQueue queue_;
  const size_t size_;
  std::vector<CodecPart> parts_;     // of one player after the other
  const Codec* choosing_ = nullptr;  // the first player's that has a choice
  float gamma_ = 0;
  float largest_gamma_ = 1;
};

absl::Status NoList(std::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", std::string(text),
                   "\" is no list of CODEC or PLAYER=CODEC, each perhaps with "
                   "\" every N\" behind it, as in "
                   "\"innov-int4; discriminator=innov-sign every 4\""));
}

absl::StatusOr<PlayerCodec> ReadClause(std::string_view text,
                                       std::string_view clause) {
  PlayerCodec read;
  const size_t sign = NameEnd(clause);
  if (sign != std::string_view::npos) {
    read.player = Stripped(clause.substr(0, sign));
    if (read.player.empty()) return NoList(text);
    clause.remove_prefix(sign + 1);
  }
  const size_t every = clause.rfind(kEvery);
  if (every != std::string_view::npos) {
    const std::string rounds(clause.substr(every + kEvery.size()));
    if (!absl::SimpleAtoi(rounds, &read.every) || read.every < 1 ||
        read.every > kMaxRoundsApart) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"every", rounds.empty() ? "" : " ", rounds,
          "\" is not a number of rounds from 1 to ", kMaxRoundsApart));
    }
    clause = clause.substr(0, every);
  }
  read.codec = Stripped(clause);
  if (read.codec.empty() || NamesPlayers(read.codec)) return NoList(text);
  return read;
}

// A layout of one player's segments alone.
ParameterLayout LayoutOf(const ParameterLayout& layout, Player player) {
  std::vector<Segment> segments;
  for (const Segment& segment : layout.segments()) {
    if (segment.player != player) continue;
    segments.push_back(segment);
    segments.back().player = Player{0};
  }
  return ParameterLayout(std::move(segments),
                         {layout.players()[static_cast<size_t>(player)]});
}

// The clause that names the player, or else that of all others; null: none.
const PlayerCodec* ClauseOf(const std::vector<PlayerCodec>& clauses,
                            const std::string& player) {
  for (const std::string& name : {player, std::string()}) {
    const auto it = std::ranges::find(clauses, name, &PlayerCodec::player);
    if (it != clauses.end()) return &*it;
  }
  return nullptr;
}

}  // namespace

bool NamesPlayers(std::string_view text) {
  return text.find(';') != std::string_view::npos ||
         text.find(kEvery) != std::string_view::npos ||
         NameEnd(text) != std::string_view::npos;
}

absl::StatusOr<std::vector<PlayerCodec>> ReadPlayerCodecs(
    std::string_view text) {
  std::vector<PlayerCodec> clauses;
  const std::string all(text);
  for (const std::string& clause :
       std::vector<std::string>(absl::StrSplit(all, ';'))) {
    GOSSAMER_ASSIGN_OR_RETURN(PlayerCodec read, ReadClause(text, clause));
    for (const PlayerCodec& other : clauses) {
      if (other.player != read.player) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", all, "\" has two codecs of ",
          read.player.empty() ? "all players"
                              : absl::StrCat("player ", read.player)));
    }
    clauses.push_back(std::move(read));
  }
  return clauses;
}

absl::Status CheckPlayers(const std::vector<PlayerCodec>& clauses,
                          const std::vector<std::string>& players) {
  const std::vector<std::string_view> known(players.begin(), players.end());
  for (const PlayerCodec& clause : clauses) {
    if (clause.player.empty() ||
        std::ranges::find(known, clause.player) != known.end()) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "there is no player \"", clause.player, "\" in this game; ",
        KnownAndNearest(clause.player, known)));
  }
  for (const std::string& player : players) {
    if (ClauseOf(clauses, player) != nullptr) continue;
    const bool writable = player.find_first_of(";=:") == std::string::npos &&
                          Stripped(player) == player;
    return absl::InvalidArgumentError(absl::StrCat(
        "player \"", player, "\" has no codec: add ",
        writable ? absl::StrCat(player, "=CODEC, or ") : "",
        "a codec without a player's name for all others",
        writable ? ""
                 : " (a name with ; = : or with spaces at its ends cannot "
                   "stand in this text)"));
  }
  return absl::OkStatus();
}

MadeCodec MakePlayerCodecs(std::string_view text, const ParameterLayout& layout,
                           const DeviceQueue& queue) {
  GOSSAMER_ASSIGN_OR_RETURN(const std::vector<PlayerCodec> clauses,
                            ReadPlayerCodecs(text));
  std::vector<PlayersCodec::PlacedCodec> players;
  const auto add = [&](const PlayerCodec& clause, const ParameterLayout& own,
                       Extent extent) -> absl::Status {
    GOSSAMER_ASSIGN_OR_RETURN(auto codec,
                              Codec::Create(clause.codec, own, queue));
    if (codec->memory() == EdgeMemory::kShared) {
      return absl::InvalidArgumentError(
          absl::StrCat("codec \"", clause.codec,
                       "\" is for all players together: it begins where the "
                       "last exchange ended"));
    }
    players.push_back({extent, std::move(codec), clause.every});
    return absl::OkStatus();
  };
  if (layout.size() == 0) {
    // Which players there are is known with the game.
    for (const PlayerCodec& clause : clauses) {
      GOSSAMER_RETURN_IF_ERROR(add(clause, layout, {}));
    }
  } else {
    GOSSAMER_RETURN_IF_ERROR(CheckPlayers(clauses, layout.players()));
  }
  for (size_t i = 0; layout.size() > 0 && i < layout.players().size(); ++i) {
    const auto player = static_cast<Player>(i);
    // A player without parameters has nothing to mix.
    if (layout.extent(player).size == 0) continue;
    const PlayerCodec* const clause = ClauseOf(clauses, layout.players()[i]);
    GOSSAMER_RETURN_IF_ERROR(
        add(*clause, LayoutOf(layout, player), layout.extent(player)));
  }
  return std::make_shared<const PlayersCodec>(text, std::move(players),
                                              layout.size(), queue);
}

}  // namespace gossamer
