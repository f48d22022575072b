// The cost of an exchange, from Emit to Complete with dense-f32 on an edge, and
// as two frames over GrpcTransport, against the same bytes over a bare gRPC
// stream.
//
// Two processes on loopback push a frame each and wait for the other's.  Every
// way has pairs of processes of its own, since gRPC's threads of one process
// serve each other.  The pairs of a block follow each other at once, so that
// other load on the machine hits all ways alike; a ratio is taken in each
// block.  Prints the medians over the blocks.
//
// With --tls every way shows certificates at both ends (TLS 1.3).
//
//   exchange_benchmark [--rounds N] [--blocks N] [--tls] [--json]

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/rng.h"
#include "runtime/base/allocator.h"
#include "runtime/base/real_loop.h"
#include "runtime/base/task.h"
#include "runtime/identity/authority_folder.h"
#include "runtime/identity/certificate_folder.h"
#include "runtime/neighborhood/neighborhood.h"
#include "runtime/peer/waiter.h"
#include "runtime/transport/grpc/grpc_transport.h"
#include "runtime/transport/grpc/tls.h"
#include "tests/benchmarks/timing.h"

namespace gossamer {
namespace {

constexpr PeerId kDialler{1};
constexpr PeerId kAcceptor{2};
constexpr int kHeadBytes = 64;
constexpr std::string_view kEdgeWay = "edge";
constexpr std::string_view kTransportWay = "transport";
constexpr std::string_view kBareWay = "bare";

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "exchange_benchmark: %s\n", why.c_str());
  std::_Exit(1);
}

// Names the folder of certificates to the ends of --tls.
constexpr char kCertificates[] = "GOSSAMER_EXCHANGE_CERTIFICATES";

// Returns null without --tls.
std::shared_ptr<CertificateFolder> CertificatesOf(PeerId self) {
  const char* const folder = std::getenv(kCertificates);
  if (folder == nullptr) return nullptr;
  auto opened = CertificateFolder::Open(absl::StrCat(folder, "/", self.value));
  if (!opened.ok()) Die(opened.status().ToString());
  return *std::move(opened);
}

// An authority and a folder for each end, removed with the object.
class Certificates {
 public:
  Certificates() {
    if (mkdtemp(folder_.data()) == nullptr) Die("no temporary folder");
    const std::string own = folder_ + "/ca";
    const absl::Duration day = absl::Hours(24);
    absl::Status made =
        AuthorityFolder::Init(own, "benchmark", absl::Now(), day);
    for (const PeerId peer : {kDialler, kAcceptor}) {
      if (!made.ok()) Die(made.ToString());
      made = AuthorityFolder::Open(own)
                 ->Issue({.run = "benchmark", .peer = peer}, {}, absl::Now(),
                         day, absl::StrCat(folder_, "/", peer.value))
                 .status();
    }
    if (!made.ok()) Die(made.ToString());
    setenv(kCertificates, folder_.c_str(), 1);
  }
  ~Certificates() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

 private:
  std::string folder_ = "/tmp/gossamer-exchange-XXXXXX";
};

// Reports the port to the parent process.
void TellPort(int port) {
  std::printf("%d\n", port);
  std::fflush(stdout);
}

[[noreturn]] void End() {
  std::fflush(stdout);
  std::_Exit(0);
}

// This program again, as one end of a way; ended with the object.
class Child {
 public:
  Child(std::string_view way, size_t bytes, int port, int rounds) {
    int ends[2];
    if (pipe(ends) != 0) Die("no pipe");
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]);
      const std::string w(way);
      const std::string b = absl::StrCat(bytes);
      const std::string p = absl::StrCat(port);
      const std::string r = absl::StrCat(rounds);
      execl("/proc/self/exe", "exchange_benchmark", "--end", w.c_str(),
            b.c_str(), p.c_str(), r.c_str(), nullptr);
      Die("cannot execute itself");
    }
    close(ends[1]);
    out_ = fdopen(ends[0], "r");
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    std::fclose(out_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  FILE* out() const { return out_; }

 private:
  pid_t pid_ = -1;
  FILE* out_ = nullptr;
};

// Source and target of the bytes of an exchange.
class Workload {
 public:
  virtual ~Workload() = default;
  virtual Frame Produce() = 0;
  virtual void Consume(const Frame& frame) = 0;
};

// Bytes that exist before the exchange; the receiver reads one of each page.
class FixedBytes final : public Workload {
 public:
  explicit FixedBytes(size_t n)
      : head_(SharedBytes::FromVector(std::vector<std::byte>(kHeadBytes))),
        body_(
            SharedBytes::FromVector(std::vector<std::byte>(n, std::byte{7}))) {}
  Frame Produce() override { return {head_, body_}; }
  void Consume(const Frame& frame) override {
    if (frame.body.size() != body_.size()) Die("a frame of another size came");
    for (size_t i = 0; i < frame.body.size(); i += 4096) {
      sum_ += static_cast<uint64_t>(frame.body.bytes()[i]);
    }
  }

 private:
  const SharedBytes head_;
  const SharedBytes body_;
  uint64_t sum_ = 0;
};

// --- Over the transport ------------------------------------------------------

// Runs on the loop, as a peer's round does.
class TransportWay final : public TransportListener {
 public:
  TransportWay(RealLoop* loop, PeerId self, PeerId other) : other_(other) {
    GrpcOptions options;
    options.self = self;
    options.run_id = "benchmark";
    options.certificates = CertificatesOf(self);
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
  // The result comes when the other end's frame has arrived and this end's is
  // on its way.
  Pending<bool> Exchange(Workload& workload) {
    exchanged_ = Pending<bool>();
    workload_ = &workload;
    if (!transport_->Send(other_, Channel::kEdge, workload.Produce())) {
      Die("the connection was lost");
    }
    Pending<bool> exchanged = exchanged_;
    if (early_.has_value()) Complete(*std::exchange(early_, std::nullopt));
    return exchanged;
  }

  void OnUp(PeerId, ConnectionId) override { up_.Set(true); }
  void OnFrame(PeerId, ConnectionId, Channel, Frame frame) override {
    if (workload_ == nullptr) {
      early_ = std::move(frame);
    } else {
      Complete(std::move(frame));
    }
  }
  void OnDown(PeerId, ConnectionId, const absl::Status& why) override {
    if (!may_go_) Die(why.ToString());
  }
  // From now on the other end may disappear.
  void MayGo() { may_go_ = true; }

 private:
  void Complete(Frame frame) {
    std::exchange(workload_, nullptr)->Consume(frame);
    frame = Frame();
    exchanged_.Set(true);
  }

  const PeerId other_;
  std::unique_ptr<GrpcTransport> transport_;
  Pending<bool> up_;
  Pending<bool> exchanged_;
  Workload* workload_ = nullptr;  // while an exchange is under way
  bool may_go_ = false;
  std::optional<Frame> early_;  // arrived before this end's exchange began
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

// The certificates of the accepting end, for gRPC's own TLS.
std::shared_ptr<grpc::ServerCredentials> BareCredentials() {
  const std::shared_ptr<CertificateFolder> folder = CertificatesOf(kAcceptor);
  if (folder == nullptr) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = *ReadPemFile(folder->authority_path());
  options.pem_key_cert_pairs.push_back(
      {*ReadPemFile(folder->key_path()),
       *ReadPemFile(folder->certificate_path())});
  return grpc::SslServerCredentials(options);
}

class BareServer final : public BareWay {
 public:
  BareServer() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", BareCredentials(), &port_);
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
        absl::StrCat("127.0.0.1:", port),
        TlsCredentials(CertificatesOf(kDialler)).Channel(Role::kPeer),
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
  int rounds = 150;  // of each size and way, per block
  int blocks = 5;
  bool json = false;
  bool tls = false;
};

constexpr std::array<size_t, 3> kSizes = {64 << 10, 1 << 20, 9'000'000};
constexpr int kWarmup = 20;

// Both ends run the same sequence; the output of one of them is read.
template <typename Exchange>
Task<bool> Measure(Exchange exchange, int rounds, size_t bytes, bool tell) {
  FixedBytes workload(bytes);
  for (int i = 0; i < kWarmup + rounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    co_await exchange(workload);
    const double seconds = SecondsSince(start);
    if (tell && i >= kWarmup) std::printf("%.9f\n", seconds);
  }
  co_return true;
}

// Both tasks run until the process is ended.
Task<bool> RunTransport(RealLoop* loop, int port, int rounds, size_t bytes) {
  TransportWay way(loop, port == 0 ? kAcceptor : kDialler,
                   port == 0 ? kDialler : kAcceptor);
  if (port == 0) {
    TellPort(way.port());
    way.MayGo();
  }
  co_await way.Connect(port);
  const auto exchange = [&way](Workload& w) { return way.Exchange(w); };
  const Task<bool> measured = Measure(exchange, rounds, bytes, port != 0);
  co_await measured.result();
  if (port != 0) End();
  co_return co_await Pending<bool>();
}

// The whole exchange of a peer: an edge of bytes / 4 parameters encodes, sends,
// receives, checks, and applies.
Task<bool> RunEdge(RealLoop* loop, int port, int rounds, size_t bytes) {
  const PeerId self = port == 0 ? kAcceptor : kDialler;
  const PeerId other = port == 0 ? kDialler : kAcceptor;
  const auto n = static_cast<int64_t>(bytes / sizeof(float));
  const ParameterLayout layout({{"x", Player::kGenerator, {n, 1}, {}}});
  std::vector<float> x(layout.size());
  RngKey(self.value).FillGaussian(x);
  GrpcOptions grpc;
  grpc.self = self;
  grpc.run_id = "benchmark";
  grpc.certificates = CertificatesOf(self);
  const auto transport = *GrpcTransport::Create(loop, grpc);
  if (port == 0) TellPort(transport->port());
  Waiter waiter(loop);
  Neighborhood neighborhood({.self = self,
                             .run_id = "benchmark",
                             .epoch = MakeEpoch(1, self.value),
                             .window = 1,
                             .layout = layout.fingerprint(),
                             .deadline = {}},
                            loop, transport.get(), x);
  neighborhood.SetOnChange([&] { waiter.Notify(); });
  const absl::Status added =
      neighborhood.Add({.peer = other,
                        .address = absl::StrCat("127.0.0.1:", port),
                        .frontier = MakeExchangeId(1),
                        .codec = *Codec::Create("dense-f32", layout)});
  if (!added.ok()) Die(added.ToString());
  const std::vector<RowEntry> row = {{other, 0.5f}};
  co_await waiter.Until([&] { return neighborhood.HandshakesDone(row); },
                        absl::InfiniteFuture());
  for (uint64_t k = 1; k <= static_cast<uint64_t>(kWarmup + rounds); ++k) {
    const auto start = std::chrono::steady_clock::now();
    neighborhood.Emit(row, MakeExchangeId(k), true);
    co_await waiter.Until(
        [&] { return neighborhood.Arrived(row, MakeExchangeId(k), {}); },
        absl::InfiniteFuture());
    neighborhood.Complete(MakeExchangeId(k + 1));
    const double seconds = SecondsSince(start);
    if (port != 0 && k > kWarmup) std::printf("%.9f\n", seconds);
  }
  if (port != 0) End();
  co_return co_await Pending<bool>();
}

Task<bool> RunBare(BareWay& way, int rounds, size_t bytes, bool tell) {
  const auto exchange = [&way](Workload& w) {
    way.Exchange(w);
    Pending<bool> done;
    done.Set(true);
    return done;
  };
  const Task<bool> measured = Measure(exchange, rounds, bytes, tell);
  co_return co_await measured.result();
}

void RunEnd(std::string_view way, size_t bytes, int port, int rounds) {
  if (way == kBareWay && port == 0) {
    BareServer server;
    TellPort(server.port());
    server.Accept();
    RunBare(server, rounds, bytes, false);
    while (true) pause();
  } else if (way == kBareWay) {
    BareClient client(port);
    RunBare(client, rounds, bytes, true);
    End();
  } else {
    KeepFreedMemory();  // as a peer does
    RealLoop loop;
    Task<bool> task;
    loop.Post([&] {
      task = way == kEdgeWay ? RunEdge(&loop, port, rounds, bytes)
                             : RunTransport(&loop, port, rounds, bytes);
    });
    loop.Run();
  }
}

// Returns the median seconds of an exchange between a pair of processes.
double RunPair(std::string_view way, size_t bytes, int rounds) {
  const Child follower(way, bytes, 0, rounds);
  int port = 0;
  if (std::fscanf(follower.out(), "%d", &port) != 1) Die("no follower");
  const Child leader(way, bytes, port, rounds);
  std::vector<double> samples;
  double seconds = 0;
  while (std::fscanf(leader.out(), "%lf", &seconds) == 1) {
    samples.push_back(seconds);
  }
  if (samples.empty()) Die("a pair of processes failed");
  return Median(samples);
}

struct Row {
  size_t bytes = 0;
  // The values of each block.
  std::vector<double> edge, transport, bare;  // seconds
  std::vector<double> edge_ratio, transport_ratio;
};

Row MeasureSize(size_t bytes, const Options& options) {
  Row row;
  row.bytes = bytes;
  for (int i = 0; i < options.blocks; ++i) {
    row.edge.push_back(RunPair(kEdgeWay, bytes, options.rounds));
    row.bare.push_back(RunPair(kBareWay, bytes, options.rounds));
    row.transport.push_back(RunPair(kTransportWay, bytes, options.rounds));
    row.edge_ratio.push_back(row.edge.back() / row.bare.back());
    row.transport_ratio.push_back(row.transport.back() / row.bare.back());
  }
  return row;
}

void Print(const std::vector<Row>& rows, const Options& options) {
  if (options.json) {
    std::string out = "{\"exchange\": [";
    for (const Row& row : rows) {
      absl::StrAppend(
          &out, &row == &rows[0] ? "" : ", ", "{\"bytes\": ", row.bytes,
          ", \"edge_seconds\": ", Median(row.edge),
          ", \"transport_seconds\": ", Median(row.transport),
          ", \"bare_seconds\": ", Median(row.bare),
          ", \"edge_ratio\": ", Median(row.edge_ratio),
          ", \"transport_ratio\": ", Median(row.transport_ratio), "}");
    }
    std::printf("%s]}\n", out.c_str());
    return;
  }
  std::printf(
      "median of %d blocks of %d exchanges, both ways at once, two processes\n",
      options.blocks, options.rounds);
  std::printf("%10s %12s %12s %12s %11s %16s\n", "bytes", "edge", "transport",
              "bare gRPC", "edge/bare", "transport/bare");
  for (const Row& row : rows) {
    std::printf("%10zu %9.3f ms %9.3f ms %9.3f ms %11.2f %16.2f\n", row.bytes,
                Median(row.edge) * 1e3, Median(row.transport) * 1e3,
                Median(row.bare) * 1e3, Median(row.edge_ratio),
                Median(row.transport_ratio));
  }
}

Options Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    int* number = flag == "--rounds"   ? &options.rounds
                  : flag == "--blocks" ? &options.blocks
                                       : nullptr;
    if (flag == "--json") {
      options.json = true;
    } else if (flag == "--tls") {
      options.tls = true;
    } else if (number == nullptr || ++i == argc ||
               !absl::SimpleAtoi(argv[i], number) || *number < 1) {
      Die("usage: exchange_benchmark [--rounds N] [--blocks N] [--tls] "
          "[--json]");
    }
  }
  return options;
}

int Main(int argc, char** argv) {
  size_t bytes = 0;
  if (argc == 6 && std::string_view(argv[1]) == "--end" &&
      absl::SimpleAtoi(argv[3], &bytes)) {
    RunEnd(argv[2], bytes, std::atoi(argv[4]), std::atoi(argv[5]));
    return 1;
  }
  const Options options = Parse(argc, argv);
  std::optional<Certificates> certificates;
  if (options.tls) certificates.emplace();
  std::vector<Row> rows;
  for (const size_t size : kSizes) rows.push_back(MeasureSize(size, options));
  Print(rows, options);
  return 0;
}

}  // namespace
}  // namespace gossamer

int main(int argc, char** argv) {
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  return gossamer::Main(argc, argv);
}
