// Work on the compute engine as something that a coroutine awaits.

#ifndef GOSSAMER_RUNTIME_PEER_COMPUTE_H_
#define GOSSAMER_RUNTIME_PEER_COMPUTE_H_

#include <functional>
#include <utility>

#include "runtime/base/event_loop.h"
#include "runtime/base/task.h"

namespace gossamer {

// co_await resumes on the loop, once `work` is done.
inline Pending<bool> Compute(ComputeEngine* engine,
                             std::function<void()> work) {
  Pending<bool> done;
  engine->Run(std::move(work), [done]() mutable { done.Set(true); });
  return done;
}

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_COMPUTE_H_
