// Work that is the same each time, enqueued piece by piece until it has warmed
// up and then captured once and replayed.
//
// A replay costs the host one call where a step of networks costs it a
// thousand.  This header knows nothing of what the work is, and of devices only
// their queue.

#ifndef GOSSAMER_GAN_MODELS_GRAPH_RUNNER_H_
#define GOSSAMER_GAN_MODELS_GRAPH_RUNNER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/kernels/device_queue.h"

namespace gossamer {

class GraphRunner {
 public:
  struct Options {
    // False: every run enqueues its work.  A queue of the host never captures.
    bool graphs = true;
    // The runs of a kind that are enqueued before it is captured.  Libraries
    // take memory and choose their kernels in the first ones, which no graph
    // may do.
    int warm_ups = 3;
    // Is told why a capture has failed; from then on every run enqueues.
    std::function<void(const std::string&)> on_failure = {};
  };
  GraphRunner(DeviceQueue queue, Options options);

  using Enqueue = absl::FunctionRef<absl::Status()>;
  using Capture = absl::FunctionRef<absl::StatusOr<CapturedWork>()>;
  // Does the work of this kind in the queue's order: `enqueue` enqueues it,
  // `capture` captures the same (DeviceQueue::Capture).  Runs of one kind are
  // the same work in the same memory, and each kind holds the memory of a step:
  // there are few.  Returns what `enqueue` does.
  absl::Status Run(uint64_t kind, Enqueue enqueue, Capture capture);

 private:
  struct Kind {
    int runs = 0;  // that were enqueued
    bool captured = false;
    CapturedWork work;
  };
  const DeviceQueue queue_;
  const Options options_;
  bool captures_;
  std::map<uint64_t, Kind> kinds_;
};

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_GRAPH_RUNNER_H_
