// Peers over gRPC for tests: one that notes what it is told, and a client that
// says what it likes.

#ifndef GOSSAMER_TESTS_TRANSPORT_GRPC_NODE_H_
#define GOSSAMER_TESTS_TRANSPORT_GRPC_NODE_H_

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/base/mutex.h"
#include "runtime/base/real_loop.h"
#include "runtime/transport/grpc/grpc_transport.h"
#include "runtime/transport/grpc/hello.h"
#include "tests/transport/backend.h"

namespace gossamer {

using ByteVector = std::vector<std::byte>;
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

// A peer with a loop, which notes what it is told.
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
              {Payload(), Payload::FromVector(ByteVector(bytes))});
        },
        kLimit);
    return sent;
  }
  uint64_t StrangersRefused() {
    uint64_t refused = 0;
    loop.PostAndWait(
        [&] { refused = transport_->counters().strangers_refused; }, kLimit);
    return refused;
  }
  template <typename F>
  bool Await(F condition) {
    return recorder.Await(condition, kLimit);
  }
  // The first problem reported, once there is one.
  absl::Status AwaitProblem() {
    MutexLock lock(&mu_);
    reported_.AwaitFor(&mu_, kLimit, [this] { return !problems_.empty(); });
    return problems_.empty() ? absl::OkStatus() : problems_.front();
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

// A client that says what it likes.
class RawClient {
 public:
  explicit RawClient(const std::string& address,
                     const char* method = "/gossamer.Edge/Exchange",
                     std::shared_ptr<grpc::ChannelCredentials> credentials =
                         grpc::InsecureChannelCredentials(),
                     grpc::ChannelArguments arguments = {}) {
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = std::make_unique<grpc::GenericStub>(
        grpc::CreateCustomChannel(address, credentials, arguments));
    context_.set_deadline(std::chrono::system_clock::now() +
                          std::chrono::seconds(60));
    call_ = stub_->PrepareCall(&context_, method, &queue_);
    call_->StartCall(nullptr);
    Next();
  }
  ~RawClient() {
    context_.TryCancel();
    queue_.Shutdown();
    void* tag;
    bool ok;
    while (queue_.Next(&tag, &ok)) {
    }
  }
  bool Write(const ByteVector& bytes) {
    const grpc::Slice slice(bytes.data(), bytes.size());
    return Write(grpc::ByteBuffer(&slice, 1));
  }
  bool Write(const grpc::ByteBuffer& message) {
    call_->Write(message, nullptr);
    return Next();
  }
  bool Read() {
    grpc::ByteBuffer buffer;
    call_->Read(&buffer, nullptr);
    return Next();
  }
  // Reads to the end; what the other end said.
  grpc::Status Finish() {
    while (Read()) {
    }
    grpc::Status status;
    call_->Finish(&status, nullptr);
    Next();
    return status;
  }
  const grpc::ClientContext& context() const { return context_; }

 private:
  bool Next() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }
  std::unique_ptr<grpc::GenericStub> stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

inline TransportHello HelloOfB() {
  return {.self = kB, .target = kA, .attempt = 1, .run_id = "run"};
}

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_TRANSPORT_GRPC_NODE_H_
