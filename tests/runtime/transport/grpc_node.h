// Peers over gRPC for tests, which record their events.

#ifndef GOSSAMER_TESTS_RUNTIME_TRANSPORT_GRPC_NODE_H_
#define GOSSAMER_TESTS_RUNTIME_TRANSPORT_GRPC_NODE_H_

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/mutex.h"
#include "gtest/gtest.h"
#include "runtime/base/real_loop.h"
#include "runtime/transport/grpc/grpc_transport.h"
#include "runtime/transport/grpc/hello.h"
#include "tests/runtime/transport/backend.h"
#include "tests/runtime/transport/raw_client.h"

namespace gossamer {

using Seen = Recorder::Seen;

inline constexpr PeerId kA{1};
inline constexpr PeerId kB{2};
inline constexpr absl::Duration kLimit = absl::Seconds(60);

inline GrpcOptions OptionsOf(PeerId self) {
  GrpcOptions options;
  options.self = self;
  options.run_id = "run";
  options.initial_backoff = absl::Milliseconds(5);
  options.max_backoff = absl::Milliseconds(50);
  options.max_body_bytes = 1 << 20;
  return options;
}

// A peer with a loop, which records its events.
class Node {
 public:
  explicit Node(GrpcOptions options) {
    options.on_problem = [this](PeerId peer, const absl::Status& why) {
      MutexLock lock(&mu_);
      problems_.push_back(why);
      reported_.SignalAll();
    };
    auto transport = GrpcTransport::Create(&loop, options);
    if (!transport.ok()) {
      ADD_FAILURE() << transport.status();
      std::abort();
    }
    transport_ = *std::move(transport);
    transport_->SetListener(&recorder);
    loop.Start();
  }
  ~Node() {
    loop.PostAndWait([this] { transport_.reset(); }, kLimit);
  }
  std::string address() const {
    return absl::StrCat("127.0.0.1:", transport_->port());
  }
  void Connect(PeerId peer, const std::string& address) {
    loop.PostAndWait([&] { transport_->Connect(peer, address); }, kLimit);
  }
  bool Send(PeerId peer, size_t bytes) {
    bool sent = false;
    loop.PostAndWait(
        [&] {
          sent = transport_->Send(
              peer, Channel::kEdge,
              {SharedBytes(), SharedBytes::FromVector(ByteVector(bytes))});
        },
        kLimit);
    return sent;
  }
  uint64_t UnauthenticatedRefused() {
    uint64_t refused = 0;
    loop.PostAndWait(
        [&] { refused = transport_->counters().unauthenticated_refused; },
        kLimit);
    return refused;
  }
  template <typename F>
  bool Await(F condition) {
    return recorder.Await(condition, kLimit);
  }
  // Returns the first reported problem, once there is one.
  absl::Status AwaitProblem() {
    MutexLock lock(&mu_);
    reported_.AwaitFor(&mu_, kLimit, [this] { return !problems_.empty(); });
    return problems_.empty() ? absl::OkStatus() : problems_.front();
  }
  // Returns whether one of this kind is reported.
  bool AwaitProblem(absl::StatusCode code) {
    MutexLock lock(&mu_);
    const auto reported = [&] {
      return std::ranges::any_of(
          problems_, [&](const absl::Status& p) { return p.code() == code; });
    };
    reported_.AwaitFor(&mu_, kLimit, reported);
    return reported();
  }
  size_t CountProblems() {
    MutexLock lock(&mu_);
    return problems_.size();
  }

  RealLoop loop;
  Recorder recorder;

 private:
  Mutex mu_;
  CondVar reported_;
  std::vector<absl::Status> problems_;
  std::unique_ptr<GrpcTransport> transport_;
};

inline TransportHello HelloOfB() {
  return {.self = kB, .target = kA, .attempt = 1, .run_id = "run"};
}

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_RUNTIME_TRANSPORT_GRPC_NODE_H_
