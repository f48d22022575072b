// A gRPC client that sends any bytes to any method.

#ifndef GOSSAMER_TESTS_RUNTIME_TRANSPORT_RAW_CLIENT_H_
#define GOSSAMER_TESTS_RUNTIME_TRANSPORT_RAW_CLIENT_H_

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace gossamer {

using ByteVector = std::vector<std::byte>;

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
  // Reads to the end; returns the other end's status.
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

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_RUNTIME_TRANSPORT_RAW_CLIENT_H_
