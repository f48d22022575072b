// The cost of a blocking exchange of a ring over a long link, on gossamer's own
// edges over gRPC and on plain TCP sockets that move the same bytes; behind
// certificates, on sockets with OpenSSL alone.
//
// Run on every host of a lab at once (deploy/lab/exchange.sh does):
//
//   gossamer lab --scenario FILE --hosts 4 --exec 'wan_exchange_benchmark
//       --meet FILE [--bytes N] [--rounds N] [--pauses 0,0.3,2] [--rtt-ms X]
//       [--certs DIR] [--lanes N]'
//
// Every host sends N bytes of floats to both neighbours and waits for theirs;
// with a --codec the edges send its payload, and TCP as many bytes.  All hosts
// start together, the two ways take turns within the run, and both are warm.  A
// pause stands for a training step, in which nothing is sent.  The program
// prints, over all hosts and rounds, the median and the least of both ways, the
// bound 0.5 RTT + 1.25 (raw - 0.5 RTT) + 4 ms of the medians, and the processor
// time of an exchange on a host, all in milliseconds.

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "algorithms/base/rng.h"
#include "runtime/base/allocator.h"
#include "runtime/base/real_loop.h"
#include "runtime/base/task.h"
#include "runtime/identity/certificate_folder.h"
#include "runtime/neighborhood/neighborhood.h"
#include "runtime/peer/waiter.h"
#include "runtime/transport/grpc/grpc_transport.h"
#include "tests/benchmarks/lab_meeting.h"
#include "tests/benchmarks/raw_ring.h"

namespace gossamer {
namespace {

constexpr int kGrpcPort = 7300;
constexpr int kRawPort = 7301;
constexpr absl::Duration kLimit = absl::Minutes(2);
constexpr absl::Duration kPollInterval = absl::Microseconds(300);

struct Options {
  int rank = 0;
  std::vector<std::string> hosts;
  std::string meet;
  std::string codec = "dense-f32";
  std::string congestion = "auto";       // congestion control of the edges
  int tls_gate = 1;                      // 0: gRPC ends TLS
  std::string raw_congestion = "cubic";  // TCP's own default
  int bytes = 64 << 10;
  int rounds = 10;
  int warmup = 8;
  int raw_buffer = 0;
  int chunk = static_cast<int>(GrpcOptions().chunk_bytes);
  int window = GrpcOptions().stream_window_bytes;
  int lanes = GrpcOptions().lanes;
  std::string certificates;  // of all hosts, as gossamer certs issue --fleet
  double rtt_ms = 0;
  std::vector<double> pauses = {0};  // seconds
  bool json = false;
};

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "wan_exchange_benchmark: %s\n", why.c_str());
  std::_Exit(1);
}

void DieUnless(const absl::Status& status) {
  if (!status.ok()) Die(status.ToString());
}

// Returns the processor time of this process so far, in all threads.
double CpuMilliseconds() {
  timespec t = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 +
         static_cast<double>(t.tv_nsec) * 1e-6;
}

// One host's two ways of exchanging, and its meetings with the other hosts.
class Host {
 public:
  Host(RealLoop* loop, const Options& options, LabMeeting* meeting)
      : options_(options),
        loop_(loop),
        meeting_(meeting),
        waiter_(loop),
        layout_({{"x",
                  Player::kGenerator,
                  {options.bytes / static_cast<int>(sizeof(float)), 1},
                  {}}}),
        x_(layout_.size()) {
    RngKey(static_cast<uint64_t>(options.rank)).FillGaussian(x_);
  }

  Task<bool> Run() {
    Begin();
    co_await Wait([this] { return neighborhood_->HandshakesDone(row_); });
    for (int i = 0; i < options_.warmup; ++i) {
      for (const bool raw : {true, false}) {
        const Task<bool> warm = Exchange(raw, -1);
        co_await warm.result();
      }
    }
    int at = 0;
    for (const double pause : options_.pauses) {
      for (int i = 0; i < options_.rounds; ++i) {
        const absl::Time until = loop_->Now() + absl::Seconds(pause);
        co_await waiter_.Until([] { return false; }, until);
        for (const bool raw : {i % 2 == 0, i % 2 != 0}) {
          const Task<bool> turn = Exchange(raw, at + (raw ? 0 : 1));
          co_await turn.result();
        }
        at += 2;
      }
    }
    co_await Wait(Together());
    co_return true;
  }

 private:
  void Begin() {
    const auto size = static_cast<int>(options_.hosts.size());
    RawRingOptions raw;
    raw.rank = options_.rank;
    raw.hosts = options_.hosts;
    raw.port = kRawPort;
    raw.buffer_bytes = options_.raw_buffer;
    raw.congestion = options_.raw_congestion;
    if (!options_.certificates.empty()) {
      raw.certificate = OwnFolder() + "/cert.pem";
      raw.key = OwnFolder() + "/key.pem";
    }
    auto ring = RawRing::Connect(raw);
    DieUnless(ring.status());
    raw_ = *std::move(ring);

    GrpcOptions grpc;
    grpc.self = Id(options_.rank);
    grpc.run_id = "benchmark";
    grpc.allow_insecure_remote = true;
    grpc.congestion_control = options_.congestion;
    grpc.chunk_bytes = static_cast<size_t>(options_.chunk);
    grpc.stream_window_bytes = options_.window;
    grpc.lanes = options_.lanes;
    if (!options_.certificates.empty()) {
      auto folder = CertificateFolder::Open(OwnFolder());
      DieUnless(folder.status());
      grpc.certificates = *std::move(folder);
      grpc.tls_gate = options_.tls_gate != 0;
    }
    grpc.listen_address = AddressOf(options_.rank);
    auto transport = GrpcTransport::Create(loop_, grpc);
    DieUnless(transport.status());
    transport_ = *std::move(transport);
    auto codec = Codec::Create(options_.codec, layout_);
    DieUnless(codec.status());
    raw_bytes_.resize((*codec)->EncodedSize((*codec)->format()));
    neighborhood_ = std::make_unique<Neighborhood>(
        NeighborhoodOptions{.self = grpc.self,
                            .run_id = "benchmark",
                            .epoch = MakeEpoch(1, grpc.self.value),
                            .window = 1,
                            .layout = layout_.fingerprint(),
                            .deadline = {}},
        loop_, transport_.get(), x_);
    neighborhood_->SetOnChange([this] { waiter_.Notify(); });
    for (const int other :
         {(options_.rank + 1) % size, (options_.rank + size - 1) % size}) {
      DieUnless(neighborhood_->Add({.peer = Id(other),
                                    .address = AddressOf(other),
                                    .frontier = MakeExchangeId(1),
                                    .codec = *codec}));
      row_.push_back({Id(other), 1.0f / 3});
    }
  }

  std::string OwnFolder() const {
    return absl::StrCat(options_.certificates, "/peer-", options_.rank + 1);
  }
  static PeerId Id(int rank) { return PeerId{static_cast<uint32_t>(rank) + 1}; }
  std::string AddressOf(int rank) const {
    return absl::StrCat(options_.hosts[static_cast<size_t>(rank)], ":",
                        kGrpcPort);
  }

  Pending<bool> Wait(std::function<bool()> condition) {
    return waiter_.Until(std::move(condition), loop_->Now() + kLimit,
                         [this] { return loop_->Now() + kPollInterval; });
  }
  // All hosts have arrived, and the common start has come.
  std::function<bool()> Together() {
    meeting_->Arrive();
    return [this] {
      start_ = meeting_->Start();
      return start_ != 0 && LabMeeting::NowNanos() >= start_;
    };
  }

  Task<bool> Exchange(bool raw, int row) {
    if (!co_await Wait(Together())) Die("the other hosts do not come");
    const double cpu = CpuMilliseconds();
    if (raw) {
      DieUnless(raw_->Exchange(raw_bytes_));
    } else {
      const ExchangeId id = MakeExchangeId(++k_);
      neighborhood_->Emit(row_, id, true);
      if (!co_await waiter_.Until(
              [&] { return neighborhood_->Arrived(row_, id, {}); },
              loop_->Now() + kLimit)) {
        Die("an exchange took too long");
      }
      neighborhood_->Complete(MakeExchangeId(k_ + 1));
    }
    const int64_t took = LabMeeting::NowNanos() - start_;
    if (row >= 0) {
      meeting_->Write(2 * row, static_cast<double>(took) * 1e-6);
      meeting_->Write(2 * row + 1, CpuMilliseconds() - cpu);
    }
    co_return true;
  }

  const Options options_;
  RealLoop* const loop_;
  LabMeeting* const meeting_;
  Waiter waiter_;
  const ParameterLayout layout_;
  std::vector<float> x_;
  std::vector<std::byte> raw_bytes_;
  std::unique_ptr<RawRing> raw_;
  std::unique_ptr<GrpcTransport> transport_;
  std::unique_ptr<Neighborhood> neighborhood_;
  std::vector<RowEntry> row_;
  uint64_t k_ = 0;
  int64_t start_ = 0;
};

// Milliseconds of one way at one pause.
struct Cell {
  double median;
  double least;
  double cpu;  // median of a host's processor time
};

double Median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

Cell Summarize(const LabMeeting& meeting, int first, int rounds) {
  std::vector<double> took;
  std::vector<double> cpu;
  for (int i = 0; i < rounds; ++i) {
    const auto times = meeting.Row(2 * (first + 2 * i));
    const auto cpus = meeting.Row(2 * (first + 2 * i) + 1);
    took.insert(took.end(), times.begin(), times.end());
    cpu.insert(cpu.end(), cpus.begin(), cpus.end());
  }
  return {Median(took), *std::min_element(took.begin(), took.end()),
          Median(cpu)};
}

void Print(const Options& options, const LabMeeting& meeting) {
  std::string json;
  if (!options.json) {
    std::printf("%9s %7s %7s %9s %9s %9s %9s %9s %6s %9s %9s\n", "bytes",
                "rtt ms", "pause s", "raw", "min", "edge", "min", "bound",
                "ratio", "raw CPU", "edge CPU");
  }
  int at = 0;
  for (const double pause : options.pauses) {
    const Cell raw = Summarize(meeting, at, options.rounds);
    const Cell edge = Summarize(meeting, at + 1, options.rounds);
    at += 2 * options.rounds;
    const double half = options.rtt_ms / 2;
    const double bound = half + 1.25 * (raw.median - half) + 4;
    if (options.json) {
      absl::StrAppendFormat(
          &json,
          "%s{\"bytes\": %d, \"rtt_ms\": %g, \"pause_seconds\": %g, "
          "\"raw_ms\": %.3f, \"raw_min_ms\": %.3f, \"raw_cpu_ms\": %.3f, "
          "\"edge_ms\": %.3f, \"edge_min_ms\": %.3f, \"edge_cpu_ms\": %.3f, "
          "\"bound_ms\": %.3f}",
          json.empty() ? "" : ", ", options.bytes, options.rtt_ms, pause,
          raw.median, raw.least, raw.cpu, edge.median, edge.least, edge.cpu,
          bound);
    } else {
      std::printf(
          "%9d %7g %7g %9.2f %9.2f %9.2f %9.2f %9.2f %6.2f %9.2f %9.2f\n",
          options.bytes, options.rtt_ms, pause, raw.median, raw.least,
          edge.median, edge.least, bound, edge.median / raw.median, raw.cpu,
          edge.cpu);
    }
  }
  if (options.json) std::printf("{\"exchange\": [%s]}\n", json.c_str());
}

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) {
    Die(absl::StrCat(name, " is not set; run this by gossamer lab --exec"));
  }
  return value;
}

bool ParsePauses(const std::string& text, std::vector<double>* pauses) {
  pauses->clear();
  for (const auto part : absl::StrSplit(text, ',')) {
    pauses->push_back(0);
    if (!absl::SimpleAtod(part, &pauses->back()) || pauses->back() < 0) {
      return false;
    }
  }
  return true;
}

// Returns false if the flag is unknown or its value is not valid.
bool ParseFlag(const std::string& flag, const std::string& value, Options* o) {
  if (flag == "--meet") o->meet = value;
  if (flag == "--codec") o->codec = value;
  if (flag == "--congestion") o->congestion = value;
  if (flag == "--certs") o->certificates = value;
  if (flag == "--raw-congestion") o->raw_congestion = value;
  if (flag == "--meet" || flag == "--codec" || flag == "--congestion" ||
      flag == "--certs" || flag == "--raw-congestion") {
    return true;
  }
  if (flag == "--pauses") return ParsePauses(value, &o->pauses);
  if (flag == "--rtt-ms") return absl::SimpleAtod(value, &o->rtt_ms);
  int* const number = flag == "--bytes"        ? &o->bytes
                      : flag == "--rounds"     ? &o->rounds
                      : flag == "--warmup"     ? &o->warmup
                      : flag == "--chunk"      ? &o->chunk
                      : flag == "--window"     ? &o->window
                      : flag == "--lanes"      ? &o->lanes
                      : flag == "--raw-buffer" ? &o->raw_buffer
                      : flag == "--tls-gate"   ? &o->tls_gate
                                               : nullptr;
  return number != nullptr && absl::SimpleAtoi(value, number) && *number >= 0;
}

Options Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--json") {
      options.json = true;
    } else if (++i == argc || !ParseFlag(flag, argv[i], &options)) {
      Die("usage: wan_exchange_benchmark --meet FILE [--bytes N] [--rounds N] "
          "[--warmup N] [--pauses S,S] [--rtt-ms X] [--codec NAME] "
          "[--congestion NAME] [--raw-congestion NAME] [--raw-buffer N] "
          "[--chunk N] [--window N] [--lanes N] [--certs DIR] [--tls-gate 0|1] "
          "[--json]");
    }
  }
  options.hosts = absl::StrSplit(Environment("LAB_HOSTS"), ',');
  if (!absl::SimpleAtoi(Environment("LAB_RANK"), &options.rank) ||
      options.hosts.size() < 3) {
    Die("a ring needs three hosts");
  }
  const size_t rows =
      4 * options.pauses.size() * static_cast<size_t>(options.rounds);
  if (options.meet.empty() || options.rounds == 0 || options.bytes < 4 ||
      rows > LabMeeting::kMaxRows) {
    Die(absl::StrCat("give --meet, and at most ", LabMeeting::kMaxRows / 4,
                     " rounds of all pauses together"));
  }
  return options;
}

int Main(int argc, char** argv) {
  const Options options = Parse(argc, argv);
  KeepFreedMemory();  // as a peer does
  LabMeeting meeting(options.rank, static_cast<int>(options.hosts.size()));
  DieUnless(meeting.Join(options.meet));
  RealLoop loop;
  std::unique_ptr<Host> host;
  Task<bool> task;
  Task<bool> end;
  const auto run = [&]() -> Task<bool> {
    host = std::make_unique<Host>(&loop, options, &meeting);
    task = host->Run();
    co_await task.result();
    if (options.rank == 0) Print(options, meeting);
    loop.Stop();
    co_return true;
  };
  loop.Post([&] { end = run(); });
  loop.Run();
  std::fflush(stdout);
  // The other hosts may have ended, and need no farewell.
  std::_Exit(0);
}

}  // namespace
}  // namespace gossamer

int main(int argc, char** argv) { return gossamer::Main(argc, argv); }
