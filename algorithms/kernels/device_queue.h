// The work of a peer on its device: kernels, copies and memory in the order in
// which they are asked for.
//
// Calls enqueue and return.  The queue of the host does each at once, so that
// one source serves both and the host pays nothing for devices.  This header
// knows nothing of what is computed, and of CUDA only the tables.

#ifndef GOSSAMER_ALGORITHMS_KERNELS_DEVICE_QUEUE_H_
#define GOSSAMER_ALGORITHMS_KERNELS_DEVICE_QUEUE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/kernels/device_calls.h"
#include "algorithms/kernels/device_kernels.h"
#include "algorithms/kernels/device_span.h"
#include "algorithms/kernels/kernels.h"

namespace gossamer {

class CapturedWork;
class DeviceFence;

// A handle: copies of it are the same queue, which ends with the last of them
// and of the memory taken from it.  Any one thread at a time, but memory may be
// given back on any.
//
// A queue that fails (no memory, a device that has vanished) does nothing from
// then on, and status() says why; results read from it are zeros.
class DeviceQueue {
 public:
  static const DeviceQueue& Host();
  // The host with the kernels of this table.  Implicit, as a table is all that
  // a queue of the host has.
  DeviceQueue(const Kernels& table);  // NOLINT(google-explicit-constructor)
  // A stream of its own on `device`.  kUnavailable: the device's reason.
  static absl::StatusOr<DeviceQueue> Open(const DeviceKernels& kernels,
                                          const DeviceCalls& calls,
                                          Device device);

  Device device() const { return parts_->device; }
  bool on_host() const { return device().kind == Device::kHost; }
  // The kernels for what lies in the host's memory, whatever the device.
  const Kernels& host_kernels() const { return *parts_->host; }

  // Runs a kernel: queue.Run(&DeviceKernels::axpy, a, y, x).  Ends the program
  // if a span is of another device.
  template <typename... P, typename... A>
  void Run(void (*DeviceKernels::*kernel)(DeviceStream*, P...),
           A&&... arguments) const {
    if (!Enters()) return;
    [&](P... p) {
      (CheckPlace(p), ...);
      (parts_->kernels->*kernel)(parts_->stream, p...);
    }(std::forward<A>(arguments)...);
  }

  // Between spans of this device, of one size.
  template <typename T>
  void Copy(DeviceSpan<const std::type_identity_t<T>> from,
            DeviceSpan<T> to) const {
    CheckPlace(from);
    CheckPlace(to);
    CopyBytes(to.data, from.data, to.size * sizeof(T));
  }
  template <typename T>
  void Clear(DeviceSpan<T> span) const {
    CheckPlace(span);
    ClearBytes(span.data, span.size * sizeof(T));
  }
  // Copies values of the host, which may change as soon as the call returns.
  template <typename T>
  void Upload(std::span<const std::type_identity_t<T>> from,
              DeviceSpan<T> to) const {
    CheckPlace(to);
    UploadBytes(std::as_bytes(from), to.data);
  }
  // Bytes of the host, of no particular value, that a device reads at its full
  // speed; null if the queue has failed.
  std::shared_ptr<std::byte[]> HostBytes(size_t bytes) const;
  // Copies the first bytes of such memory without a copy on the host in
  // between: they stay as they are until what is enqueued is done.
  void UploadHeld(const std::byte* held, DeviceSpan<std::byte> to) const;
  // Bytes of the host that will be those of `from` once what is enqueued is
  // done (RecordFence, Wait).  No other call writes to them while they are
  // held.
  std::shared_ptr<std::byte[]> Download(DeviceSpan<const std::byte> from) const;

  // Another owner of the device's memory gives back what it does not use by
  // this call, which is good for ever: it is made, on the thread of the queue,
  // before the queue fails for want of memory.
  void OnShortage(void (*give_back)()) const;

  // Records an event behind all that has been enqueued so far.
  DeviceFence RecordFence() const;
  // Blocks until all work is done; never on a peer's loop.  Returns status().
  absl::Status Wait() const;
  // The values as they are once all work is done: blocks as Wait does.  They
  // come into the memory of `into`, as far as that fits.
  template <typename T>
  std::vector<std::remove_const_t<T>> ToHost(
      DeviceSpan<T> from, std::vector<std::remove_const_t<T>> into = {}) const {
    CheckPlace(from);
    if (on_host()) {
      into.assign(from.data, from.data + from.size);
    } else {
      into.resize(from.size);
      BytesToHost(from.data, std::as_writable_bytes(std::span(into)));
    }
    return into;
  }
  // The reason of the first failure: kResourceExhausted if it was for want of
  // memory, with the buffer, its size and what is free; else kUnavailable.
  absl::Status status() const;

  // Keeps what `enqueue` enqueues on the stream that it is given, a stream
  // aside, instead of doing it.  The work is of the device alone, in memory
  // that is there: no copies from or to the host, and nothing that waits.
  // kUnavailable, or what `enqueue` returns: nothing is kept and nothing done,
  // and the queue goes on as before.
  absl::StatusOr<CapturedWork> Capture(
      absl::FunctionRef<absl::Status(DeviceStream*)> enqueue) const;
  // Does captured work in the order of this queue.
  void Replay(const CapturedWork& work) const;
  // For libraries that enqueue work of their own on it.
  DeviceStream* stream() const { return parts_->stream; }

 private:
  template <typename T>
  friend class DeviceVector;
  friend class DeviceFence;
  struct State;
  // The parts that Run needs, and behind them the state.
  struct Parts {
    const DeviceKernels* kernels = nullptr;
    const DeviceCalls* calls = nullptr;
    const Kernels* host = nullptr;
    DeviceStream* stream = nullptr;
    Device device;
    std::atomic<bool> failed = false;
    std::shared_ptr<State> state;  // null: of the host
  };
  explicit DeviceQueue(std::shared_ptr<Parts> parts)
      : parts_(std::move(parts)) {}

  // False: the queue has failed.
  bool Enters() const { return parts_->state == nullptr || Use(); }
  bool Use() const;
  template <typename T>
  void CheckPlace(const DeviceSpan<T>& span) const {
    if (span.size != 0 && span.device != parts_->device) Misplaced(span.device);
  }
  // Arguments that say nothing of where they lie.
  template <typename T>
  void CheckPlace(const T&) const {}
  [[noreturn]] void Misplaced(Device device) const;

  void CopyBytes(void* to, const void* from, size_t bytes) const;
  void ClearBytes(void* memory, size_t bytes) const;
  void UploadBytes(std::span<const std::byte> from, void* to) const;
  void BytesToHost(const void* from, std::span<std::byte> to) const;
  // Memory of no particular value, to be used in the order of the queue; null
  // if it has failed.  `what` names it in the failure.
  void* Take(size_t bytes, const char* what) const;
  void GiveBack(void* memory, size_t bytes) const;

  std::shared_ptr<Parts> parts_;
};

// Work of a device that Replay does again and again, with the values that then
// lie where it was captured.
class CapturedWork {
 public:
  // Of no queue: none.
  CapturedWork() = default;
  // Keeps what the work needs for as long as it is there.
  void Hold(std::shared_ptr<void> needed) { held_ = std::move(needed); }

 private:
  friend class DeviceQueue;
  // Given back in the other order: the graph first.
  std::shared_ptr<void> held_;
  std::shared_ptr<DeviceGraph> graph_;
};

// An event that is recorded in a queue.
class DeviceFence {
 public:
  // Of no queue: done.
  DeviceFence() = default;
  // All that was enqueued before it is done, or the queue has failed.  Does not
  // block.
  bool done();

 private:
  friend class DeviceQueue;
  // The queue may hold fences of its own.  Expired: done.
  std::weak_ptr<DeviceQueue::Parts> parts_;
  std::shared_ptr<DeviceEvent> event_;
};

// Values in the memory of a queue's device, which it owns.  `what` is a noun
// for them, which is read if there is no memory.
template <typename T>
class DeviceVector {
 public:
  static_assert(std::is_trivially_copyable_v<T>);
  // Of no queue, and empty.
  DeviceVector() = default;
  // `size` zeros.
  DeviceVector(const DeviceQueue& queue, size_t size,
               const char* what = "a buffer")
      : DeviceVector(Unset(queue, size, what)) {
    Clear();
  }
  // `size` values that are to be written before they are read.
  static DeviceVector Unset(const DeviceQueue& queue, size_t size,
                            const char* what = "a buffer") {
    DeviceVector made;
    if (size == 0) return made;
    made.parts_ = queue.parts_;
    made.data_ = static_cast<T*>(queue.Take(size * sizeof(T), what));
    made.size_ = size;
    return made;
  }
  // Those of the host's memory.
  static DeviceVector Of(const DeviceQueue& queue, std::span<const T> host,
                         const char* what = "a buffer") {
    DeviceVector made = Unset(queue, host.size(), what);
    made.CopyFrom(host);
    return made;
  }
  DeviceVector(DeviceVector&& other) noexcept { Swap(other); }
  DeviceVector& operator=(DeviceVector&& other) noexcept {
    DeviceVector taken(std::move(other));
    Swap(taken);
    return *this;
  }
  ~DeviceVector() {
    if (data_ != nullptr) queue().GiveBack(data_, size_ * sizeof(T));
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  DeviceSpan<T> span() { return {data_, size_, device()}; }
  DeviceSpan<const T> span() const { return {data_, size_, device()}; }
  operator DeviceSpan<T>() { return span(); }              // NOLINT
  operator DeviceSpan<const T>() const { return span(); }  // NOLINT

  // Zeros of `size` values, unless it has that many already.
  void EnsureSize(const DeviceQueue& queue, size_t size,
                  const char* what = "a buffer") {
    if (size_ != size) *this = DeviceVector(queue, size, what);
  }
  void Clear() {
    if (size_ > 0) queue().Clear(span());
  }
  // The values become those of the host's memory, of one size.
  void CopyFrom(std::span<const T> host) {
    if (size_ > 0) queue().Upload(host, span());
  }
  // DeviceQueue::ToHost: blocks.
  std::vector<T> ToHost(std::vector<T> into = {}) const {
    into.clear();
    return size_ > 0 ? queue().ToHost(span(), std::move(into))
                     : std::move(into);
  }

 private:
  DeviceQueue queue() const { return DeviceQueue(parts_); }
  Device device() const { return size_ > 0 ? parts_->device : Device(); }
  void Swap(DeviceVector& other) {
    std::swap(parts_, other.parts_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  std::shared_ptr<DeviceQueue::Parts> parts_;
  T* data_ = nullptr;
  size_t size_ = 0;
};

// Values of the host where a queue's kernels can read them: themselves on the
// host, a copy on a device.  The host's outlive it.
template <typename T>
class DeviceCopy {
 public:
  DeviceCopy(const DeviceQueue& queue, std::span<const T> host) : span_(host) {
    if (queue.on_host() || host.empty()) return;
    copy_ = DeviceVector<T>::Of(queue, host);
    span_ = std::as_const(copy_).span();
  }
  DeviceSpan<const T> span() const { return span_; }
  operator DeviceSpan<const T>() const { return span_; }  // NOLINT
  const T* data() const { return span_.data; }

 private:
  DeviceVector<T> copy_;
  DeviceSpan<const T> span_;
};

// Values of a device on their way to the host.
template <typename T>
class Readback {
 public:
  Readback() = default;
  Readback(const DeviceQueue& queue, DeviceSpan<const T> from)
      : bytes_(queue.Download({reinterpret_cast<const std::byte*>(from.data),
                               from.size * sizeof(T), from.device})),
        fence_(queue.RecordFence()) {}
  // The values have come.
  bool ready() { return fence_.done(); }
  // Value `i`, once they are there.
  T operator[](size_t i) const {
    T value;
    std::memcpy(&value, bytes_.get() + i * sizeof(T), sizeof(T));
    return value;
  }

 private:
  std::shared_ptr<std::byte[]> bytes_;
  DeviceFence fence_;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_KERNELS_DEVICE_QUEUE_H_
