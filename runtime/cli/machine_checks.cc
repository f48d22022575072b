#include "runtime/cli/machine_checks.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "google/protobuf/stubs/common.h"
#include "runtime/base/proc_file.h"
#include "runtime/base/steady_time.h"
#include "runtime/cli/fleet_process.h"
#include "runtime/cli/gpu_checks.h"
#include "runtime/cli/tcp_checks.h"
#include "runtime/telemetry/progress.h"

namespace gossamer {
namespace {

// Loading libtorch from a cold disk takes seconds.
constexpr absl::Duration kProgramLimit = absl::Seconds(30);
constexpr char kEmojiFont[] =
    "/usr/share/fonts/truetype/noto/NotoColorEmoji.ttf";

CheckResult Cpu() {
  CheckResult r{.name = "cpu",
                .why = "encoding, mixing and gradients use wide vectors"};
  r.found = ProcValue("/proc/cpuinfo", "model name");
  if (r.found.empty()) r.found = "unknown";
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    r.found += ", AVX-512";
  } else if (__builtin_cpu_supports("avx2")) {
    r.found += ", AVX2";
  } else {
    r.level = CheckLevel::kWarn;
    r.found += ", no AVX2";
    r.advice = "expect steps several times slower; use a newer CPU";
  }
#endif
  return r;
}

CheckResult Cores() {
  CheckResult r{.name = "cores",
                .why = "every local peer computes on a thread of its own"};
  cpu_set_t set;
  CPU_ZERO(&set);
  // The cores that this process may use, which in a container are fewer than
  // the machine's.
  const int usable =
      ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  r.found = absl::StrCat(usable, " usable");
  if (usable < 2) {
    r.level = CheckLevel::kWarn;
    r.advice = "local peers take turns on one core: take 2 to 4 of them";
  }
  return r;
}

CheckResult Memory() {
  CheckResult r{.name = "memory",
                .why =
                    "a quickstart peer takes up to 400 MB, an edge of a "
                    "large model two copies of it"};
  // MemAvailable, not MemFree: the kernel gives back what caches hold.
  const double free = MemoryBytes("MemAvailable").value_or(0);
  const double all = MemoryBytes("MemTotal").value_or(0);
  r.found = absl::StrCat(HumanBytes(free), " free of ", HumanBytes(all));
  if (free < 2e9) {
    r.level = free < 6e8 ? CheckLevel::kFail : CheckLevel::kWarn;
    r.advice = "end other programs, or train fewer peers: --set peers=2";
  }
  return r;
}

CheckResult Disk(const std::string& runs) {
  CheckResult r{.name = "disk",
                .why = "logs, pictures and checkpoints are written there"};
  std::filesystem::path path = std::filesystem::absolute(runs);
  std::error_code error;
  // The folder need not be there yet: its file system is that of the nearest
  // folder above.
  while (!std::filesystem::exists(path, error) && path.has_relative_path()) {
    path = path.parent_path();
  }
  struct statvfs info;
  if (::statvfs(path.c_str(), &info) != 0) {
    r.level = CheckLevel::kFail;
    r.found = absl::StrCat(path.string(), ": ", std::strerror(errno));
    r.advice = "choose another place with --runs";
    return r;
  }
  // f_bavail leaves out the blocks that only root may use.
  const double free =
      static_cast<double>(info.f_bavail) * static_cast<double>(info.f_frsize);
  r.found = absl::StrCat(HumanBytes(free), " free at ", path.string());
  if (::access(path.c_str(), W_OK) != 0) {
    r.level = CheckLevel::kFail;
    r.found += ", not writable";
    r.advice = "choose another place with --runs";
  } else if (free < 1e9) {
    r.level = free < 1e8 ? CheckLevel::kFail : CheckLevel::kWarn;
    r.advice = "make room, or choose another place with --runs";
  }
  return r;
}

// Checks a program in the folder of this one by asking for its help, which
// needs all of its libraries.
CheckResult Program(const std::string& name, const std::string& why,
                    CheckLevel if_absent = CheckLevel::kFail) {
  CheckResult r{.name = name, .why = why};
  // The programs of one build lie in one folder and fit together; one found by
  // PATH might be of another version.
  const std::string path = SiblingProgram(name);
  if (::access(path.c_str(), X_OK) != 0) {
    r.level = if_absent;
    r.found = absl::StrCat(path, " is not there");
    r.advice =
        if_absent == CheckLevel::kFail
            ? "build it: deploy/quickstart.sh builds every program"
            : "training programs of your own need none; for gossamer's own "
              "networks deploy/quickstart.sh builds it";
    return r;
  }
  ProcessGroup group;
  // --help is answered only if every shared library is found.
  absl::Status started =
      group.Start({name, {path, "--help"}, /*log=*/"/dev/null"});
  const absl::Time end = SteadyNow() + kProgramLimit;
  std::vector<ProcessExit> exits;
  while (started.ok() && exits.empty() && SteadyNow() < end) {
    exits = group.Reap();
    if (exits.empty()) absl::SleepFor(absl::Milliseconds(20));
  }
  if (exits.empty()) {
    r.found = started.ok() ? "does not answer --help"
                           : std::string(started.message());
  } else if (exits[0].ok()) {
    r.found = "runs";
    return r;
  } else {
    r.found = absl::StrCat("--help ", exits[0].Describe());
  }
  r.level = CheckLevel::kFail;
  r.advice = absl::StrCat("run ", path,
                          " --help to see why; if a library is missing, "
                          "deploy/setup.sh installs it");
  return r;
}

CheckResult EmojiFont() {
  CheckResult r{.name = "emoji font",
                .why = "the quickstart's images are rendered from it"};
  std::error_code error;
  if (std::filesystem::exists(kEmojiFont, error)) {
    r.found = kEmojiFont;
  } else {
    r.level = CheckLevel::kWarn;
    r.found = absl::StrCat(kEmojiFont, " is not there");
    r.advice = "apt-get install fonts-noto-color-emoji, or train on other data";
  }
  return r;
}

// Opens a listener on a free port of 127.0.0.1 and a connection to it.
absl::Status TryLoopback() {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int dialer = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const bool good =
      listener >= 0 && dialer >= 0 && ::bind(listener, any, size) == 0 &&
      ::listen(listener, 1) == 0 && ::getsockname(listener, any, &size) == 0 &&
      ::connect(dialer, any, size) == 0;
  const int error = errno;
  if (listener >= 0) ::close(listener);
  if (dialer >= 0) ::close(dialer);
  return good ? absl::OkStatus() : absl::ErrnoToStatus(error, "127.0.0.1");
}

CheckResult Ports() {
  CheckResult r{.name = "ports",
                .why = "local peers speak over free ports of 127.0.0.1"};
  const absl::Status status = TryLoopback();
  r.found = status.ok() ? "a connection over 127.0.0.1 works"
                        : std::string(status.message());
  if (!status.ok()) {
    r.level = CheckLevel::kFail;
    r.advice = "a firewall or sandbox forbids loopback connections: allow them";
  }
  return r;
}

CheckResult Clock() {
  CheckResult r{.name = "clock",
                .why =
                    "logs of several machines are compared by time; "
                    "training itself does not depend on it"};
  timex info = {};
  // The kernel knows whether a time service has set its clock lately, whichever
  // service that is.
  const int state = ::adjtimex(&info);
  if (state >= 0 && (info.status & STA_UNSYNC) == 0) {
    r.found = "kept by a time service";
  } else {
    r.level = CheckLevel::kWarn;
    r.found = "not known to be kept by a time service";
    r.advice = "on several machines, run chrony or systemd-timesyncd";
  }
  return r;
}

CheckResult OpenFiles() {
  CheckResult r{.name = "open files",
                .why = "a peer holds a few per neighbour"};
  rlimit limit = {};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  r.found = absl::StrCat("limit ", limit.rlim_cur);
  if (limit.rlim_cur < 1024) {
    r.level = CheckLevel::kWarn;
    r.advice = "ulimit -n 4096";
  }
  return r;
}

CheckResult Versions() {
  // Two machines whose lines differ are the first thing to look at when peers
  // refuse each other.
  CheckResult r{.name = "versions", .why = "peers of a run must fit together"};
  utsname kernel = {};
  ::uname(&kernel);
  r.found = absl::StrCat(
      "gossamer ", GOSSAMER_VERSION, ", gRPC ", GOSSAMER_GRPC_VERSION,
      ", protobuf ",
      google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION), ", ",
      kernel.sysname, " ", kernel.release);
  return r;
}

}  // namespace

std::vector<CheckResult> CheckMachine(const std::string& runs) {
  std::vector<CheckResult> checks = {
      Versions(),
      Cpu(),
      Cores(),
      Memory(),
      Disk(runs),
      OpenFiles(),
      Program("gossamer-topology", "it tells peers who their neighbours are"),
      Program("gossamer-peer", "it trains"),
      Program("gossamer-peer-networks",
              "gossamer-peer becomes it for a run of networks",
              CheckLevel::kWarn),
      Program("gossamer-models", "it draws and scores samples",
              CheckLevel::kWarn),
      EmojiFont(),
      Ports(),
      Clock()};
  for (CheckResult& tcp : CheckTcp(ReadTcpFacts())) {
    checks.push_back(std::move(tcp));
  }
  for (CheckResult& gpu : CheckGpu(ReadGpuFacts())) {
    checks.push_back(std::move(gpu));
  }
  return checks;
}

std::string ToString(CheckLevel level) {
  switch (level) {
    case CheckLevel::kOk:
      return "ok";
    case CheckLevel::kWarn:
      return "warn";
    case CheckLevel::kFail:
      return "fail";
  }
  return "";
}

}  // namespace gossamer
