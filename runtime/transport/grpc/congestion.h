// The congestion control of each TCP socket, chosen by the pauses that it
// makes, the packets that it loses and the window that holds it back.
//
// A kernel that starts slowly after a pause halves CUBIC's window for each time
// in which it would have sent again (RTO); after two of them the next message
// takes round trips more.  BBR keeps its rate over a pause, but spreads every
// message over a part of a round trip, and so does what comes after it on the
// same socket, which the kernel goes on pacing.  A lost packet cuts CUBIC's
// window by three tenths, which takes many round trips to grow back; BBR takes
// no loss for a full link.  A loss in a connection's first round trips
// ends its slow start: CUBIC then takes many more to fill the link, and rounds
// wait meanwhile, where BBR finds the link's rate in ten.  So a socket has
// CUBIC until it pauses for two RTOs again and again, again and again sends
// something a second time on a long link, or is held back by its window there
// for longer than a slow start takes, while no queue makes its round trips
// longer.  The size of its messages does not enter: the same one is faster with
// 64 KiB and with 1 MiB after pauses, and with 1 and 4 MiB after losses.
//
// Over a satellite CUBIC takes half a minute to fill the link after one loss,
// and a fleet that begins with it makes a tenth fewer rounds for minutes.
// There a socket has BBR at once, though without losses it makes an exchange a
// third to two thirds of a one-way trip longer.
//
// A connection that loses packets or is held back and cannot have BBR may
// become several: each has a window of its own, and a loss cuts one alone.
//
// Internal to transport/grpc, but for KernelAllows().

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_CONGESTION_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_CONGESTION_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "algorithms/base/mutex.h"

namespace gossamer {

// Returns whether a socket of this process may have the congestion control of
// that name.
bool KernelAllows(std::string_view name);

// The choice for one socket.  Pure.
class CongestionChooser {
 public:
  // Each poll is a call of Choose.
  static constexpr absl::Duration kPollInterval = absl::Milliseconds(50);
  // Long pauses after which a socket has BBR, and short ones in a row after
  // which these are forgotten and it has CUBIC again; polls without a long one
  // after which they are forgotten, too.
  static constexpr int kLongPauses = 3, kShortPauses = 4, kForgetAfter = 1200;
  // Losses after which a socket has BBR, and polls between two that count: one
  // queue that overflows loses packets for some round trips.  kForgetAfter
  // holds of them, too.
  static constexpr int kLosses = 3, kApart = 20;
  // Round trips, and polls at least, for which CUBIC's window holds back what
  // is ready until a socket has BBR.  In so many round trips a slow start sends
  // half a gigabyte.  A poll at which it does not counts twice against them.
  // After kForgetAfter polls the socket has CUBIC again.
  static constexpr int kHeldRoundTrips = 15, kHeldPolls = 20;
  // A link has a queue, and so no room, from so many times its least round trip
  // on.
  static constexpr double kQueue = 1.25;
  // On shorter links the window grows back at once.
  static constexpr absl::Duration kLongLink = absl::Milliseconds(10);
  // From this round trip on, as over a satellite, a socket has BBR at once.
  static constexpr absl::Duration kVeryLongLink = absl::Milliseconds(400);

  struct Facts {
    absl::Duration idle = {};  // since it last sent
    absl::Duration rto = {}, rtt = {};
    uint32_t resent = 0;  // packets, so far
    bool held = false;    // the window is full, and more is ready
    absl::Duration least_rtt = {};
  };

  // `pauses`: the kernel starts slowly after one.
  explicit CongestionChooser(bool pauses) : pauses_(pauses) {}

  // Returns what the socket should have.
  std::string_view Choose(const Facts& facts);
  // Whether a socket that could not have what was chosen last should have
  // others beside it: its losses or its window are the reason, and the link is
  // long.
  bool NeedsOthers() const { return needs_others_; }

 private:
  bool Pauses(const Facts& facts);
  bool Loses(const Facts& facts);
  bool IsHeldBack(const Facts& facts);

  bool pauses_;
  absl::Duration idle_;   // at the last poll
  int short_pauses_ = 0;  // since the last long one
  int long_pauses_ = 0;
  int polls_ = 0;  // since the last long one
  bool outlasts_ = false;
  uint32_t resent_ = 0;  // at the last poll
  int losses_ = 0;
  int since_loss_ = kApart;  // polls since one that counted
  int held_polls_ = 0;       // less twice those without
  int held_back_ = 0;        // polls for which the socket still has BBR for it
  bool chose_bbr_ = false;   // at the last poll, for one of these reasons
  bool needs_others_ = false;
};

// Set by Poll() once a socket needs others beside it.
using OutgrownFlag = std::shared_ptr<bool>;

// Polls the sockets of a process.
class SocketCongestion {
 public:
  static constexpr absl::Duration kPollInterval =
      CongestionChooser::kPollInterval;

  // `pauses` as above.  `gives_bbr`: otherwise all sockets keep CUBIC.
  explicit SocketCongestion(bool pauses, bool gives_bbr = true)
      : pauses_(pauses), gives_bbr_(gives_bbr) {}

  // A socket that connects or was accepted, which its owner may close at any
  // time.  `outgrown` may be null.  Any thread.
  void Add(int fd, OutgrownFlag outgrown = nullptr);
  // Polls all of them, and drops those that are closed.
  void Poll();
  // The sockets that it polls.
  size_t watched() const {
    MutexLock lock(&mu_);
    return sockets_.size();
  }
  // Times that one of them was given BBR.
  uint64_t chose_bbr() const { return chose_bbr_; }

 private:
  struct Socket {
    int fd = -1;
    // The kernel's name of the socket: the descriptor may be another's by now.
    uint64_t cookie = 0;
    CongestionChooser chooser;
    OutgrownFlag outgrown;
    std::string_view should_have = "cubic";
    bool refused = false;  // it cannot have that
  };
  const bool pauses_, gives_bbr_;
  std::atomic<uint64_t> chose_bbr_ = 0;
  mutable Mutex mu_;
  std::vector<Socket> sockets_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_CONGESTION_H_
