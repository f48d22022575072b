// gossamer under a game of your own, in C++: a class with players and a step.
//
//   class MyGame : public gossamer::Game { ... };
//   int main(int argc, char** argv) {
//     MyGame game;
//     return gossamer::RunPeer(game, argc, argv);
//   }
//
// A header over gossamer.h alone, so that one libgossamer serves every compiler
// and standard library.  Needs C++17.

#ifndef GOSSAMER_GOSSAMER_HPP_
#define GOSSAMER_GOSSAMER_HPP_

#include <gossamer/gossamer.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace gossamer {

// A parameter tensor: float32, row-major.
struct Tensor {
  std::string player;  // tensors of one player come together
  std::string name;
  std::vector<int64_t> shape;
};

// A fleet that cannot go on, or options that cannot be used.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Where the peer stands at a step.
using Status = gossamer_status;

// A game of any number of players, whose step is the class's own.
class Game {
 public:
  virtual ~Game() = default;
  // The same at all peers.
  virtual std::vector<Tensor> tensors() const = 0;
  // Writes the first parameters, the same at all peers: draw them from a seed
  // that all have.  `x` has all tensors one behind the other, and is theirs for
  // as long as the peer runs.
  virtual void Begin(float* x, size_t size) = 0;
  // One local step: moves x.  Whatever has moved since the last step beside it
  // was the neighbours' share.  Returns the players' losses, or nothing.
  virtual std::vector<double> Step(const Status& status) = 0;
  // State beside x, of optimizers for example: kept in checkpoints, and given
  // to peers that join later.
  virtual std::string Save() { return {}; }
  virtual void Load(const std::string& /*state*/) {}
};

// A peer of a fleet; see gossamer.h.  Throws Error.
class Peer {
 public:
  Peer(Game& game, const std::vector<std::string>& options) : game_(game) {
    const std::vector<Tensor> tensors = game.tensors();
    std::vector<gossamer_tensor> views;
    for (const Tensor& t : tensors) {
      views.push_back(
          {t.player.c_str(), t.name.c_str(), t.shape.data(), t.shape.size()});
    }
    std::vector<const char*> words;
    for (const std::string& option : options) words.push_back(option.c_str());
    peer_.reset(
        gossamer_open(words.data(), words.size(), views.data(), views.size()));
    if (peer_ == nullptr) throw Error(gossamer_error());
    const gossamer_state state = {this, Save, Load};
    Check(gossamer_set_state(peer_.get(), &state));
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // Plays until the run is over.
  void Run() {
    gossamer_peer* const peer = peer_.get();
    game_.Begin(gossamer_parameters(peer), gossamer_size(peer));
    Check(gossamer_start(peer));
    for (;;) {
      const int waited = gossamer_wait(peer, -1);
      if (failure_) std::rethrow_exception(failure_);
      if (Check(waited) != GOSSAMER_TURN) return;
      Status status;
      Check(gossamer_status_of(peer, &status));
      const std::vector<double> losses = game_.Step(status);
      if (!losses.empty()) {
        Check(gossamer_losses(peer, losses.data(), losses.size()));
      }
      Check(gossamer_mix(peer));
    }
  }
  // Any thread: asks the fleet to stop at a round that all agree on; leaves it,
  // so that the others go on.
  void Stop() { gossamer_stop(peer_.get()); }
  void Leave() { gossamer_leave(peer_.get()); }

 private:
  static int Check(int code) {
    if (code < 0) throw Error(gossamer_error());
    return code;
  }
  // No exception may cross the C interface.
  template <typename Work>
  int Guard(Work work) {
    try {
      work();
      return 0;
    } catch (...) {
      failure_ = std::current_exception();
      return 1;
    }
  }
  static int Save(void* self, const void** data, size_t* size) {
    Peer& peer = *static_cast<Peer*>(self);
    return peer.Guard([&] {
      peer.saved_ = peer.game_.Save();
      *data = peer.saved_.data();
      *size = peer.saved_.size();
    });
  }
  static int Load(void* self, const void* data, size_t size) {
    Peer& peer = *static_cast<Peer*>(self);
    return peer.Guard([&] {
      peer.game_.Load(std::string(static_cast<const char*>(data), size));
    });
  }

  struct Close {
    void operator()(gossamer_peer* peer) const { gossamer_close(peer); }
  };

  Game& game_;
  std::string saved_;
  std::exception_ptr failure_;
  // The last member: its end may ask for the game's state.
  std::unique_ptr<gossamer_peer, Close> peer_;
};

// A main(): plays `game` with the options of gossamer-peer, which --help lists.
// SIGINT asks the fleet to stop, SIGTERM leaves it; a second one ends the
// process at once.  Returns the exit status: 0 played to the end or stopped in
// good order, 1 failed, 2 the options cannot be used.
inline int RunPeer(Game& game, int argc, char** argv) {
  const char* const name = argc > 0 ? argv[0] : "peer";
  const std::vector<std::string> options(argv + (argc > 0 ? 1 : 0),
                                         argv + argc);
  bool help = false;
  for (const std::string& option : options) {
    help = help || option == "--help" || option == "-h";
  }
  // Blocked before the first thread starts, so that all threads inherit it.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  int failed = 2;
  try {
    Peer peer(game, options);
    failed = 1;
    std::atomic<bool> over = false;
    std::thread watch([&] {
      for (bool asked = false; !over;) {
        const timespec look = {0, 50'000'000};
        const int signal = sigtimedwait(&signals, nullptr, &look);
        if (signal <= 0) continue;
        if (asked) _exit(128 + signal);
        asked = true;
        signal == SIGTERM ? peer.Leave() : peer.Stop();
      }
    });
    std::exception_ptr failure;
    try {
      peer.Run();
    } catch (...) {
      failure = std::current_exception();
    }
    over = true;
    watch.join();
    // A signal ends a process that takes long to leave.
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    if (failure) std::rethrow_exception(failure);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(help ? stdout : stderr, help ? "%s%s\n" : "%s: %s\n",
                 help ? "" : name, error.what());
    return help ? 0 : failed;
  }
}

}  // namespace gossamer

#endif  // GOSSAMER_GOSSAMER_HPP_
