#include "runtime/device/cuda_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

constexpr char kLibrary[] = "libgossamer_cuda.so";

struct Opened {
  std::string path;
  void* handle = nullptr;
};

// The first of `paths` that opens; else what the linker says of the last that
// is there, which names the library that it lacks.
absl::StatusOr<Opened> OpenFirst(const std::vector<std::string>& paths,
                                 int flags) {
  std::string reason;
  for (const std::string& path : paths) {
    if (void* const handle = ::dlopen(path.c_str(), flags)) {
      return Opened{path, handle};
    }
    const std::string error = ::dlerror();
    std::error_code ignored;
    if (reason.empty() || std::filesystem::exists(path, ignored)) {
      reason = error;
    }
  }
  return absl::FailedPreconditionError(reason);
}

// A library of PyPI's packages, which come with torch: first where the loader
// looks, as with LD_LIBRARY_PATH, then where the build has found torch.
std::vector<std::string> PlacesOf(const std::string& folder,
                                  const std::string& name) {
  std::vector<std::string> places = {name};
#if defined(GOSSAMER_TORCH_SITE)
  places.push_back(absl::StrCat(GOSSAMER_TORCH_SITE, "/", folder, "/", name));
#endif
  return places;
}

std::string CudaLibraryPath() {
  std::error_code error;
  std::filesystem::path self =
      std::filesystem::read_symlink("/proc/self/exe", error);
  // In libgossamer.so, whose program is another's, this is that library; l_name
  // of the program itself is empty.
  Dl_info object;
  link_map* map = nullptr;
  if (::dladdr1(reinterpret_cast<const void*>(&CudaLibraryPath), &object,
                reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0 &&
      map->l_name[0] != '\0') {
    self = map->l_name;
  }
  // Libraries are installed in a folder beside that of the programs.
  const std::filesystem::path folder = self.parent_path();
  const std::filesystem::path programs = folder.parent_path() / "bin";
  const bool beside = std::filesystem::exists(folder / kLibrary, error);
  return ((beside ? folder : programs) / kLibrary).string();
}

}  // namespace

absl::StatusOr<const CudaLibrary*> OpenCudaLibraryAt(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return absl::NotFoundError(absl::StrCat(
        path,
        " is not there: this build has no CUDA; run deploy/setup.sh "
        "--for cuda and build preset cuda"));
  }
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const std::string reason = ::dlerror();
    return absl::FailedPreconditionError(
        absl::StrCat("cannot open ", path, ": ", reason));
  }
  auto* const function = reinterpret_cast<CudaLibraryFunction*>(
      ::dlsym(handle, kCudaLibraryFunction));
  const CudaLibrary* const library = function != nullptr ? function() : nullptr;
  if (library == nullptr ||
      std::string_view(library->version) !=
          std::string_view(GOSSAMER_VERSION) ||
      library->kernels_size != sizeof(DeviceKernels) ||
      library->calls_size != sizeof(DeviceCalls)) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, " is of another version of gossamer than this program (",
        GOSSAMER_VERSION, "): build both together, preset cuda"));
  }
  return library;
}

absl::StatusOr<const CudaLibrary*> OpenCudaLibrary() {
  static const auto& library = *new absl::StatusOr<const CudaLibrary*>(
      OpenCudaLibraryAt(CudaLibraryPath()));
  return library;
}

absl::Status OpenTorchCuda() {
  // Read when the libraries are first used; what the user has set stays.  The
  // one lets cuDNN predict its fastest kernel instead of taking the first that
  // fits (a step of SAGAN takes 68.2 ms for 75.4 on an H200), with the other
  // cuBLAS sums in one order.
  setenv("TORCH_CUDNN_USE_HEURISTIC_MODE_B", "1", /*overwrite=*/0);
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  // Global, so that the half finds the classes of libtorch_cpu, which it
  // registers itself with.
  const auto handle = OpenFirst(PlacesOf("torch/lib", "libtorch_cuda.so"),
                                RTLD_NOW | RTLD_GLOBAL);
  if (handle.ok()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "torch's CUDA half does not open: ", handle.status().message(),
      "; deploy/setup.sh --for cuda brings its libraries"));
}

namespace {

absl::StatusOr<Opened> OpenNccl() {
  absl::StatusOr<Opened> opened =
      OpenFirst(PlacesOf("nvidia/nccl/lib", "libnccl.so.2"), RTLD_LAZY);
  if (opened.ok()) return opened;
  return absl::FailedPreconditionError(
      absl::StrCat("NCCL does not open: ", opened.status().message(),
                   "; deploy/setup.sh --for cuda brings it"));
}

}  // namespace

absl::StatusOr<std::string> FindNccl() {
  GOSSAMER_ASSIGN_OR_RETURN(const Opened nccl, OpenNccl());
  return nccl.path;
}

absl::StatusOr<std::string> NcclVersion() {
  GOSSAMER_ASSIGN_OR_RETURN(const Opened nccl, OpenNccl());
  auto* const ask =
      reinterpret_cast<int (*)(int*)>(::dlsym(nccl.handle, "ncclGetVersion"));
  int version = 0;
  if (ask == nullptr || ask(&version) != 0) {
    return absl::FailedPreconditionError("NCCL does not tell its version");
  }
  // 22809 is 2.28.9.
  return absl::StrCat(version / 10000, ".", version % 10000 / 100, ".",
                      version % 100);
}

}  // namespace gossamer
