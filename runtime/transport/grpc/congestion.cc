#include "runtime/transport/grpc/congestion.h"

#include <linux/tcp.h>  // of tcp_info the fields that <netinet/tcp.h> lacks
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/transport/grpc/socket_names.h"

namespace gossamer {
namespace {

// Less is no pause, but the time between two packets.
constexpr absl::Duration kShortest = absl::Milliseconds(10);
// TCP_ESTABLISHED, which <linux/tcp.h> lacks.
constexpr int kEstablished = 1;

}  // namespace

bool KernelAllows(std::string_view name) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  // Asking is the surest test: allowed lists, modules and privileges all play a
  // part.
  const bool allows = setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                                 static_cast<socklen_t>(name.size())) == 0;
  ::close(fd);
  return allows;
}

std::string_view CongestionChooser::Choose(const Facts& facts) {
  // Each of them sees every poll.
  const bool pauses = Pauses(facts), loses = Loses(facts),
             held = IsHeldBack(facts);
  chose_bbr_ = pauses || loses || held;
  needs_others_ = (loses || held) && facts.least_rtt >= kLongLink;
  return chose_bbr_ || facts.least_rtt >= kVeryLongLink ? "bbr" : "cubic";
}

bool CongestionChooser::IsHeldBack(const Facts& facts) {
  // BBR holds back what it paces.
  const bool held = facts.held && !chose_bbr_ && facts.rtt >= kLongLink &&
                    facts.rtt < kQueue * facts.least_rtt;
  const int enough =
      std::max(kHeldPolls,
               static_cast<int>(kHeldRoundTrips * facts.rtt / kPollInterval));
  held_polls_ = std::max(held_polls_ + (held ? 1 : -2), 0);
  held_back_ = std::max(held_back_ - 1, 0);
  if (held && held_polls_ >= enough) held_back_ = kForgetAfter;
  return held_back_ > 0;
}

bool CongestionChooser::Loses(const Facts& facts) {
  const bool lost = std::exchange(resent_, facts.resent) != facts.resent;
  if (++since_loss_ > kForgetAfter) losses_ = 0;
  if (lost && since_loss_ >= kApart && facts.rtt >= kLongLink) {
    since_loss_ = 0;
    ++losses_;
  }
  return losses_ >= kLosses;
}

bool CongestionChooser::Pauses(const Facts& facts) {
  // Something was sent since the last poll, so the pause before is over.  It
  // was at least as long as it was then.
  const absl::Duration pause =
      facts.idle < idle_ ? idle_ : absl::ZeroDuration();
  idle_ = facts.idle;
  if (++polls_ > kForgetAfter) long_pauses_ = 0;
  if (pause > 2 * facts.rto) {
    short_pauses_ = polls_ = 0;
    if (++long_pauses_ >= kLongPauses) outlasts_ = true;
  } else if (pause >= kShortest && ++short_pauses_ >= kShortPauses) {
    // Fewer are those between the frames of one exchange.
    long_pauses_ = 0;
    outlasts_ = false;
  }
  return pauses_ && outlasts_;
}

void SocketCongestion::Add(int fd, OutgrownFlag outgrown) {
  const std::optional<uint64_t> cookie = CookieOf(fd);
  const bool matters = gives_bbr_ || outgrown != nullptr;
  if (!cookie || !matters) return;
  MutexLock lock(&mu_);
  // A descriptor belongs to one socket, the newest.
  std::erase_if(sockets_, [fd](const Socket& s) { return s.fd == fd; });
  sockets_.push_back({.fd = fd,
                      .cookie = *cookie,
                      .chooser = CongestionChooser(pauses_),
                      .outgrown = std::move(outgrown)});
}

void SocketCongestion::Poll() {
  MutexLock lock(&mu_);
  std::erase_if(sockets_, [this](Socket& s) {
    // The descriptor may be closed and be another socket's at any moment.  The
    // worst is then a choice for a socket that has made none of these pauses.
    tcp_info info = {};
    socklen_t size = sizeof(info);
    if (CookieOf(s.fd) != s.cookie ||
        getsockopt(s.fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
      return true;
    }
    if (info.tcpi_state != kEstablished) return false;
    // While something is not acknowledged the window makes the pauses.
    const absl::Duration idle =
        info.tcpi_unacked == 0 ? absl::Milliseconds(info.tcpi_last_data_sent)
                               : absl::ZeroDuration();
    // A receiver's window and the own network card hold bytes back, too, and
    // then the window of the congestion control is not full.
    const bool full = 4 * static_cast<uint64_t>(info.tcpi_unacked) >=
                      3 * static_cast<uint64_t>(info.tcpi_snd_cwnd);
    // Before its first sample the kernel says 0 and the largest number.
    const absl::Duration least_rtt =
        absl::Microseconds(info.tcpi_rtt == 0 ? 0 : info.tcpi_min_rtt);
    const std::string_view best =
        s.chooser.Choose({.idle = idle,
                          .rto = absl::Microseconds(info.tcpi_rto),
                          .rtt = absl::Microseconds(info.tcpi_rtt),
                          .resent = info.tcpi_total_retrans,
                          // A kernel without the field says 0.
                          .held = info.tcpi_notsent_bytes > 0 && full,
                          .least_rtt = least_rtt});
    if (best != s.should_have) {
      // A kernel that refuses one is asked again after the next change alone.
      s.should_have = best;
      s.refused = !gives_bbr_ ||
                  setsockopt(s.fd, IPPROTO_TCP, TCP_CONGESTION, best.data(),
                             static_cast<socklen_t>(best.size())) != 0;
      if (!s.refused && best == "bbr") ++chose_bbr_;
    }
    if (s.outgrown != nullptr && s.refused && s.chooser.NeedsOthers()) {
      *std::exchange(s.outgrown, nullptr) = true;
    }
    return false;
  });
}

}  // namespace gossamer
