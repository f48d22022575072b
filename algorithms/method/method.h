// A method: how peers step, what they average, and what a configuration has to
// say for it, as one value.
//
// A method is one file of this folder, which the registry finds.  This header
// knows nothing of configuration files, peers or rounds: the runtime fills
// MethodSettings and asks.

#ifndef GOSSAMER_ALGORITHMS_METHOD_METHOD_H_
#define GOSSAMER_ALGORITHMS_METHOD_METHOD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "algorithms/base/problems.h"
#include "algorithms/game/game.h"
#include "algorithms/optim/optimizer.h"

namespace gossamer {

// The quantity that the peers of a run average.
enum class Averaging {
  kGossip,      // parameters, with neighbours, by a mixing matrix every round
  kGradients,   // the gradients of every step, exactly, of all peers
  kParameters,  // the parameters after a round's steps, exactly, of all peers
  kVotes,  // votes of all others on what peer 1 shows, summed exactly there
};

// Settings that a configuration leaves out; empty: as for all methods.
struct MethodDefaults {
  std::string_view graph = "ring";
  std::string_view optimizer = "oadam";
  std::string_view codec = {};
  std::optional<int> overlap_steps = {};
  // The step size of mixing with that codec; null: the codec's own.
  double (*gamma)(std::string_view codec) = nullptr;
};

// The settings that a method may refuse, under the names of their keys; all of
// them are set.
struct MethodSettings {
  int peers = 1;
  std::string graph;
  bool static_graph = true;      // one matrix for all rounds
  bool persistent_edges = true;  // none is made for some rounds alone
  bool chebyshev = false;
  std::string deadline;
  int overlap_steps = 0;  // -1: auto
  int mixing_rounds = 1;
  uint64_t replica_memory_mb = 0;
  double clip_radius = 0;
  std::string codec;
  int codec_parts = 1;
  bool codec_of_players = false;  // each player has its own, or its own rounds
  bool codec_has_replica = true;
  double codec_contraction = 1;  // Compressor::contraction
  double gamma = 0;              // 0: the codec's own
  // The γ above which mixing by these matrices diverges, 2/λmax(I − W).
  std::function<double()> stable_gamma;
  std::string optimizer;
  int n_critic = 1;
  int steps_per_round = 1;
  double gradient_clip = 0;
};

// The words that gossamer methods prints.
struct MethodHelp {
  std::string_view summary = {};   // one line
  std::string_view property = {};  // what its source proves or says of it
  std::string_view bits = {};    // a parameter on the wire; "–": the codec's
  std::string_view state = {};   // floats a parameter, by peer or edge
  std::string_view needs = {};   // empty: nothing
  std::string_view gamma = {};   // step size of mixing; "–": none
  std::string_view source = {};  // the paper
  std::string_view page = {};    // a page of this folder, without .md
  // Further changes of --set that choose it, as gossamer compare --methods
  // makes them, with spaces between.
  std::string_view settings = {};
  // Its place among those that gossamer compare takes by itself; 0: none.
  int compared = 0;
};

// A method by its name, and all that sets it apart from the default: no other
// file may name it.
struct Method {
  std::string_view name = {};
  MethodHelp help = {};
  Averaging averaging = Averaging::kGossip;
  MethodDefaults defaults = {};
  // The method is its optimizer: with another one it is the method named here,
  // if there is one.
  bool is_its_optimizer = false;
  std::string_view with_another_optimizer = {};
  // A codec that only methods of this value may use; empty: none.
  std::string_view own_codec = {};
  // A round without overlap steps first and mixes what it has made; else it
  // mixes first, the order of algorithm 1.
  bool step_then_mix = false;
  // The local step is a program's own: it needs game caller, and that game it.
  bool callers_step = false;
  // Refuses settings, beyond those that no method may have; null: none.
  void (*check)(const MethodSettings& settings, Problems& problems) = nullptr;
  // Its own rule, under the name defaults.optimizer; null: one of optim/.
  OptimizerMaker rule = nullptr;
  // The game that its peers train, made of the user's; null: the user's.
  std::unique_ptr<Game> (*game)(std::unique_ptr<Game> game) = nullptr;

  bool centralized() const { return averaging != Averaging::kGossip; }
};

// Defines the method of a file: GOSSAMER_METHOD(cold) = {...}; in cold.cc.
#define GOSSAMER_METHOD(file) \
  namespace methods {         \
  extern const Method file;   \
  }                           \
  constinit const Method methods::file

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_METHOD_METHOD_H_
