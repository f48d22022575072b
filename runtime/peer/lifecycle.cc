#include "runtime/peer/lifecycle.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {

std::span<const Lifecycle::Transition> Lifecycle::Table() {
  // README.md draws the table, and lifecycle_test asks for every pair of state
  // and event.
  static constexpr Transition kTransitions[] = {
      {State::kJoining, Event::kAdmitted, State::kTraining},
      {State::kJoining, Event::kTimeUp, State::kDeparting},
      // The fleet may stop, or let this peer go, before any view has admitted
      // it.
      {State::kJoining, Event::kRoundsOver, State::kDraining},
      {State::kTraining, Event::kNewIncarnation, State::kJoining},
      {State::kTraining, Event::kTimeUp, State::kDeparting},
      {State::kTraining, Event::kRoundsOver, State::kDraining},
      // A peer may find itself outside, or its parameters lost, in the very
      // round in which its time ends.
      {State::kDeparting, Event::kNewIncarnation, State::kDeparting},
      {State::kDeparting, Event::kRoundsOver, State::kAbandoning},
      // kDeparting has no kTimeUp: the time is over once.  Peer::LeaveLate
      // relies on the refusal.
      {State::kDraining, Event::kTimeUp, State::kAbandoning},
      {State::kDraining, Event::kSettled, State::kEnded},
      {State::kAbandoning, Event::kSettled, State::kEnded},
  };
  return kTransitions;
}

std::optional<Lifecycle::State> Lifecycle::Next(State from, Event event) {
  for (const Transition& t : Table()) {
    if (t.from == from && t.event == event) return t.to;
  }
  return std::nullopt;
}

absl::Status Lifecycle::Apply(Event event) {
  const std::optional<State> next = Next(state_, event);
  if (!next) {
    return absl::FailedPreconditionError(absl::StrCat(
        "a peer that is ", std::string(Name(state_)), " has no transition for ",
        std::string(Name(event)), " (runtime/peer/lifecycle.cc)"));
  }
  state_ = *next;
  return absl::OkStatus();
}

absl::Status Lifecycle::EndRounds(Outcome why) {
  // The reason is noted only if the transition exists: the first reason stays.
  GOSSAMER_RETURN_IF_ERROR(Apply(Event::kRoundsOver));
  outcome_ = why;
  return absl::OkStatus();
}

std::string_view Lifecycle::Name(State state) {
  switch (state) {
    case State::kJoining:
      return "joining";
    case State::kTraining:
      return "training";
    case State::kDeparting:
      return "departing";
    case State::kDraining:
      return "draining";
    case State::kAbandoning:
      return "abandoning";
    case State::kEnded:
      return "ended";
  }
  return "";
}

std::string_view Lifecycle::Name(Event event) {
  switch (event) {
    case Event::kAdmitted:
      return "admitted";
    case Event::kNewIncarnation:
      return "began anew";
    case Event::kTimeUp:
      return "time up";
    case Event::kRoundsOver:
      return "rounds over";
    case Event::kSettled:
      return "settled";
  }
  return "";
}

}  // namespace gossamer
