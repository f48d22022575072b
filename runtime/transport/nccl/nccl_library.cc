#include "runtime/transport/nccl/nccl_library.h"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "runtime/base/steady_time.h"

namespace gossamer {
namespace {

// From nccl.h, whose values stay what they are.
constexpr int kUint8 = 1;
constexpr int kFloat32 = 7;
constexpr int kSum = 0;

// ncclConfig_t as version 2.14 had it.  Later versions read as much of a
// configuration as its size and its version say.
struct Config {
  size_t size = sizeof(Config);
  unsigned int magic = 0xcafebeef;
  unsigned int version = 21400;
  int blocking = 0;
};

// A unique id is passed by value.
struct IdByValue {
  NcclUniqueId bytes;
};

template <typename Function>
absl::Status Find(void* library, const std::string& path, const char* name,
                  Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(library, name));
  if (*function != nullptr) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(path, " has no function ", name,
                   ": NCCL 2.14 or later is needed; install nvidia-nccl-cu13 "
                   "or the CUDA toolkit's NCCL"));
}

}  // namespace

struct NcclLibrary::Communicator {
  NcclComm real = nullptr;
  absl::Time watched_until = absl::InfiniteFuture();
  bool aborted = false;  // or about to be
  bool over = false;     // the abort
  // Of what was under way, until then.
  std::shared_ptr<void> buffers;
};

struct NcclLibrary::Functions {
  int (*get_version)(int*) = nullptr;
  const char* (*get_error_string)(int) = nullptr;
  int (*get_unique_id)(void*) = nullptr;
  int (*init)(NcclComm*, int, IdByValue, int, Config*) = nullptr;
  int (*get_async_error)(NcclComm, int*) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*send)(const void*, size_t, int, int, NcclComm, void*) = nullptr;
  int (*receive)(void*, size_t, int, int, NcclComm, void*) = nullptr;
  int (*all_reduce)(const void*, void*, size_t, int, int, NcclComm,
                    void*) = nullptr;
  int (*abort)(NcclComm) = nullptr;
};

absl::StatusOr<std::unique_ptr<NcclLibrary>> NcclLibrary::Open(
    const std::string& path) {
  void* const opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    return absl::UnavailableError(absl::StrCat(
        "NCCL cannot be opened: ", dlerror(),
        "; install nvidia-nccl-cu13 or the CUDA toolkit's NCCL, or name its "
        "folder in LD_LIBRARY_PATH"));
  }
  // It stays open: threads of NCCL may outlive its last communicator.
  const std::shared_ptr<void> library(opened, [](void*) {});
  auto f = std::make_unique<Functions>();
  const auto find = [&](const char* name, auto** function) {
    return Find(opened, path, name, function);
  };
  GOSSAMER_RETURN_IF_ERROR(find("ncclGetVersion", &f->get_version));
  GOSSAMER_RETURN_IF_ERROR(find("ncclGetErrorString", &f->get_error_string));
  GOSSAMER_RETURN_IF_ERROR(find("ncclGetUniqueId", &f->get_unique_id));
  GOSSAMER_RETURN_IF_ERROR(find("ncclCommInitRankConfig", &f->init));
  GOSSAMER_RETURN_IF_ERROR(find("ncclCommGetAsyncError", &f->get_async_error));
  GOSSAMER_RETURN_IF_ERROR(find("ncclGroupStart", &f->group_start));
  GOSSAMER_RETURN_IF_ERROR(find("ncclGroupEnd", &f->group_end));
  GOSSAMER_RETURN_IF_ERROR(find("ncclSend", &f->send));
  GOSSAMER_RETURN_IF_ERROR(find("ncclRecv", &f->receive));
  GOSSAMER_RETURN_IF_ERROR(find("ncclAllReduce", &f->all_reduce));
  GOSSAMER_RETURN_IF_ERROR(find("ncclCommAbort", &f->abort));
  int version = 0;
  if (f->get_version(&version) != 0 || version < 21400) {
    return absl::UnavailableError(
        absl::StrCat(path, " is NCCL ", version,
                     "; version 21400 (2.14) or later is needed"));
  }
  return std::unique_ptr<NcclLibrary>(
      new NcclLibrary(library, std::move(f), version));
}

NcclComm NcclLibrary::RealOf(NcclComm comm) {
  return static_cast<const Communicator*>(comm)->real;
}

NcclLibrary::NcclLibrary(std::shared_ptr<void> library,
                         std::unique_ptr<Functions> functions, int version)
    : library_(std::move(library)),
      functions_(std::move(functions)),
      version_(version) {}

// An abort that is under way needs the lock to end.
NcclLibrary::~NcclLibrary() {
  std::vector<std::future<void>> aborts;
  {
    MutexLock lock(&mu_);
    ending_ = true;
    changed_.Signal();
  }
  if (watchdog_.joinable()) watchdog_.join();
  // Their ends wait for the aborts, which need the lock.
  MutexLock lock(&mu_);
  aborts.swap(aborts_);
}

std::string NcclLibrary::TextOf(NcclResult result) const {
  if (result == NcclResult::kAborted) {
    return "it was aborted because this process was held up meanwhile";
  }
  return functions_->get_error_string(static_cast<int>(result));
}

NcclResult NcclLibrary::GetUniqueId(NcclUniqueId* id) {
  return NcclResult{functions_->get_unique_id(id->data())};
}

NcclResult NcclLibrary::CommInitRank(NcclComm* comm, int ranks,
                                     const NcclUniqueId& id, int rank) {
  Config config;
  auto made = std::make_shared<Communicator>();
  *comm = made.get();
  {
    MutexLock lock(&mu_);
    comms_.emplace(*comm, made);
  }
  return NcclResult{
      functions_->init(&made->real, ranks, IdByValue{id}, rank, &config)};
}

NcclResult NcclLibrary::CommGetAsyncError(NcclComm comm, NcclResult* error) {
  MutexLock lock(&mu_);
  if (comms_.at(comm)->aborted) return NcclResult::kAborted;
  int code = 0;
  const int result = functions_->get_async_error(RealOf(comm), &code);
  *error = NcclResult{code};
  return NcclResult{result};
}

NcclResult NcclLibrary::GroupStart() {
  return NcclResult{functions_->group_start()};
}

NcclResult NcclLibrary::GroupEnd() {
  return NcclResult{functions_->group_end()};
}

NcclResult NcclLibrary::Send(const void* from, size_t bytes, int rank,
                             NcclComm comm, void* stream) {
  return NcclResult{
      functions_->send(from, bytes, kUint8, rank, RealOf(comm), stream)};
}

NcclResult NcclLibrary::Recv(void* to, size_t bytes, int rank, NcclComm comm,
                             void* stream) {
  return NcclResult{
      functions_->receive(to, bytes, kUint8, rank, RealOf(comm), stream)};
}

NcclResult NcclLibrary::AllReduce(const float* from, float* to, size_t count,
                                  NcclComm comm, void* stream) {
  return NcclResult{functions_->all_reduce(from, to, count, kFloat32, kSum,
                                           RealOf(comm), stream)};
}

NcclResult NcclLibrary::Watch(NcclComm comm, absl::Duration patience) {
  MutexLock lock(&mu_);
  Communicator& watched = *comms_.at(comm);
  if (watched.aborted) return NcclResult::kAborted;
  const bool first = watched.watched_until == absl::InfiniteFuture();
  watched.watched_until = SteadyNow() + patience;
  if (!first || watched.watched_until == absl::InfiniteFuture()) {
    return NcclResult::kSuccess;
  }
  if (!watchdog_.joinable()) watchdog_ = std::thread([this] { RunWatchdog(); });
  changed_.Signal();
  return NcclResult::kSuccess;
}

void NcclLibrary::RunWatchdog() {
  pthread_setname_np(pthread_self(), "nccl-watchdog");
  MutexLock lock(&mu_);
  while (!ending_) {
    const absl::Time now = SteadyNow();
    absl::Time next = absl::InfiniteFuture();
    for (const auto& [name, comm] : comms_) {
      if (comm->aborted) continue;
      if (comm->watched_until <= now) {
        Abort(comm);
      } else {
        next = std::min(next, comm->watched_until);
      }
    }
    changed_.WaitFor(&mu_, next - now);
  }
}

void NcclLibrary::CommAbort(NcclComm comm, std::shared_ptr<void> buffers) {
  MutexLock lock(&mu_);
  const std::shared_ptr<Communicator> ended =
      std::move(comms_.extract(comm).mapped());
  // Those of an abort that is over can go.
  if (!ended->over) ended->buffers = std::move(buffers);
  if (!ended->aborted) Abort(ended);
}

// An abort waits for the kernels of the communicator, which may take long.
void NcclLibrary::Abort(const std::shared_ptr<Communicator>& comm) {
  comm->aborted = true;
  std::erase_if(aborts_, [](const std::future<void>& abort) {
    return abort.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  });
  aborts_.push_back(std::async(std::launch::async, [this, comm] {
    if (comm->real != nullptr) functions_->abort(comm->real);
    std::shared_ptr<void> buffers;
    MutexLock lock(&mu_);
    comm->over = true;
    buffers.swap(comm->buffers);
  }));
}

}  // namespace gossamer
