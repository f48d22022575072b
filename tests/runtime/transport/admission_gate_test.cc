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

// Accepts on request, as gRPC does: every connection that the kernel has.
class Door {
 public:
  explicit Door(size_t most) : gate(most) {
    sockaddr_in own = {};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof own;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&own), size), 0);
    EXPECT_EQ(::listen(listener_, 64), 0);
    EXPECT_EQ(
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&own), &size), 0);
    port = ntohs(own.sin_port);
  }
  ~Door() {
    for (const int socket : accepted_) ::close(socket);
    ::close(listener_);
  }
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  // Accepts the next connection; the gate has not seen it.
  void Accept() {
    accepted_.push_back(::accept(listener_, nullptr, nullptr));
    EXPECT_GE(accepted_.back(), 0);
  }
  // Returns whether the gate admits it.
  bool Admit() { return gate.Admit(accepted_.back()); }
  // Waits until this end knows that the other has reset it.
  void AwaitReset() const {
    pollfd poll = {.fd = accepted_.back(), .events = 0, .revents = 0};
    EXPECT_EQ(::poll(&poll, 1, 60'000), 1);
  }

  AdmissionGate gate;
  int port = 0;

 private:
  const int listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::vector<int> accepted_;
};

TEST(AdmissionGateTest, WhoHasGoneBeforeItIsAcceptedHoldsNoPlace) {
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

TEST(AdmissionGateTest, WhoGoesAfterwardsMakesRoom) {
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

}  // namespace
}  // namespace gossamer
