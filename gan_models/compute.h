// The border to libtorch: how many threads it may use, and its exceptions as
// statuses.
//
// This header knows nothing of tensors.

#ifndef GOSSAMER_GAN_MODELS_COMPUTE_H_
#define GOSSAMER_GAN_MODELS_COMPUTE_H_

#include <exception>
#include <new>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace gossamer {

// Sets how many threads the caller's tensor operations use.  libtorch keeps
// this per calling thread, and a game may be called from another thread than
// the one that made it, so every entry into it begins with this.
void UseThreads(int threads);

// Calls `work`, which returns a Status or StatusOr.  An exception becomes
// kResourceExhausted (memory) or kInternal with its first line, the rest being
// a trace of libtorch's own stack.
template <typename Work>
auto GuardTorch(Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory in libtorch");
  } catch (const std::exception& e) {
    std::string what = e.what();
    what = absl::StrCat("libtorch: ", what.substr(0, what.find('\n')));
    // A device's memory has no exception that is known without its library.
    if (what.find("out of memory") != std::string::npos) {
      return absl::ResourceExhaustedError(
          absl::StrCat(what,
                       " (lower game.gan.batch or game.gan.width, or take "
                       "step.precision bf16)"));
    }
    return absl::InternalError(what);
  }
}

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_COMPUTE_H_
