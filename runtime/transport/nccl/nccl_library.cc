#include "runtime/transport/nccl/nccl_library.h"

#include <dlfcn.h>

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"

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

NcclLibrary::NcclLibrary(std::shared_ptr<void> library,
                         std::unique_ptr<Functions> functions, int version)
    : library_(std::move(library)),
      functions_(std::move(functions)),
      version_(version) {}

NcclLibrary::~NcclLibrary() {
  for (std::thread& abort : aborts_) abort.join();
}

std::string NcclLibrary::TextOf(NcclResult result) const {
  return functions_->get_error_string(static_cast<int>(result));
}

NcclResult NcclLibrary::GetUniqueId(NcclUniqueId* id) {
  return NcclResult{functions_->get_unique_id(id->data())};
}

NcclResult NcclLibrary::CommInitRank(NcclComm* comm, int ranks,
                                     const NcclUniqueId& id, int rank) {
  Config config;
  return NcclResult{
      functions_->init(comm, ranks, IdByValue{id}, rank, &config)};
}

NcclResult NcclLibrary::CommGetAsyncError(NcclComm comm, NcclResult* error) {
  int code = 0;
  const int result = functions_->get_async_error(comm, &code);
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
  return NcclResult{functions_->send(from, bytes, kUint8, rank, comm, stream)};
}

NcclResult NcclLibrary::Recv(void* to, size_t bytes, int rank, NcclComm comm,
                             void* stream) {
  return NcclResult{functions_->receive(to, bytes, kUint8, rank, comm, stream)};
}

NcclResult NcclLibrary::AllReduce(const float* from, float* to, size_t count,
                                  NcclComm comm, void* stream) {
  return NcclResult{
      functions_->all_reduce(from, to, count, kFloat32, kSum, comm, stream)};
}

// An abort waits for the kernels of the communicator, which may take long.
void NcclLibrary::CommAbort(NcclComm comm, std::shared_ptr<void> buffers) {
  aborts_.emplace_back(
      [abort = functions_->abort, comm, kept = std::move(buffers)]() mutable {
        abort(comm);
        kept.reset();
      });
}

}  // namespace gossamer
