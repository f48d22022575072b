// The states of one participant of a run, from the wait for its first view to
// its end: the one table of transitions between them, and the reason for which
// its rounds ended.
//
// This header is pure and knows nothing of views, neighbours or time.

#ifndef GOSSAMER_RUNTIME_PEER_LIFECYCLE_H_
#define GOSSAMER_RUNTIME_PEER_LIFECYCLE_H_

#include <optional>
#include <span>
#include <string_view>

#include "absl/status/status.h"

namespace gossamer {

class Lifecycle {
 public:
  enum class State {
    kJoining,     // waits for the first view of its incarnation
    kTraining,    // takes the rounds of a view
    kDeparting,   // the time to leave is over, a round or a wait still ends
    kDraining,    // no more rounds: answers what neighbours still need
    kAbandoning,  // the same, and nobody is waited for
    kEnded,
  };
  static constexpr State kStates[] = {State::kJoining,    State::kTraining,
                                      State::kDeparting,  State::kDraining,
                                      State::kAbandoning, State::kEnded};

  enum class Event {
    kAdmitted,        // a view with this peer has been adopted
    kNewIncarnation,  // another incarnation of this peer begins
    kTimeUp,          // the time that it was given to leave is over
    kRoundsOver,      // for one of the reasons of Outcome
    kSettled,  // neighbours have all they need, or were waited for enough
  };
  static constexpr Event kEvents[] = {Event::kAdmitted, Event::kNewIncarnation,
                                      Event::kTimeUp, Event::kRoundsOver,
                                      Event::kSettled};

  // The reason for which there are no more rounds.
  enum class Outcome {
    kNone,      // there are
    kFinished,  // the last round is done
    kStopped,   // the fleet has agreed to stop before its last round
    kLeft,      // this peer leaves the fleet
  };

  struct Transition {
    State from;
    Event event;
    State to;
  };
  // All transitions there are.
  static std::span<const Transition> Table();
  // Nothing if the table has no such transition.
  static std::optional<State> Next(State from, Event event);
  static std::string_view Name(State state);
  static std::string_view Name(Event event);

  State state() const { return state_; }
  Outcome outcome() const { return outcome_; }

  // kFailedPrecondition, and the state stays, if the table has no such
  // transition.  EndRounds() is the one way to kRoundsOver.
  absl::Status Apply(Event event);
  // `why` is not kNone.
  absl::Status EndRounds(Outcome why);

  // No round follows.
  bool over() const {
    return state_ == State::kDraining || state_ == State::kAbandoning ||
           state_ == State::kEnded;
  }
  // Nothing and nobody is waited for any longer.
  bool out_of_time() const {
    return state_ == State::kDeparting || state_ == State::kAbandoning ||
           state_ == State::kEnded;
  }
  bool stopped() const { return outcome_ == Outcome::kStopped; }
  bool left() const { return outcome_ == Outcome::kLeft; }

 private:
  State state_ = State::kJoining;
  Outcome outcome_ = Outcome::kNone;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_LIFECYCLE_H_
