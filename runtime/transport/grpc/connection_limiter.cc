#include "runtime/transport/grpc/connection_limiter.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "runtime/base/descriptor_limit.h"
#include "runtime/base/steady_time.h"
#include "runtime/transport/grpc/socket_names.h"

namespace gossamer {
namespace {

// Returns the number of descriptors that connections may reach.  The kernel
// gives out the least free number, so a socket with this number shows that
// about as many are in use.  The rest is for files, for connections that the
// process dials, and for refused ones that gRPC has not closed yet.
size_t CeilingOf(size_t limit) {
  return limit - std::min<size_t>(limit / 4, 256);
}

uint64_t FileOf(int socket) {
  struct stat info = {};
  // A descriptor's number is used again after a close; the inode tells which
  // file it is.
  return ::fstat(socket, &info) == 0 ? info.st_ino : 0;
}

}  // namespace

ConnectionLimiter::ConnectionLimiter(size_t most, size_t max_per_identity,
                                     absl::Duration ban_time,
                                     size_t descriptors)
    : ceiling_(CeilingOf(DescriptorLimit())),
      descriptors_(descriptors),
      // Neighbours keep the other half, whatever unauthenticated connections
      // do.
      most_(std::min(most, ceiling_ / descriptors / 2)),
      max_per_identity_(max_per_identity),
      ban_time_(ban_time) {}

void ConnectionLimiter::Watch(int listener) {
  MutexLock lock(&mu_);
  listeners_[listener] = FileOf(listener);
}

// Accepts and closes the connections that wait.  gRPC accepts all that wait in
// one go, and closes none before: a burst would take the last descriptor.
void ConnectionLimiter::CloseBacklog() {
  for (const auto& [listener, file] : listeners_) {
    // The listener is closed by now.
    if (file == 0 || FileOf(listener) != file) continue;
    for (int socket = 0;
         (socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      ::close(socket);
      ++refused_;
    }
  }
}

bool ConnectionLimiter::Full(const std::string& host) const {
  size_t alike = 0;
  // The table has at most `most_` entries, and this runs once a connection.
  for (const auto& [socket, other] : unauthenticated_) {
    alike += other.host == host;
  }
  return unauthenticated_.size() >= most_ || alike >= (most_ + 1) / 2;
}

bool ConnectionLimiter::Banned(const std::string& host) {
  std::erase_if(banned_,
                [now = SteadyNow()](const auto& b) { return b.second <= now; });
  return banned_.contains(host);
}

void ConnectionLimiter::Ban(const std::string& host) {
  MutexLock lock(&mu_);
  banned_[host] = SteadyNow() + ban_time_;
  // The host may have opened more connections, to begin again on each.
  refused_ += std::erase_if(unauthenticated_, [&](const auto& s) {
    if (s.second.host != host) return false;
    if (OtherEndOf(s.first).address == s.second.address) {
      ResetSocket(s.first);
    }
    return true;
  });
}

bool ConnectionLimiter::Allow(int socket) {
  auto [host, address] = OtherEndOf(socket);
  MutexLock lock(&mu_);
  authenticated_.erase(socket);  // the connection that had this number has gone
  if (address.empty()) {
    // The connection was reset before it was accepted.  In the table it would
    // hold a place for ever: PruneClosed() compares addresses, and it has
    // none.
    unauthenticated_.erase(socket);
    ::shutdown(socket, SHUT_RDWR);
    return false;
  }
  // Closed sockets are only looked for when places run out: each look is a
  // system call.
  if (Full(host)) PruneClosed();
  const bool scarce = static_cast<size_t>(socket) >= ceiling_;
  if (Full(host) || scarce || Banned(host)) {
    ++refused_;
    // The socket is shut down and not closed: the descriptor is its owner's,
    // which closes it when it finds it ended.
    ::shutdown(socket, SHUT_RDWR);
    if (scarce) CloseBacklog();
    return false;
  }
  unauthenticated_[socket] = {.host = std::move(host),
                              .address = std::move(address)};
  return true;
}

// Sockets are closed without notice.  A number that is closed, or by now
// another connection's, is no longer connected to the same address.
void ConnectionLimiter::PruneClosed() {
  const auto closed = [](const auto& s) {
    return OtherEndOf(s.first).address != s.second.address;
  };
  std::erase_if(unauthenticated_, closed);
  std::erase_if(authenticated_, closed);
}

void ConnectionLimiter::Keep(int socket, Authenticated authenticated) {
  PruneClosed();
  size_t alike = 0;
  auto eldest = authenticated_.end();
  for (auto k = authenticated_.begin(); k != authenticated_.end(); ++k) {
    if (k->second.who != authenticated.who) continue;
    ++alike;
    if (eldest == authenticated_.end() ||
        k->second.number < eldest->second.number) {
      eldest = k;
    }
  }
  // The eldest gives way, not the newest: after a loss the newest connection is
  // the one that works.
  if (alike >= max_per_identity_) {
    ::shutdown(eldest->first, SHUT_RDWR);
    authenticated_.erase(eldest);
  }
  authenticated_[socket] = std::move(authenticated);
}

void ConnectionLimiter::MarkAuthenticated(absl::string_view address,
                                          absl::string_view who) {
  const std::string plain = PlainAddress(address);
  MutexLock lock(&mu_);
  const auto found = std::ranges::find_if(unauthenticated_, [&](const auto& s) {
    return s.second.address == plain;
  });
  if (found == unauthenticated_.end()) return;
  const int socket = found->first;
  unauthenticated_.erase(found);
  // Without a proved identity the connection counts neither here nor among the
  // unauthenticated.
  if (who.empty()) return;
  Keep(socket,
       {.who = std::string(who), .address = plain, .number = next_number_++});
}

size_t ConnectionLimiter::unauthenticated() {
  MutexLock lock(&mu_);
  PruneClosed();
  return unauthenticated_.size();
}

uint64_t ConnectionLimiter::refused() {
  MutexLock lock(&mu_);
  return refused_;
}

}  // namespace gossamer
