// A device for tests on any machine: its memory refuses the host, and its work
// is done late.
//
// The memory has no access rights except while a piece of work runs, so host
// code that touches it ends with a signal at that line.  Work waits until it is
// asked for: the first questions whether an event has passed are answered with
// no, and the host's side of a copy refuses the host until the copy is done, so
// that a forgotten synchronisation ends with a signal, too.  Copies are
// counted. This header knows nothing of what is computed.

#ifndef GOSSAMER_TESTS_TESTING_FAKE_DEVICE_H_
#define GOSSAMER_TESTS_TESTING_FAKE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "algorithms/kernels/cuda/library.h"
#include "algorithms/kernels/device_calls.h"
#include "algorithms/kernels/device_kernels.h"
#include "algorithms/kernels/device_queue.h"
#include "algorithms/kernels/host_stream.h"

namespace gossamer {

// One at a time in a program: functions of a table have no state.  Any threads.
class FakeDevice {
 public:
  struct Options {
    // The kernels that do the work, on the host's memory: fibers of CUDA's
    // (cuda/kernels.h), say.
    const DeviceKernels* kernels = &HostDeviceKernels();
    DeviceStream* stream = HostStream(HostKernels());
    // How often an event is asked for in vain.
    int delay = 2;
    // Bytes of memory that it has.
    size_t memory = size_t{1} << 30;
    // Its machine has so many of them, which share this one's memory, and a
    // driver of this version, 0 for none.
    int devices = 1;
    int driver = 13000;
  };
  FakeDevice();
  explicit FakeDevice(const Options& options);
  FakeDevice(const FakeDevice&) = delete;
  FakeDevice& operator=(const FakeDevice&) = delete;
  // All queues have ended.
  ~FakeDevice();

  // A stream of its own.
  DeviceQueue queue() const;
  // The two tables, as a program opens them.
  static const CudaLibrary& library();
  static const DeviceCalls& calls();
  static const DeviceKernels& kernels();

  struct Counts {
    // The bytes of each copy, in order.
    std::vector<size_t> to_device, to_host;
    uint64_t launches = 0;
    // Pieces of captured work, and how often one was done.
    uint64_t captures = 0, replays = 0;
    // Calls that waited until all work was done, copies that were not from
    // pinned memory among them.
    uint64_t waits = 0;
    // The most bytes of pinned memory that were taken at one time.
    size_t pinned_peak = 0;
  };
  Counts counts() const;
  void ResetCounts();
  // Enqueues work of the device's own, as the kernels of a game are: it may
  // touch the memory.  The work is of the stream that captures, if one does.
  void Launch(std::function<void()> work);
  // Pieces of work that are not done.
  size_t pending() const;
  // The next capture fails for this reason.
  void FailCapture(const char* why);
  // From here on every call fails for this reason.
  void Vanish(const char* why);
};

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_TESTING_FAKE_DEVICE_H_
