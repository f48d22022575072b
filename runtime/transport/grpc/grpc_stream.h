// The I/O of one gRPC stream, dialled or accepted: a queue of frames out, a
// sequence of frames in.
//
// Internal to transport/grpc; loop only.  This header knows nothing of peers;
// its owner decides what follows when a stream ends.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_GRPC_STREAM_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_GRPC_STREAM_H_

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/transport/grpc/chunking.h"
#include "runtime/transport/grpc/flood_guard.h"
#include "runtime/transport/grpc/hello.h"
#include "runtime/transport/transport.h"

namespace gossamer {

class GrpcStream;
using GrpcStreamPtr = std::shared_ptr<GrpcStream>;

// The events of streams, all on the loop.
class GrpcStreamOwner {
 public:
  virtual ~GrpcStreamOwner() = default;
  virtual void OnAccepted(GrpcStreamPtr stream) = 0;
  virtual void OnHello(GrpcStreamPtr stream, TransportHello hello) = 0;
  virtual void OnFrame(GrpcStreamPtr stream, ReceivedFrame frame) = 0;
  // A chunk has come that does not end its frame.
  virtual void OnChunk(const GrpcStreamPtr& stream) = 0;
  // A frame of `bytes` comes in, and the budget of all streams has too little
  // left for it.  Returns true if there may be enough now.
  virtual bool OnFull(const GrpcStreamPtr& stream, size_t bytes) = 0;
  // No further stream will be accepted.
  virtual void OnAcceptEnded() = 0;
  // The last event of a stream; none of its operations is under way any more.
  virtual void OnEnd(GrpcStreamPtr stream, absl::Status why) = 0;
};

struct GrpcStreamLimits {
  size_t max_body_bytes;
  size_t chunk_bytes;
  std::shared_ptr<ByteBudget> all_bytes;  // the budget of all streams together
};

class GrpcStream final : public std::enable_shared_from_this<GrpcStream> {
 public:
  // Dials: opens the stream over `channel` and sends the hello.  `owner` and
  // `cq` outlive the stream's last event.
  static GrpcStreamPtr Dial(GrpcStreamOwner* owner, GrpcStreamLimits limits,
                            std::shared_ptr<grpc::Channel> channel,
                            grpc::CompletionQueue* cq,
                            const TransportHello& hello);
  // Waits for the next call of `service` and makes a stream of it.
  static void Accept(GrpcStreamOwner* owner, GrpcStreamLimits limits,
                     grpc::AsyncGenericService* service,
                     grpc::ServerCompletionQueue* cq);

  GrpcStream(GrpcStreamOwner* owner, GrpcStreamLimits limits, bool dialled);
  bool dialled() const { return dialled_; }

  // Answers the hello of the dialling end.
  void SendHello(const TransportHello& hello);
  // Returns false if all streams together would hold more than their limit.
  bool Send(Channel channel, Frame frame, size_t parts = 0);
  // Bytes that wait to be handed to the network; held() counts those of the
  // incoming frame too.
  size_t queued() const { return queued_.held(); }
  size_t held() const { return queued_.held() + assembler_.held(); }
  // The time at which the incoming frame began, and its bytes; InfiniteFuture
  // and 0 between frames.
  absl::Time frame_begun() const {
    return assembler_.filled() == 0 ? absl::InfiniteFuture() : first_chunk_at_;
  }
  size_t frame_bytes() const { return assembler_.expected(); }
  // The identity that the other end has proved to gRPC, from its hello to the
  // last event; null before and after.
  std::shared_ptr<const grpc::AuthContext> caller() const;
  // The address of an accepted stream's other end, as gRPC writes it; empty for
  // a dialled one.
  const std::string& address() const { return address_; }
  // Credits this stream, whose hello was accepted, and its messages from now on
  // to `account`.
  void CreditTo(std::shared_ptr<FloodAccount> account);
  // Ends the stream.  The other end hears the reason if this end accepted the
  // stream and is not in the middle of a write.
  void End(const absl::Status& why);

  // The target of a completion queue's tag.
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
  void StartRead();
  // Writes the next message of the queue, if there is one.
  void WriteNext();
  void Close(const absl::Status& why);
  void Proceed();
  void EndIfIdle();
  void Cancel();

  GrpcStreamOwner* const owner_;
  const GrpcStreamLimits limits_;
  const bool dialled_;

  // Set in a dialled stream.
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<grpc::ClientContext> client_context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> client_;
  grpc::Status client_status_;
  // Set in an accepted stream.
  std::unique_ptr<grpc::GenericServerContext> server_context_;
  std::unique_ptr<grpc::GenericServerAsyncReaderWriter> server_;
  grpc::AsyncGenericService* service_ = nullptr;
  grpc::ServerCompletionQueue* server_queue_ = nullptr;
  // The reader and the writer of the one of the two that is set.
  grpc::internal::AsyncReaderInterface<grpc::ByteBuffer>* reader_ = nullptr;
  grpc::internal::AsyncWriterInterface<grpc::ByteBuffer>* writer_ = nullptr;

  Tag start_tag_{this, &GrpcStream::OnStarted};
  Tag read_tag_{this, &GrpcStream::OnRead};
  Tag write_tag_{this, &GrpcStream::OnWritten};
  Tag finish_tag_{this, &GrpcStream::OnFinished};

  grpc::ByteBuffer incoming_;
  std::vector<grpc::Slice> slices_;
  std::vector<std::span<const std::byte>> pieces_;
  FrameAssembler assembler_;
  size_t first_chunk_bytes_ = 0;
  absl::Time first_chunk_at_;
  bool greeted_ = false;
  std::string address_;
  std::shared_ptr<FloodAccount> account_;  // null: nobody counts

  grpc::ByteBuffer outgoing_;
  GrpcStreamPtr self_;  // keeps the stream alive until its last event
  std::optional<grpc::ByteBuffer> hello_;
  std::deque<FrameChunker> queue_;
  ByteBudget::Share queued_;
  bool started_ = false;
  bool reading_ = false;
  bool writing_ = false;
  bool write_failed_ = false;
  bool closing_ = false;
  bool other_ended_ = false;
  bool finishing_ = false;
  bool finished_ = false;
  absl::Status why_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_GRPC_STREAM_H_
