#include "runtime/transport/grpc/flood_guard.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/allocator.h"
#include "runtime/base/steady_time.h"

namespace gossamer {
namespace {

// The kernel is asked twice about a socket.  Bytes that come in between count
// as read, which a window allows for some time; a thread that was kept waiting
// for longer polls again the next time.
constexpr absl::Duration kAtOnce = absl::Milliseconds(20);

// By then gRPC and the loop have dropped the calls of a flood.
constexpr absl::Duration kGiveBackAfter = absl::Seconds(5);

// TCP_INFO as the kernel has it.  The tcp_info of a C library is no part of it:
// that of older ones ends before the bytes, and that of newer ones after them.
struct LongTcpInfo {
  alignas(uint64_t) std::array<std::byte, 104> start;
  uint64_t pacing_rate, max_pacing_rate;
  uint64_t bytes_acked, bytes_received;
};

}  // namespace

bool FloodBudget::Exceeded(const Facts& facts, absl::Duration passed,
                           absl::FunctionRef<uint64_t()> begun) {
  const double due = facts.read - kShare * facts.sent -
                     (1 + kShare) * facts.message_bytes -
                     kPerMessage * static_cast<double>(facts.messages);
  // Allowances that were not needed do not last: a connection that was quiet
  // for a day may bring no more than a new one.
  debt_ = std::max(0.0, debt_ + due - std::exchange(due_, due) -
                            kRate * absl::ToDoubleSeconds(passed));
  if (debt_ <= kBurst) return false;
  // More may be of messages that are under way, but calls are heard of.
  return begun() > facts.calls + kUnheard ||
         debt_ > kFirst + (facts.calls == 0 ? 0 : window_);
}

FloodGuard::~FloodGuard() {
  {
    MutexLock lock(&mu_);
    stop_ = true;
  }
  stopped_.Signal();
  if (thread_.joinable()) thread_.join();
}

void FloodGuard::Start() {
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
}

void FloodGuard::Run() {
  for (;;) {
    Poll();
    MutexLock lock(&mu_);
    if (SteadyNow() >= give_back_at_) {
      give_back_at_ = absl::InfiniteFuture();
      GiveBackFreedMemory();
    }
    stopped_.WaitFor(&mu_, kPollInterval);
    if (stop_) return;
  }
}

void FloodGuard::Add(int socket) {
  const std::optional<uint64_t> cookie = CookieOf(socket);
  OtherEnd other = OtherEndOf(socket);
  if (!cookie.has_value() || other.address.empty()) return;
  MutexLock lock(&mu_);
  connections_.insert_or_assign(
      std::move(other.address),
      Connection{.socket = socket,
                 .host = std::move(other.host),
                 .cookie = *cookie,
                 .checked_at = SteadyNow(),
                 .budget = FloodBudget(window_),
                 .account = std::make_shared<FloodAccount>()});
}

std::shared_ptr<FloodAccount> FloodGuard::AccountOf(absl::string_view address) {
  const std::string plain = PlainAddress(address);
  MutexLock lock(&mu_);
  const auto it = connections_.find(plain);
  return it == connections_.end() ? nullptr : it->second.account;
}

FloodGuard::Verdict FloodGuard::Check(Connection& connection) {
  const absl::Time now = SteadyNow();
  // The messages come first: none may count before its bytes do.
  FloodBudget::Facts facts = {
      .calls = connection.account->calls(),
      .messages = connection.account->messages(),
      .message_bytes = static_cast<double>(connection.account->bytes())};
  int unread = 0;
  LongTcpInfo info = {};
  socklen_t size = sizeof info;
  if (CookieOf(connection.socket) != connection.cookie ||
      ::ioctl(connection.socket, SIOCINQ, &unread) != 0 ||
      ::getsockopt(connection.socket, IPPROTO_TCP, TCP_INFO, &info, &size) !=
          0) {
    return Verdict::kClosed;
  }
  if (SteadyNow() - now > kAtOnce) return Verdict::kGood;
  // Bytes that wait in the kernel have cost nothing yet.
  facts.read = static_cast<double>(info.bytes_received) - unread;
  facts.sent = static_cast<double>(info.bytes_acked);
  const absl::Duration passed = now - std::exchange(connection.checked_at, now);
  connection.count = false;
  const auto begun = [&]() -> uint64_t {
    connection.count = true;
    return connection.counted == 0 ? 0 : CallsBegun(connection.counted);
  };
  return connection.budget.Exceeded(facts, passed, begun) ? Verdict::kFloods
                                                          : Verdict::kGood;
}

void FloodGuard::Poll() {
  const std::map<std::string, uint64_t> uncounted = CheckAll();
  if (uncounted.empty()) return;
  // The list of all connections is long: it is read once for all of these, and
  // without the lock, which every call needs.
  const std::map<std::string, CountedConnection> counted = CountedConnections();
  MutexLock lock(&mu_);
  for (const auto& [address, cookie] : uncounted) {
    const auto connection = connections_.find(address);
    const auto found = counted.find(address);
    if (connection != connections_.end() && found != counted.end() &&
        connection->second.cookie == cookie) {
      connection->second.counted = found->second;
    }
  }
}

std::map<std::string, uint64_t> FloodGuard::CheckAll() {
  std::map<std::string, uint64_t> uncounted;
  MutexLock lock(&mu_);
  for (auto it = connections_.begin(); it != connections_.end();) {
    const auto& [address, connection] = *it;
    const Verdict verdict = Check(it->second);
    if (verdict == Verdict::kGood) {
      if (connection.count && connection.counted == 0) {
        uncounted.emplace(address, connection.cookie);
      }
      ++it;
      continue;
    }
    if (verdict == Verdict::kFloods) {
      ResetSocket(connection.socket);
      limiter_->Ban(connection.host);
      give_back_at_ = std::min(give_back_at_, SteadyNow() + kGiveBackAfter);
      reports_.push_back(absl::StrCat(
          "a flood of HTTP/2 from ", address, ": its host may not connect for ",
          absl::FormatDuration(ConnectionLimiter::kBanTime)));
    }
    it = connections_.erase(it);
  }
  return uncounted;
}

std::vector<std::string> FloodGuard::TakeReports() {
  MutexLock lock(&mu_);
  return std::exchange(reports_, {});
}

}  // namespace gossamer
