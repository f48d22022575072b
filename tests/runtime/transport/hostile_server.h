// A server that answers every call with a gzip bomb, or with given bytes, and
// then ends the call or waits until the other end does.

#ifndef GOSSAMER_TESTS_RUNTIME_TRANSPORT_HOSTILE_SERVER_H_
#define GOSSAMER_TESTS_RUNTIME_TRANSPORT_HOSTILE_SERVER_H_

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace gossamer {

// Returns zeros, of which this end holds one MiB: a thousandth on the wire.
inline grpc::ByteBuffer Bomb(size_t mebibytes) {
  const std::vector<grpc::Slice> slices(
      mebibytes, grpc::Slice(std::string(1 << 20, '\0')));
  return {slices.data(), slices.size()};
}

class HostileServer {
 public:
  HostileServer() : HostileServer(Bomb(128), GRPC_COMPRESS_GZIP) {}
  explicit HostileServer(const std::string& answer, bool waits = false)
      : HostileServer(ToBuffer(answer), GRPC_COMPRESS_NONE, waits) {}
  HostileServer(grpc::ByteBuffer answer, grpc_compression_algorithm algorithm,
                bool waits = false)
      : service_(std::move(answer), algorithm, waits) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~HostileServer() { server_->Shutdown(std::chrono::system_clock::now()); }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  struct Service;
  static grpc::ByteBuffer ToBuffer(const std::string& bytes) {
    const grpc::Slice slice(bytes);
    return {&slice, 1};
  }
  class Answer final : public grpc::ServerGenericBidiReactor {
   public:
    Answer(grpc::GenericCallbackServerContext* context, const Service& service)
        : answer_(service.answer), waits_(service.waits) {
      context->set_compression_algorithm(service.algorithm);
      StartRead(&asked_);
    }
    void OnReadDone(bool ok) override {
      if (!answered_.exchange(true)) return StartWrite(&answer_);
      ok ? StartRead(&asked_) : Finish(grpc::Status::OK);
    }
    void OnWriteDone(bool) override {
      waits_ ? StartRead(&asked_) : Finish(grpc::Status::OK);
    }
    void OnDone() override { delete this; }

   private:
    grpc::ByteBuffer asked_;
    const grpc::ByteBuffer answer_;
    const bool waits_;
    std::atomic<bool> answered_ = false;  // set by any thread of gRPC
  };
  struct Service final : public grpc::CallbackGenericService {
    Service(grpc::ByteBuffer a, grpc_compression_algorithm c, bool w)
        : answer(std::move(a)), algorithm(c), waits(w) {}
    grpc::ServerGenericBidiReactor* CreateReactor(
        grpc::GenericCallbackServerContext* context) override {
      return new Answer(context, *this);
    }
    const grpc::ByteBuffer answer;
    const grpc_compression_algorithm algorithm;
    const bool waits;
  };

  int port_ = 0;
  Service service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_RUNTIME_TRANSPORT_HOSTILE_SERVER_H_
