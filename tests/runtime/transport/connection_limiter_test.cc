// Places of unauthenticated connections: their holders, and for how long.

#include "runtime/transport/grpc/connection_limiter.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/runtime/transport/raw_socket.h"

namespace gossamer {
namespace connection_limiter_test {

// A limiter that is asked about the connections of a port.
class LimitedPort {
 public:
  explicit LimitedPort(size_t most,
                       absl::Duration ban_time = ConnectionLimiter::kBanTime)
      : limiter(most, ConnectionLimiter::kMaxPerIdentity, ban_time) {}
  ~LimitedPort() {
    for (const int socket : accepted_) ::close(socket);
  }
  LimitedPort(const LimitedPort&) = delete;
  LimitedPort& operator=(const LimitedPort&) = delete;

  // Accepts the next connection; the limiter has not seen it.
  void Accept() { accepted_.push_back(listener_.Accept()); }
  // Returns whether the limiter allows it.
  bool Allow() { return limiter.Allow(accepted_.back()); }
  // Waits until this end knows that the other has reset it.
  void AwaitReset() const {
    pollfd poll = {.fd = accepted_.back(), .events = 0, .revents = 0};
    EXPECT_EQ(::poll(&poll, 1, 60'000), 1);
  }

 private:
  const RawListener listener_;
  std::vector<int> accepted_;

 public:
  ConnectionLimiter limiter;
  const int number = listener_.port();
};

TEST(ConnectionLimiterTest, AConnectionResetBeforeItIsAcceptedHoldsNoPlace) {
  LimitedPort port(8);  // four of one host
  for (int i = 0; i < 8; ++i) {
    RawSocket(port.number).Reset();
    port.Accept();
    port.AwaitReset();
    EXPECT_FALSE(port.Allow());
  }
  EXPECT_EQ(port.limiter.unauthenticated(), 0u);
  std::vector<std::unique_ptr<RawSocket>> unauthenticated;
  for (int i = 0; i < 8; ++i) {
    unauthenticated.push_back(
        std::make_unique<RawSocket>(port.number, i < 4 ? 1 : 2));
    port.Accept();
    EXPECT_TRUE(port.Allow()) << i;
  }
  EXPECT_EQ(port.limiter.refused(), 0u) << "there was room for all who stayed";
}

TEST(ConnectionLimiterTest, AnAllowedConnectionThatEndsMakesRoom) {
  LimitedPort port(2);
  for (int i = 0; i < 4; ++i) {
    RawSocket unauthenticated(port.number);
    port.Accept();
    EXPECT_TRUE(port.Allow()) << i;
    unauthenticated.Reset();
    port.AwaitReset();
  }
  EXPECT_EQ(port.limiter.unauthenticated(), 0u);
}

TEST(ConnectionLimiterTest, AHostThatFloodsIsKeptOut) {
  LimitedPort port(8);
  RawSocket member(port.number, 1), unauthenticated(port.number, 1),
      other(port.number, 2);
  port.Accept();
  EXPECT_TRUE(port.Allow());
  sockaddr_in own = {};
  socklen_t size = sizeof own;
  ::getsockname(member.fd(), reinterpret_cast<sockaddr*>(&own), &size);
  port.limiter.MarkAuthenticated(
      absl::StrCat("ipv4:127.0.0.1:", ntohs(own.sin_port)));
  for (int i = 0; i < 2; ++i) {
    port.Accept();
    EXPECT_TRUE(port.Allow());
  }
  port.limiter.Ban("127.0.0.1");
  EXPECT_TRUE(unauthenticated.EndsWithin(absl::Seconds(60)));
  EXPECT_FALSE(member.EndsWithin(absl::Milliseconds(10)));
  EXPECT_FALSE(other.EndsWithin(absl::Milliseconds(10)));
  EXPECT_EQ(port.limiter.unauthenticated(), 1u);
  RawSocket again(port.number, 1), third(port.number, 3);
  port.Accept();
  EXPECT_FALSE(port.Allow());
  EXPECT_TRUE(again.EndsWithin(absl::Seconds(60)));
  EXPECT_EQ(port.limiter.refused(), 2u);
  port.Accept();
  EXPECT_TRUE(port.Allow());
}

TEST(ConnectionLimiterTest, AHostThatFloodedComesBackAfterTheBan) {
  LimitedPort port(8, absl::ZeroDuration());
  RawSocket unauthenticated(port.number);
  port.Accept();
  EXPECT_TRUE(port.Allow());
  port.limiter.Ban("127.0.0.1");
  EXPECT_TRUE(unauthenticated.EndsWithin(absl::Seconds(60)));
  RawSocket again(port.number);
  port.Accept();
  EXPECT_TRUE(port.Allow());
}

}  // namespace connection_limiter_test
}  // namespace gossamer
