// The C interface: pointers and lengths in, codes and texts out.

#include "gossamer/gossamer.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "runtime/library/callers_peer.h"

struct gossamer_peer {
  std::unique_ptr<gossamer::CallersPeer> own;
  const pid_t process = ::getpid();
  std::atomic<bool> busy = false;
  bool started = false;
  gossamer::Losses losses;
};

namespace gossamer {
namespace {

thread_local std::string error;

// A process has one peer: two would share the folder of the run, and the
// program's signals.
std::atomic<bool> open = false;

int Fail(gossamer_code code, std::string why) {
  error = std::move(why);
  return code;
}

int Fail(const absl::Status& status) {
  return Fail(
      absl::IsInvalidArgument(status) ? GOSSAMER_INVALID : GOSSAMER_FAILED,
      std::string(status.message()));
}

// GOSSAMER_OK in the process of the peer.
int CheckOwner(const gossamer_peer* peer, const std::string& function) {
  if (peer == nullptr) {
    return Fail(GOSSAMER_INVALID, function + ": there is no peer");
  }
  if (peer->process == ::getpid()) return GOSSAMER_OK;
  return Fail(GOSSAMER_FORKED,
              absl::StrCat(function, ": this process (", ::getpid(),
                           ") is a fork of that of the peer (", peer->process,
                           "), whose threads are not in it: use the peer where "
                           "it was opened, or begin a process that is no fork "
                           "(spawn)"));
}

// A function of a peer on one thread of its own process.
class Use {
 public:
  Use(gossamer_peer* peer, const std::string& function)
      : peer_(peer), code_(CheckOwner(peer, function)) {
    if (code_ != GOSSAMER_OK) return;
    entered_ = !peer->busy.exchange(true);
    if (entered_) return;
    code_ = Fail(GOSSAMER_BUSY,
                 function +
                     ": another thread is in a function of this peer, "
                     "which is for one thread at a time");
  }
  ~Use() {
    if (entered_) peer_->busy = false;
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  bool entered() const { return entered_; }
  int code() const { return code_; }

 private:
  gossamer_peer* const peer_;
  int code_;
  bool entered_ = false;
};

// The players in the order of their first tensors.
absl::StatusOr<ParameterLayout> LayoutOf(
    std::span<const gossamer_tensor> tensors) {
  std::vector<std::string> players;
  std::vector<Segment> segments;
  for (const gossamer_tensor& t : tensors) {
    const std::string player = t.player == nullptr ? "" : t.player;
    const std::string name = t.name == nullptr ? "" : t.name;
    const std::string whole = absl::StrCat(player, ".", name);
    if (player.empty() || name.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor \"", whole, "\" needs a player and a name"));
    }
    if (player.size() > kMaxPlayerNameBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(whole, ": the player's name has ", player.size(),
                       " bytes; at most ", kMaxPlayerNameBytes));
    }
    if (players.empty() || players.back() != player) {
      if (std::ranges::find(players, player) != players.end()) {
        return absl::InvalidArgumentError(absl::StrCat(
            whole, ": tensors of player ", player, " must come together"));
      }
      if (players.size() == kMaxPlayers) {
        return absl::InvalidArgumentError(
            absl::StrCat(whole, ": more than ", kMaxPlayers, " players"));
      }
      players.push_back(player);
    }
    std::vector<int64_t> shape(t.shape, t.shape + t.rank);
    for (const int64_t extent : shape) {
      if (extent < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat(whole, " has a negative extent, ", extent));
      }
    }
    segments.push_back(
        {whole, static_cast<Player>(players.size() - 1), std::move(shape), {}});
  }
  return ParameterLayout(std::move(segments), std::move(players));
}

CallerState StateOf(const gossamer_state& state) {
  CallerState made;
  if (state.save != nullptr) {
    made.save = [state](std::vector<std::byte>& bytes) -> absl::Status {
      const void* data = nullptr;
      size_t size = 0;
      if (state.save(state.context, &data, &size) != 0) {
        return absl::InternalError("the program's state was not saved");
      }
      bytes.resize(size);
      if (size > 0) std::memcpy(bytes.data(), data, size);
      return absl::OkStatus();
    };
  }
  if (state.load != nullptr) {
    made.load = [state](std::span<const std::byte> bytes) -> absl::Status {
      if (state.load(state.context, bytes.data(), bytes.size()) == 0) {
        return absl::OkStatus();
      }
      return absl::InternalError("the program's state was not loaded");
    };
  }
  return made;
}

}  // namespace
}  // namespace gossamer

using gossamer::Caller;
using gossamer::Fail;
using gossamer::Use;

int gossamer_abi() { return GOSSAMER_ABI; }

const char* gossamer_version() { return GOSSAMER_VERSION; }

const char* gossamer_error() { return gossamer::error.c_str(); }

gossamer_peer* gossamer_open(const char* const* options, size_t option_count,
                             const gossamer_tensor* tensors,
                             size_t tensor_count) {
  if (gossamer::open.exchange(true)) {
    Fail(GOSSAMER_INVALID, "this process has a peer already; close it first");
    return nullptr;
  }
  // gRPC's own lines say less than the peer's log; a setting of the user stays.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  const auto layout = gossamer::LayoutOf({tensors, tensor_count});
  absl::StatusOr<std::unique_ptr<gossamer::CallersPeer>> own = nullptr;
  if (layout.ok()) {
    own =
        gossamer::CallersPeer::Open({options, options + option_count}, *layout);
  } else {
    own = layout.status();
  }
  if (!own.ok()) {
    Fail(own.status());
    gossamer::open = false;
    return nullptr;
  }
  auto peer = std::make_unique<gossamer_peer>();
  peer->own = *std::move(own);
  return peer.release();
}

float* gossamer_parameters(gossamer_peer* peer) {
  return peer->own->caller().parameters().data;
}

size_t gossamer_size(const gossamer_peer* peer) {
  return peer->own->caller().layout().size();
}

int gossamer_set_state(gossamer_peer* peer, const gossamer_state* state) {
  const Use use(peer, "gossamer_set_state");
  if (!use.entered()) return use.code();
  if (peer->started) {
    return Fail(GOSSAMER_INVALID,
                "gossamer_set_state: the peer has been started");
  }
  peer->own->caller().SetState(gossamer::StateOf(*state));
  return GOSSAMER_OK;
}

int gossamer_use_memory(gossamer_peer* peer, float* parameters) {
  const Use use(peer, "gossamer_use_memory");
  if (!use.entered()) return use.code();
  if (peer->started) {
    return Fail(GOSSAMER_INVALID,
                "gossamer_use_memory: the peer has been started");
  }
  peer->own->UseMemory(parameters);
  return GOSSAMER_OK;
}

int gossamer_use_cuda_memory(gossamer_peer* peer, float* parameters,
                             int device) {
  const Use use(peer, "gossamer_use_cuda_memory");
  if (!use.entered()) return use.code();
  if (peer->started) {
    return Fail(GOSSAMER_INVALID,
                "gossamer_use_cuda_memory: the peer has been started");
  }
  const absl::Status used = peer->own->UseCudaMemory(parameters, device);
  return used.ok() ? GOSSAMER_OK : Fail(used);
}

int gossamer_start(gossamer_peer* peer) {
  const Use use(peer, "gossamer_start");
  if (!use.entered()) return use.code();
  if (peer->started) {
    return Fail(GOSSAMER_INVALID, "gossamer_start: the peer has been started");
  }
  const absl::Status started = peer->own->Start();
  if (!started.ok()) return Fail(started);
  peer->started = true;
  return GOSSAMER_OK;
}

int gossamer_wait(gossamer_peer* peer, int milliseconds) {
  const Use use(peer, "gossamer_wait");
  if (!use.entered()) return use.code();
  if (!peer->started) {
    return Fail(GOSSAMER_INVALID,
                "gossamer_wait: the peer has not been started");
  }
  Caller& caller = peer->own->caller();
  Caller::Turn turn = Caller::Turn::kRuntimes;
  do {
    turn = caller.Await(milliseconds < 0 ? absl::Hours(1)
                                         : absl::Milliseconds(milliseconds));
    const absl::Status state = caller.TakeStateFailure();
    if (!state.ok()) {
      return Fail(GOSSAMER_STATE, std::string(state.message()));
    }
  } while (turn == Caller::Turn::kRuntimes && milliseconds < 0);
  if (turn == Caller::Turn::kRuntimes) return GOSSAMER_AGAIN;
  if (turn == Caller::Turn::kCallers) return GOSSAMER_TURN;
  const absl::Status ended = caller.ended();
  return ended.ok() ? GOSSAMER_OVER : Fail(ended);
}

int gossamer_losses(gossamer_peer* peer, const double* losses, size_t count) {
  const Use use(peer, "gossamer_losses");
  if (!use.entered()) return use.code();
  const auto& players = peer->own->caller().layout().players();
  if (count != players.size()) {
    return Fail(GOSSAMER_INVALID,
                absl::StrCat("gossamer_losses: ", count, " losses of ",
                             players.size(), " players"));
  }
  peer->losses.assign(losses, losses + count);
  return GOSSAMER_OK;
}

int gossamer_mix(gossamer_peer* peer) {
  const Use use(peer, "gossamer_mix");
  if (!use.entered()) return use.code();
  const absl::Status ended = peer->own->caller().EndStep(peer->losses);
  if (!ended.ok()) return Fail(ended);
  // These losses are of this turn; the next one may have none.
  peer->losses.clear();
  return GOSSAMER_OK;
}

int gossamer_status_of(gossamer_peer* peer, gossamer_status* status) {
  // Any thread, so that the program's state may have the round in it.
  const int code = gossamer::CheckOwner(peer, "gossamer_status_of");
  if (code != GOSSAMER_OK) return code;
  const gossamer::CallersPeer& own = *peer->own;
  const gossamer::CallerProgress at = peer->own->caller().progress();
  *status = {.id = at.id,
             .round = at.round,
             .rounds = own.rounds(),
             .seed = own.seed(),
             .members = static_cast<uint32_t>(at.members),
             .peers = static_cast<uint32_t>(own.peers())};
  return GOSSAMER_OK;
}

int gossamer_stop(gossamer_peer* peer) {
  const int code = gossamer::CheckOwner(peer, "gossamer_stop");
  if (code == GOSSAMER_OK) peer->own->Stop();
  return code;
}

int gossamer_leave(gossamer_peer* peer) {
  const int code = gossamer::CheckOwner(peer, "gossamer_leave");
  if (code == GOSSAMER_OK) peer->own->Leave();
  return code;
}

void gossamer_close(gossamer_peer* peer) {
  // A fork has a copy of the memory and none of the threads to wait for.
  if (peer == nullptr || peer->process != ::getpid()) return;
  delete peer;
  gossamer::open = false;
}
