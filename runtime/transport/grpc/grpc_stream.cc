#include "runtime/transport/grpc/grpc_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/steady_time.h"
#include "runtime/transport/grpc/grpc_status.h"

namespace gossamer {
namespace {

constexpr char kMethod[] = "/gossamer.Edge/Exchange";

// Called by gRPC with the last of its references.
void ReleaseBytes(void* bytes) { delete static_cast<SharedBytes*>(bytes); }

// Returns a slice that references the bytes; `owner` lives until gRPC has sent
// them.
grpc::Slice Reference(std::span<const std::byte> bytes, SharedBytes owner) {
  return grpc::Slice(const_cast<std::byte*>(bytes.data()), bytes.size(),
                     ReleaseBytes, new SharedBytes(std::move(owner)));
}

grpc::ByteBuffer ToMessage(const Chunk& chunk, const SharedBytes& body) {
  grpc::Slice slices[3];
  size_t n = 0;
  // The header and the head are copied: they are small, and need no owner.
  slices[n++] = grpc::Slice(chunk.header().data(), chunk.header().size());
  if (!chunk.head.empty()) {
    slices[n++] = grpc::Slice(chunk.head.data(), chunk.head.size());
  }
  if (!chunk.body.empty()) slices[n++] = Reference(chunk.body, body);
  return grpc::ByteBuffer(slices, n);
}

grpc::ByteBuffer HelloMessage(const TransportHello& hello) {
  const std::vector<std::byte> bytes = EncodeHello(hello);
  const grpc::Slice slice(bytes.data(), bytes.size());
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

GrpcStream::GrpcStream(GrpcStreamOwner* owner, GrpcStreamLimits limits,
                       bool dialled)
    : owner_(owner),
      limits_(limits),
      dialled_(dialled),
      assembler_(limits.max_body_bytes, limits.all_bytes),
      queued_(limits.all_bytes) {}

GrpcStreamPtr GrpcStream::Dial(GrpcStreamOwner* owner, GrpcStreamLimits limits,
                               std::shared_ptr<grpc::Channel> channel,
                               grpc::CompletionQueue* cq,
                               const TransportHello& hello) {
  auto stream = std::make_shared<GrpcStream>(owner, limits, true);
  stream->channel_ = std::move(channel);
  stream->client_context_ = std::make_unique<grpc::ClientContext>();
  stream->client_ =
      grpc::GenericStub(stream->channel_)
          .PrepareCall(stream->client_context_.get(), kMethod, cq);
  stream->reader_ = stream->client_.get();
  stream->writer_ = stream->client_.get();
  stream->hello_ = HelloMessage(hello);
  // The completion queue holds plain pointers: the stream keeps itself until
  // its last event.
  stream->self_ = stream;
  stream->client_->StartCall(&stream->start_tag_);
  return stream;
}

void GrpcStream::Accept(GrpcStreamOwner* owner, GrpcStreamLimits limits,
                        grpc::AsyncGenericService* service,
                        grpc::ServerCompletionQueue* cq) {
  auto stream = std::make_shared<GrpcStream>(owner, limits, false);
  stream->service_ = service;
  stream->server_queue_ = cq;
  stream->server_context_ = std::make_unique<grpc::GenericServerContext>();
  stream->server_ = std::make_unique<grpc::GenericServerAsyncReaderWriter>(
      stream->server_context_.get());
  stream->reader_ = stream->server_.get();
  stream->writer_ = stream->server_.get();
  stream->self_ = stream;
  service->RequestCall(stream->server_context_.get(), stream->server_.get(), cq,
                       cq, &stream->start_tag_);
}

void GrpcStream::OnStarted(bool ok) {
  if (!dialled_) {
    if (!ok) {  // The server shuts down, and there never was a call.
      const GrpcStreamPtr last = std::move(self_);
      owner_->OnAcceptEnded();
      return;
    }
    address_ = server_context_->peer();
    // The next call is awaited before this one goes on, so that the server
    // always has a place for one.
    Accept(owner_, limits_, service_, server_queue_);
    owner_->OnAccepted(shared_from_this());
  }
  started_ = true;
  if (!ok) Close(absl::UnavailableError("the call did not start"));
  // The service is generic, so any method arrives here.
  if (!dialled_ && server_context_->method() != kMethod) {
    Close(absl::UnimplementedError(
        absl::StrCat("this port serves ", kMethod, " only")));
  }
  if (!closing_) {
    StartRead();
    WriteNext();
  }
  Proceed();
}

void GrpcStream::OnRead(bool ok) {
  // The reason that gRPC knows arrives with OnFinished().
  const absl::Status received =
      ok && !closing_ ? Receive()
                      : absl::UnavailableError("the other end has gone");
  reading_ = false;
  other_ended_ |= !ok;
  if (!received.ok()) Close(received);
  // The next read begins only when this message has been taken: a slow consumer
  // slows its sender down by HTTP/2's window.
  if (!closing_) StartRead();
  Proceed();
  EndIfIdle();
}

absl::Status GrpcStream::Receive() {
  slices_.clear();
  pieces_.clear();
  if (!incoming_.Dump(&slices_).ok()) {
    return absl::DataLossError("an unreadable message");
  }
  for (const grpc::Slice& slice : slices_) {
    pieces_.push_back(std::as_bytes(std::span(slice.begin(), slice.size())));
  }
  if (!greeted_) {
    std::vector<std::byte> bytes;
    // The length is checked before the bytes are copied.
    if (incoming_.Length() > kMaxChunkOverhead) {
      return absl::DataLossError("the first message is too long for a hello");
    }
    for (const auto piece : pieces_) {
      bytes.insert(bytes.end(), piece.begin(), piece.end());
    }
    absl::StatusOr<TransportHello> hello = DecodeHello(bytes);
    if (!hello.ok()) return hello.status();
    greeted_ = true;
    owner_->OnHello(shared_from_this(), *std::move(hello));
    return absl::OkStatus();
  }
  if (account_ != nullptr) account_->CreditMessage(incoming_.Length());
  std::optional<ReceivedFrame> frame;
  // The first chunk is not timed: it waited for the sender to begin, the others
  // show what the link gives.
  const bool first = assembler_.filled() == 0;
  absl::Status status = assembler_.Add(pieces_, &frame);
  // The owner may end a connection to make room; the same chunk is then given
  // again.
  while (assembler_.lacks() != 0 &&
         owner_->OnFull(shared_from_this(), assembler_.lacks())) {
    status = assembler_.Add(pieces_, &frame);
  }
  if (first) {
    first_chunk_bytes_ = assembler_.filled();
    first_chunk_at_ = SteadyNow();
  }
  if (!frame.has_value()) {
    if (status.ok()) owner_->OnChunk(shared_from_this());
    return status;
  }
  if (!first) {
    const Frame& f = frame->frame;
    frame->frame.transit = {
        .bytes = f.head.size() + f.body.size() - first_chunk_bytes_,
        .took = SteadyNow() - first_chunk_at_};
  }
  owner_->OnFrame(shared_from_this(), *std::move(frame));
  return status;
}

void GrpcStream::StartRead() {
  reading_ = true;
  reader_->Read(&incoming_, &read_tag_);
}

void GrpcStream::SendHello(const TransportHello& hello) {
  if (closing_ || writing_) return;
  hello_ = HelloMessage(hello);
  WriteNext();
}

bool GrpcStream::Send(Channel channel, Frame frame, size_t parts) {
  const size_t bytes = HeldBytes(frame);
  // The call is over, but the owner has not heard of it yet.  The frame is lost
  // with the connection, as the transport's contract allows.
  if (closing_ || write_failed_) return true;
  if (!queued_.Take(bytes)) return false;
  queue_.emplace_back(channel, std::move(frame), limits_.chunk_bytes, parts);
  WriteNext();
  return true;
}

void GrpcStream::WriteNext() {
  // gRPC allows one write at a time.  OnWritten() calls this again.
  if (writing_ || !started_) return;
  if (hello_.has_value()) {
    outgoing_ = *std::move(hello_);
    hello_.reset();
  } else if (!queue_.empty()) {
    FrameChunker& front = queue_.front();
    outgoing_ = ToMessage(front.Next(), front.frame().body);
    if (front.done()) {
      // gRPC holds the last message now; one chunk is not worth counting.
      queued_.Give(HeldBytes(front.frame()));
      queue_.pop_front();
    }
  } else {
    return;
  }
  writing_ = true;
  writer_->Write(outgoing_, &write_tag_);
}

void GrpcStream::OnWritten(bool ok) {
  writing_ = false;
  outgoing_.Clear();
  if (!ok) {
    // The call is over.  The reads bring the reason, and all that the other end
    // had sent.
    write_failed_ = true;
    queue_.clear();
    queued_.Clear();
  }
  if (!closing_ && ok) WriteNext();
  Proceed();
  EndIfIdle();
}

std::shared_ptr<const grpc::AuthContext> GrpcStream::caller() const {
  if (client_context_ != nullptr) return client_context_->auth_context();
  if (server_context_ != nullptr) return server_context_->auth_context();
  return nullptr;
}

void GrpcStream::CreditTo(std::shared_ptr<FloodAccount> account) {
  account_ = std::move(account);
  if (account_ != nullptr) account_->CreditCall();
}

void GrpcStream::End(const absl::Status& why) {
  Close(why);
  Proceed();
}

void GrpcStream::Close(const absl::Status& why) {
  if (closing_) return;
  closing_ = true;
  why_ = why;
  hello_.reset();
  queue_.clear();
  queued_.Clear();
  assembler_.Drop();
}

// Moves a closing stream towards its end.  A dialled stream finishes once no
// read is under way: unless it is cancelled first, gRPC gives its status only
// when all that came has been read.  An accepted stream finishes, and sends the
// reason, once no write is under way.
void GrpcStream::Proceed() {
  if (!closing_ || finishing_ || self_ == nullptr) return;
  // A write under way may never end, if the other end does not read.
  if (dialled_ ? !other_ended_ : writing_) Cancel();
  if (!started_ || (dialled_ ? reading_ : writing_)) return;
  finishing_ = true;
  if (dialled_) {
    client_->Finish(&client_status_, &finish_tag_);
  } else {
    server_->Finish(ToGrpc(why_), &finish_tag_);
  }
}

void GrpcStream::Cancel() {
  if (dialled_) {
    client_context_->TryCancel();
  } else {
    server_context_->TryCancel();
  }
}

void GrpcStream::OnFinished(bool ok) {
  finished_ = true;
  // The other end may have ended the call without reading the message that is
  // being written.
  if (writing_ || reading_) Cancel();
  EndIfIdle();
}

void GrpcStream::EndIfIdle() {
  // Every operation has to have come back: the queue would call a stream that
  // is gone.
  if (!finished_ || reading_ || writing_ || self_ == nullptr) return;
  GrpcStreamPtr last = std::move(self_);
  absl::Status why = why_;
  // The other end's reason says more than that it is gone.
  if (absl::IsUnavailable(why) && dialled_ && !client_status_.ok()) {
    why = ToAbsl(client_status_);
  }
  client_.reset();
  client_context_.reset();
  channel_.reset();
  server_.reset();
  server_context_.reset();
  owner_->OnEnd(std::move(last), std::move(why));
}

}  // namespace gossamer
