// Opens what CUDA needs at run time, and says which library is missing.
//
// This header knows nothing of which device is asked for (device_request.h).

#ifndef GOSSAMER_RUNTIME_DEVICE_CUDA_LIBRARY_H_
#define GOSSAMER_RUNTIME_DEVICE_CUDA_LIBRARY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/kernels/cuda/library.h"

namespace gossamer {

// libgossamer_cuda.so in the folder of this program, or of libgossamer.so, or
// in bin beside that folder; it is opened once in a process and stays.
// kNotFound: this build has none; kFailedPrecondition: it does not open, or is
// of another build.
absl::StatusOr<const CudaLibrary*> OpenCudaLibrary();
// The same of a file, each time anew.
absl::StatusOr<const CudaLibrary*> OpenCudaLibraryAt(const std::string& path);

// libtorch_cuda.so, torch's CUDA half.  It must be opened before torch is first
// asked whether there is CUDA: torch remembers the answer.  kFailedPrecondition
// names the library that is missing.
absl::Status OpenTorchCuda();

// The libnccl.so.2 that opens, as dlopen takes it; kFailedPrecondition if none
// does.
absl::StatusOr<std::string> FindNccl();
// The version of NCCL, "2.28.9"; kFailedPrecondition if there is none.
absl::StatusOr<std::string> NcclVersion();

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DEVICE_CUDA_LIBRARY_H_
