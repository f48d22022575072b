// From a configuration file to a complete, checked RunConfig.
//
// Load = parse, override, resolve, validate.  After that every field that means
// something is set, and nothing later needs a default.  This header knows the
// rules between fields; nothing of processes or sockets.

#ifndef GOSSAMER_RUNTIME_CONFIG_RUN_CONFIG_H_
#define GOSSAMER_RUNTIME_CONFIG_RUN_CONFIG_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "algorithms/method/method.h"
#include "proto/run.pb.h"
#include "topology/mixing_schedule.h"

namespace gossamer {

// Reads `path`, applies `overrides` ("mixing.codec=innov-int8") in order,
// resolves and validates.  kInvalidArgument: no such file, or one line per
// problem with file:line:column (or the override) and what to do.
absl::StatusOr<RunConfig> LoadRunConfig(
    const std::string& path, std::span<const std::string> overrides = {});

// The same for text at hand; `file` is what messages call it.
absl::StatusOr<RunConfig> ParseRunConfig(
    std::string_view text, std::string_view file,
    std::span<const std::string> overrides = {});

// The settings of the file and the overrides, without what they imply.
absl::StatusOr<RunConfig> LoadGiven(const std::string& path,
                                    std::span<const std::string> overrides);

// Fills in what is not set: the defaults of the algorithm (Method::defaults; of
// votes, ResolveVotes), then those of run.proto.  A gradient_codec whose
// payloads cannot be summed implies all_reduce all-gather, mixing_rounds above
// 1 implies overlap_steps 0. Idempotent.
void ResolveRunConfig(RunConfig& config);

// The algorithm; null if no method bears its name, which ValidateRunConfig
// refuses.
const Method* MethodOf(const RunConfig& config);

// Whether the algorithm averages exactly over all peers, without edges.
bool IsCentralized(const RunConfig& config);

// kInvalidArgument if the game is a program's own (caller), which only that
// program can train.
absl::Status CheckGameIsHere(const RunConfig& config);

// Checks a resolved configuration: ranges, names, and what cannot go together.
// kInvalidArgument, one line per problem, each beginning with the field.
absl::Status ValidateRunConfig(const RunConfig& config);

// The hash of all that peers of a run must agree on: everything but the name,
// evaluation, checkpoint, transport, and this machine's device and data folder.
// Of a resolved configuration.
uint64_t ConfigurationHash(const RunConfig& config);
// The same values as text, one a line, but for game.datalens.noise_seed:
// `mixing.graph: "ring"`.
std::string ConfigurationLines(const RunConfig& config);

// The differences of two configurations with different hashes, a line a field.
std::string ConfigurationDifference(const RunConfig& before,
                                    const RunConfig& now);

// As written to runs/<name>/config.textproto; ParseRunConfig reads it back.
std::string ToTextProto(const RunConfig& config);

// The schedule of a resolved configuration.
ScheduleSpec ScheduleSpecOf(const MixingConfig& mixing);

// "2m30s", "40ms".  kInvalidArgument unless positive and finite.
absl::StatusOr<absl::Duration> ParsePositiveDuration(std::string_view text);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CONFIG_RUN_CONFIG_H_
