// What an exchange of two frames costs over GrpcTransport, against the same
// bytes over a bare gRPC stream.
//
// Two processes on loopback.  In each round both ends push a frame and wait
// for the other's; the two ways alternate within the run, so what else the
// machine does meets both alike.  Prints medians and their ratio.
//
//   exchange_benchmark [--rounds N] [--warmup N] [--json]

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "runtime/base/real_loop.h"
#include "runtime/base/task.h"
#include "runtime/transport/grpc/grpc_transport.h"

namespace gossamer {
namespace {

constexpr PeerId kDialler{1};
constexpr PeerId kAcceptor{2};
constexpr absl::Duration kLimit = absl::Minutes(10);
constexpr int kHeadBytes = 64;

double Seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since)
      .count();
}

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "exchange_benchmark: %s\n", why.c_str());
  std::_Exit(1);
}

// Where the bytes of an exchange come from and go to.
class Workload {
 public:
  virtual ~Workload() = default;
  virtual Frame Produce() = 0;
  virtual void Consume(const Frame& frame) = 0;
};

// Bytes that are there already; looks at what comes no more than once a page.
class FixedBytes final : public Workload {
 public:
  explicit FixedBytes(size_t n)
      : head_(Payload::FromVector(std::vector<std::byte>(kHeadBytes))),
        body_(Payload::FromVector(std::vector<std::byte>(n, std::byte{7}))) {}
  Frame Produce() override { return {head_, body_}; }
  void Consume(const Frame& frame) override {
    if (frame.body.size() != body_.size()) Die("a frame of another size came");
    for (size_t i = 0; i < frame.body.size(); i += 4096) {
      sum_ += static_cast<uint64_t>(frame.body.bytes()[i]);
    }
  }

 private:
  const Payload head_;
  const Payload body_;
  uint64_t sum_ = 0;
};

// --- Over the transport ------------------------------------------------------

// On the loop, as a peer's round is.
class TransportWay final : public TransportListener {
 public:
  TransportWay(EventLoop* loop, PeerId self, PeerId other) : other_(other) {
    GrpcOptions options;
    options.self = self;
    options.run_id = "benchmark";
    auto transport = GrpcTransport::Create(loop, options);
    if (!transport.ok()) Die(transport.status().ToString());
    transport_ = *std::move(transport);
    transport_->SetListener(this);
  }
  int port() const { return transport_->port(); }

  Pending<bool> Connect(int port) {
    transport_->Connect(other_, absl::StrCat("127.0.0.1:", port));
    return up_;
  }
  // Done when the other end's frame has come and this end's is on its way.
  Pending<bool> Exchange(Workload& workload) {
    exchanged_ = Pending<bool>();
    workload_ = &workload;
    if (!transport_->Send(other_, Channel::kEdge, workload.Produce())) {
      Die("the connection was lost");
    }
    Pending<bool> exchanged = exchanged_;
    if (early_.has_value()) Finish(*std::exchange(early_, std::nullopt));
    return exchanged;
  }

  void OnUp(PeerId, ConnectionId) override { up_.Set(true); }
  void OnFrame(PeerId, ConnectionId, Channel, Frame frame) override {
    if (workload_ == nullptr) {
      early_ = std::move(frame);
    } else {
      Finish(std::move(frame));
    }
  }
  void OnDown(PeerId, ConnectionId, const absl::Status& why) override {
    Die(why.ToString());
  }

 private:
  void Finish(Frame frame) {
    std::exchange(workload_, nullptr)->Consume(frame);
    frame = Frame();
    exchanged_.Set(true);
  }

  const PeerId other_;
  std::unique_ptr<GrpcTransport> transport_;
  Pending<bool> up_;
  Pending<bool> exchanged_;
  Workload* workload_ = nullptr;  // while an exchange is under way
  std::optional<Frame> early_;    // came before this end's exchange began
};

// --- Over a bare stream ------------------------------------------------------

// A byte-buffer stream on a completion queue, one message per frame, with the
// limits raised and nothing else: the calling thread polls.
class BareWay {
 public:
  void Exchange(Workload& workload) {
    const Frame frame = workload.Produce();
    const std::array<grpc::Slice, 2> slices = {
        grpc::Slice(frame.head.bytes().data(), frame.head.size()),
        grpc::Slice(frame.body.bytes().data(), frame.body.size(),
                    grpc::Slice::STATIC_SLICE)};
    const grpc::ByteBuffer out(slices.data(), slices.size());
    grpc::ByteBuffer in;
    reader_->Read(&in, nullptr);
    writer_->Write(out, nullptr);
    Next();
    Next();
    std::vector<grpc::Slice> received;
    if (!in.Dump(&received).ok()) Die("an unreadable message");
    size_t bytes = 0;
    uint64_t sum = 0;
    for (const grpc::Slice& slice : received) {
      bytes += slice.size();
      for (size_t i = 0; i < slice.size(); i += 4096) sum += slice.begin()[i];
    }
    if (bytes != frame.head.size() + frame.body.size()) Die("wrong size");
    sum_ += sum;
  }

 protected:
  void Next() {
    void* tag = nullptr;
    bool ok = false;
    const auto end = std::chrono::system_clock::now() + std::chrono::minutes(2);
    if (cq_->AsyncNext(&tag, &ok, end) != grpc::CompletionQueue::GOT_EVENT ||
        !ok) {
      Die("the bare stream broke");
    }
  }

  grpc::CompletionQueue* cq_ = nullptr;
  grpc::internal::AsyncReaderInterface<grpc::ByteBuffer>* reader_ = nullptr;
  grpc::internal::AsyncWriterInterface<grpc::ByteBuffer>* writer_ = nullptr;

 private:
  uint64_t sum_ = 0;
};

class BareServer final : public BareWay {
 public:
  BareServer() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.SetMaxReceiveMessageSize(-1);
    builder.RegisterAsyncGenericService(&service_);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    cq_ = queue_.get();
    service_.RequestCall(&context_, &stream_, queue_.get(), queue_.get(),
                         nullptr);
  }
  int port() const { return port_; }
  void Accept() {
    Next();
    reader_ = &stream_;
    writer_ = &stream_;
  }

 private:
  int port_ = 0;
  grpc::AsyncGenericService service_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
};

class BareClient final : public BareWay {
 public:
  explicit BareClient(int port) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    stub_ = std::make_unique<grpc::GenericStub>(grpc::CreateCustomChannel(
        absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials(),
        arguments));
    call_ = stub_->PrepareCall(&context_, "/bare/Exchange", &queue_);
    cq_ = &queue_;
    reader_ = call_.get();
    writer_ = call_.get();
    call_->StartCall(nullptr);
    Next();
  }

 private:
  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericStub> stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

// --- The measurement ---------------------------------------------------------

struct Options {
  int rounds = 200;
  int warmup = 20;
  bool json = false;
};

constexpr std::array<size_t, 3> kSizes = {64 << 10, 1 << 20, 9'000'000};

struct Row {
  size_t bytes;
  double transport;  // median seconds
  double bare;
  double ratio() const { return transport / bare; }
};

double Median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
  return v[v.size() / 2];
}

// Both ends run the same sequence; only one of them looks at the numbers.
Task<std::vector<Row>> Measure(TransportWay& transport, BareWay& bare,
                               const Options& options) {
  std::vector<Row> rows;
  for (const size_t bytes : kSizes) {
    FixedBytes workload(bytes);
    std::vector<double> a;
    std::vector<double> b;
    for (int i = 0; i < options.warmup + options.rounds; ++i) {
      const auto start = std::chrono::steady_clock::now();
      co_await transport.Exchange(workload);
      const double t = Seconds(start);
      const auto middle = std::chrono::steady_clock::now();
      bare.Exchange(workload);
      const double u = Seconds(middle);
      if (i < options.warmup) continue;
      a.push_back(t);
      b.push_back(u);
    }
    rows.push_back({bytes, Median(a), Median(b)});
  }
  co_return rows;
}

void Print(const std::vector<Row>& rows, const Options& options) {
  if (options.json) {
    std::string out = "{\"exchange\": [";
    for (size_t i = 0; i < rows.size(); ++i) {
      absl::StrAppend(&out, i == 0 ? "" : ", ", "{\"bytes\": ", rows[i].bytes,
                      ", \"transport_seconds\": ", rows[i].transport,
                      ", \"bare_seconds\": ", rows[i].bare,
                      ", \"ratio\": ", rows[i].ratio(), "}");
    }
    std::printf("%s]}\n", out.c_str());
    return;
  }
  std::printf("median of %d exchanges, both ways at once, two processes\n",
              options.rounds);
  std::printf("%10s %14s %14s %8s\n", "bytes", "transport", "bare gRPC",
              "ratio");
  for (const Row& row : rows) {
    std::printf("%10zu %11.3f ms %11.3f ms %8.3f\n", row.bytes,
                row.transport * 1e3, row.bare * 1e3, row.ratio());
  }
}

Options Parse(int argc, char** argv, int from) {
  Options options;
  for (int i = from; i < argc; ++i) {
    const std::string flag = argv[i];
    int* number = flag == "--rounds"   ? &options.rounds
                  : flag == "--warmup" ? &options.warmup
                                       : nullptr;
    if (flag == "--json") {
      options.json = true;
    } else if (number == nullptr || ++i == argc ||
               !absl::SimpleAtoi(argv[i], number) || *number < 1) {
      Die("usage: exchange_benchmark [--rounds N] [--warmup N] [--json]");
    }
  }
  return options;
}

// The child: accepts on both ways, tells its ports on stdout, follows until
// it is killed.
Task<bool> Follow(EventLoop* loop, const Options& options) {
  TransportWay transport(loop, kAcceptor, kDialler);
  BareServer bare;
  const std::string line =
      absl::StrCat(transport.port(), " ", bare.port(), "\n");
  if (write(STDOUT_FILENO, line.data(), line.size()) < 0) Die("no parent");
  const Pending<bool> up = transport.Connect(0);
  bare.Accept();
  co_await up;
  const Task<std::vector<Row>> measured = Measure(transport, bare, options);
  co_await measured.result();
  while (true) pause();
  co_return true;
}

Task<bool> LeadOnLoop(EventLoop* loop, int transport_port, int bare_port,
                      pid_t child, const Options& options) {
  TransportWay transport(loop, kDialler, kAcceptor);
  // The follower's loop is busy until this one has called.
  BareClient bare(bare_port);
  co_await transport.Connect(transport_port);
  const Task<std::vector<Row>> measured = Measure(transport, bare, options);
  Print(co_await measured.result(), options);
  std::fflush(stdout);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  std::_Exit(0);  // the bare stream has no orderly end
  co_return true;
}

int Lead(char** argv, const Options& options) {
  int ends[2];
  if (pipe(ends) != 0) Die("no pipe");
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    std::vector<char*> arguments = {argv[0], const_cast<char*>("--follow")};
    for (char** a = argv + 1; *a != nullptr; ++a) arguments.push_back(*a);
    arguments.push_back(nullptr);
    execv("/proc/self/exe", arguments.data());
    Die("cannot execute itself");
  }
  close(ends[1]);
  FILE* in = fdopen(ends[0], "r");
  int transport_port = 0;
  int bare_port = 0;
  if (std::fscanf(in, "%d %d", &transport_port, &bare_port) != 2) {
    Die("the other process did not start");
  }
  RealLoop loop;
  Task<bool> task;
  loop.Post([&] {
    task = LeadOnLoop(&loop, transport_port, bare_port, child, options);
  });
  loop.RunAt(loop.Now() + kLimit, [] { Die("the exchanges take too long"); });
  loop.Run();
  return 1;
}

int RunFollower(const Options& options) {
  RealLoop loop;
  Task<bool> task;
  loop.Post([&] { task = Follow(&loop, options); });
  loop.Run();
  return 1;
}

}  // namespace
}  // namespace gossamer

int main(int argc, char** argv) {
  const bool follow = argc > 1 && std::strcmp(argv[1], "--follow") == 0;
  const auto options = gossamer::Parse(argc, argv, follow ? 2 : 1);
  return follow ? gossamer::RunFollower(options)
                : gossamer::Lead(argv, options);
}
