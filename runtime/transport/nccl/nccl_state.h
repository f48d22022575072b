// The states of a communicator and what leads from one to the next.
//
//   waiting --id--> making --made--> meeting --met--> ready
//   waiting, making, meeting, ready --failed, late, remote abort--> broken
//   any --replaced--> gone
//
// A broken communicator never comes back: another one is made for the next
// view.  This header is pure and knows nothing of NCCL's calls.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_STATE_H_
#define GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_STATE_H_

#include <string_view>

namespace gossamer {

enum class NcclState {
  kWaiting,  // for the unique id, which the group's first member makes
  kMaking,
  kMeeting,  // complete, and its members are not connected yet
  kReady,
  kBroken,  // aborted: its edges are on gRPC
  kGone     // a later view has another one
};
inline constexpr NcclState kNcclStates[] = {
    NcclState::kWaiting, NcclState::kMaking, NcclState::kMeeting,
    NcclState::kReady,   NcclState::kBroken, NcclState::kGone};

enum class NcclEvent {
  kId,           // the unique id is known
  kMade,         // NCCL says that the communicator is complete
  kMet,          // NCCL has connected the members that exchange
  kFailed,       // NCCL or the device reports an error
  kLate,         // the watchdog: a step took longer than the deadline
  kRemoteAbort,  // another member has given it up
  kReplaced      // a later view is in use
};
inline constexpr NcclEvent kNcclEvents[] = {
    NcclEvent::kId,      NcclEvent::kMade, NcclEvent::kMet,
    NcclEvent::kFailed,  NcclEvent::kLate, NcclEvent::kRemoteAbort,
    NcclEvent::kReplaced};

// The next state; `state` itself where the event means nothing.
constexpr NcclState NextState(NcclState state, NcclEvent event) {
  if (state == NcclState::kGone) return state;
  switch (event) {
    case NcclEvent::kId:
      return state == NcclState::kWaiting ? NcclState::kMaking : state;
    case NcclEvent::kMade:
      return state == NcclState::kMaking ? NcclState::kMeeting : state;
    case NcclEvent::kMet:
      return state == NcclState::kMeeting ? NcclState::kReady : state;
    case NcclEvent::kFailed:
    case NcclEvent::kLate:
    case NcclEvent::kRemoteAbort:
      return NcclState::kBroken;
    case NcclEvent::kReplaced:
      return NcclState::kGone;
  }
  return state;
}

constexpr std::string_view NameOf(NcclState state) {
  constexpr std::string_view kWords[] = {"waiting", "making", "meeting",
                                         "ready",   "broken", "gone"};
  return kWords[static_cast<int>(state)];
}

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_STATE_H_
