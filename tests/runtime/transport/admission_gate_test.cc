// Places of unauthenticated connections: their holders, and for how long.

#include "runtime/transport/grpc/admission_gate.h"

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
namespace {

// A gate that is asked about the connections of a port.
class Door {
 public:
  explicit Door(size_t most, absl::Duration bar = AdmissionGate::kBar)
      : gate(most, AdmissionGate::kMostOfOne, bar) {}
  ~Door() {
    for (const int socket : accepted_) ::close(socket);
  }
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  // Accepts the next connection; the gate has not seen it.
  void Accept() { accepted_.push_back(listener_.Accept()); }
  // Returns whether the gate admits it.
  bool Admit() { return gate.Admit(accepted_.back()); }
  // Waits until this end knows that the other has reset it.
  void AwaitReset() const {
    pollfd poll = {.fd = accepted_.back(), .events = 0, .revents = 0};
    EXPECT_EQ(::poll(&poll, 1, 60'000), 1);
  }

 private:
  const RawListener listener_;
  std::vector<int> accepted_;

 public:
  AdmissionGate gate;
  const int port = listener_.port();
};

TEST(AdmissionGateTest, AConnectionResetBeforeItIsAcceptedHoldsNoPlace) {
  Door door(8);  // four of one host
  for (int i = 0; i < 8; ++i) {
    RawSocket(door.port).Reset();
    door.Accept();
    door.AwaitReset();
    EXPECT_FALSE(door.Admit());
  }
  EXPECT_EQ(door.gate.strangers(), 0u);
  std::vector<std::unique_ptr<RawSocket>> strangers;
  for (int i = 0; i < 8; ++i) {
    strangers.push_back(std::make_unique<RawSocket>(door.port, i < 4 ? 1 : 2));
    door.Accept();
    EXPECT_TRUE(door.Admit()) << i;
  }
  EXPECT_EQ(door.gate.refused(), 0u) << "there was room for all who stayed";
}

TEST(AdmissionGateTest, AnAdmittedConnectionThatEndsMakesRoom) {
  Door door(2);
  for (int i = 0; i < 4; ++i) {
    RawSocket stranger(door.port);
    door.Accept();
    EXPECT_TRUE(door.Admit()) << i;
    stranger.Reset();
    door.AwaitReset();
  }
  EXPECT_EQ(door.gate.strangers(), 0u);
}

TEST(AdmissionGateTest, AHostThatFloodsIsKeptOut) {
  Door door(8);
  RawSocket member(door.port, 1), stranger(door.port, 1), other(door.port, 2);
  door.Accept();
  EXPECT_TRUE(door.Admit());
  sockaddr_in own = {};
  socklen_t size = sizeof own;
  ::getsockname(member.fd(), reinterpret_cast<sockaddr*>(&own), &size);
  door.gate.Believe(absl::StrCat("ipv4:127.0.0.1:", ntohs(own.sin_port)));
  for (int i = 0; i < 2; ++i) {
    door.Accept();
    EXPECT_TRUE(door.Admit());
  }
  door.gate.Bar("127.0.0.1");
  EXPECT_TRUE(stranger.EndsWithin(absl::Seconds(60)));
  EXPECT_FALSE(member.EndsWithin(absl::Milliseconds(10)));
  EXPECT_FALSE(other.EndsWithin(absl::Milliseconds(10)));
  EXPECT_EQ(door.gate.strangers(), 1u);
  RawSocket again(door.port, 1), third(door.port, 3);
  door.Accept();
  EXPECT_FALSE(door.Admit());
  EXPECT_TRUE(again.EndsWithin(absl::Seconds(60)));
  EXPECT_EQ(door.gate.refused(), 2u);
  door.Accept();
  EXPECT_TRUE(door.Admit());
}

TEST(AdmissionGateTest, AHostThatFloodedComesBackAfterTheBar) {
  Door door(8, absl::ZeroDuration());
  RawSocket stranger(door.port);
  door.Accept();
  EXPECT_TRUE(door.Admit());
  door.gate.Bar("127.0.0.1");
  EXPECT_TRUE(stranger.EndsWithin(absl::Seconds(60)));
  RawSocket again(door.port);
  door.Accept();
  EXPECT_TRUE(door.Admit());
}

}  // namespace
}  // namespace gossamer
