// A codec of its own for each player, and how often each is mixed: one text of
// a configuration, "innov-int4; G=innov-sign every 4".
//
// Every player's extent of the vector is coded as if there were no other, so
// each has a replica, a first payload and a resync of its own; a payload is the
// joint one of the players that are due.  This header knows nothing of games or
// of edges.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_PLAYER_CODECS_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_PLAYER_CODECS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/base/parameter_layout.h"
#include "algorithms/compress/compressor.h"
#include "algorithms/kernels/device_queue.h"

namespace gossamer {

inline constexpr int kMaxRoundsApart = 1000;

// The clause of a text that is of one player, or of those that it does not
// name.
struct PlayerCodec {
  std::string player;  // empty: of all that are not named
  std::string codec;   // "innov-topk:k=32"
  int every = 1;       // mixed once in as many rounds (DuePart)
};

// True if `text` says anything of players or rounds; otherwise it is the text
// of one codec for all.
bool NamesPlayers(std::string_view text);

// The clauses of a text, one for any other.  kInvalidArgument if it has a
// clause without a codec, two of one player, or rounds outside 1 to
// kMaxRoundsApart.  Codecs and players are not looked up.
absl::StatusOr<std::vector<PlayerCodec>> ReadPlayerCodecs(
    std::string_view text);

// kInvalidArgument names a player that is none of `players`, or one of them
// that has no codec.
absl::Status CheckPlayers(const std::vector<PlayerCodec>& clauses,
                          const std::vector<std::string>& players);

// The codec of all players of `layout`.  Errors of CheckPlayers, and
// kInvalidArgument for a codec that cannot share a payload; an empty layout is
// enough to ask of the text alone.
MadeCodec MakePlayerCodecs(std::string_view text, const ParameterLayout& layout,
                           const DeviceQueue& queue);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_PLAYER_CODECS_H_
