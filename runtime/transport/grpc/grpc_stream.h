// The I/O of one gRPC stream, dialled or accepted: a queue of frames out, a
// sequence of frames in.
//
// Internal to transport/grpc.  gRPC's completions come on the I/O thread; the
// loop sends, cancels and says what it has delivered.  Knows nothing of peers
// or of what to do when the stream ends: its owner does.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_GRPC_STREAM_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_GRPC_STREAM_H_

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "runtime/base/mutex.h"
#include "runtime/transport/grpc/chunking.h"
#include "runtime/transport/grpc/hello.h"
#include "runtime/transport/transport.h"

namespace gossamer {

class GrpcStream;
using GrpcStreamPtr = std::shared_ptr<GrpcStream>;

// All on the I/O thread.
class GrpcStreamOwner {
 public:
  virtual ~GrpcStreamOwner() = default;
  virtual void OnAccepted(GrpcStreamPtr stream) = 0;
  virtual void OnHello(GrpcStreamPtr stream, TransportHello hello) = 0;
  virtual void OnFrame(GrpcStreamPtr stream, ReceivedFrame frame) = 0;
  // No further stream will be accepted.
  virtual void OnAcceptEnded() = 0;
  // The last event; nothing of the stream is under way any more.
  virtual void OnEnd(GrpcStreamPtr stream, absl::Status why) = 0;
};

struct GrpcStreamLimits {
  size_t max_body_bytes;
  size_t chunk_bytes;
  size_t max_queued_bytes;
  size_t max_undelivered_bytes;
};

class GrpcStream final : public std::enable_shared_from_this<GrpcStream> {
 public:
  // Dials: opens the stream over `channel` and says hello.  `owner` and `cq`
  // outlive the stream's last event.
  static GrpcStreamPtr Dial(GrpcStreamOwner* owner, GrpcStreamLimits limits,
                            std::shared_ptr<grpc::Channel> channel,
                            grpc::CompletionQueue* cq,
                            const TransportHello& hello);
  // Waits for the next call of `service`.
  static void Accept(GrpcStreamOwner* owner, GrpcStreamLimits limits,
                     grpc::AsyncGenericService* service,
                     grpc::ServerCompletionQueue* cq);

  GrpcStream(GrpcStreamOwner* owner, GrpcStreamLimits limits, bool dialled);
  bool dialled() const { return dialled_; }

  // Answers the hello of the dialling end.
  void SendHello(const TransportHello& hello) ABSL_LOCKS_EXCLUDED(mu_);
  // False if the queue would be over its limit.
  bool Send(Channel channel, Frame frame) ABSL_LOCKS_EXCLUDED(mu_);
  // All that was sent has been handed to the network.
  bool Drained() ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(&mu_);
    return queued_bytes_ == 0;
  }
  // That many bytes of frames are off the owner's hands.
  void Delivered(size_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the stream.  The other end is told why if this end accepted it and is
  // not in the middle of a write.
  void End(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);

  // What a completion queue's tag points to.
  struct Tag {
    GrpcStream* stream;
    void (GrpcStream::*done)(bool ok);
  };

 private:
  void OnStarted(bool ok);
  void OnRead(bool ok);
  void OnWritten(bool ok);
  void OnFinished(bool ok);

  absl::Status Receive();
  void StartRead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes the next message off the queue; false if there is none.
  bool TakeNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WriteMessage() ABSL_LOCKS_EXCLUDED(mu_);
  void CloseLocked(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Proceed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndIfIdle() ABSL_LOCKS_EXCLUDED(mu_);
  void Cancel();

  GrpcStreamOwner* const owner_;
  const GrpcStreamLimits limits_;
  const bool dialled_;

  // Of a dialled stream.
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<grpc::ClientContext> client_context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> client_;
  grpc::Status client_status_;
  // Of an accepted one.
  std::unique_ptr<grpc::GenericServerContext> server_context_;
  std::unique_ptr<grpc::GenericServerAsyncReaderWriter> server_;
  grpc::AsyncGenericService* service_ = nullptr;
  grpc::ServerCompletionQueue* server_queue_ = nullptr;
  // Whichever of the two it is.
  grpc::internal::AsyncReaderInterface<grpc::ByteBuffer>* reader_ = nullptr;
  grpc::internal::AsyncWriterInterface<grpc::ByteBuffer>* writer_ = nullptr;

  Tag start_tag_{this, &GrpcStream::OnStarted};
  Tag read_tag_{this, &GrpcStream::OnRead};
  Tag write_tag_{this, &GrpcStream::OnWritten};
  Tag finish_tag_{this, &GrpcStream::OnFinished};

  // Of the I/O thread.
  grpc::ByteBuffer incoming_;
  std::vector<grpc::Slice> slices_;
  std::vector<std::span<const std::byte>> pieces_;
  FrameAssembler assembler_;
  bool greeted_ = false;

  grpc::ByteBuffer outgoing_;  // of whoever set writing_

  Mutex mu_;
  GrpcStreamPtr self_ ABSL_GUARDED_BY(mu_);  // until the last event
  std::optional<grpc::ByteBuffer> hello_ ABSL_GUARDED_BY(mu_);
  std::deque<FrameChunker> queue_ ABSL_GUARDED_BY(mu_);
  size_t queued_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  size_t undelivered_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  bool started_ ABSL_GUARDED_BY(mu_) = false;
  bool reading_ ABSL_GUARDED_BY(mu_) = false;
  bool paused_ ABSL_GUARDED_BY(mu_) = false;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool write_failed_ ABSL_GUARDED_BY(mu_) = false;
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  bool other_ended_ ABSL_GUARDED_BY(mu_) = false;
  bool finishing_ ABSL_GUARDED_BY(mu_) = false;
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status why_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_GRPC_STREAM_H_
