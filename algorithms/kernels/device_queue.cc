#include "algorithms/kernels/device_queue.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/mutex.h"
#include "algorithms/kernels/host_stream.h"

namespace gossamer {
namespace {

// Pinned memory is taken in such steps: payloads of an edge differ by little.
constexpr size_t kPinnedStep = size_t{64} << 10;

}  // namespace

// The state of a device's queue beside its stream: the reason of its failure,
// and memory to use again.  Taking either kind of memory from a driver stops
// all streams.
struct DeviceQueue::State {
  Mutex mu;
  std::string failure ABSL_GUARDED_BY(mu);
  bool out_of_memory ABSL_GUARDED_BY(mu) = false;  // the failure is that
  // Memory is used in the order of the queue, so what is given back may be
  // taken again at once: work on it that is enqueued earlier is done earlier.
  std::multimap<size_t, void*> free ABSL_GUARDED_BY(mu);

  // The host's side of a copy, by contrast, may be taken again only when what
  // was enqueued before it was given back is done.
  struct Pinned {
    void* memory = nullptr;
    size_t capacity = 0;
    DeviceFence last;
  };
  std::vector<Pinned> given_back ABSL_GUARDED_BY(mu);
  std::vector<Pinned> fenced;  // of the queue's thread
  std::atomic<void (*)()> on_shortage = nullptr;
  // The stream on which work is captured; null until then.  It lives as long as
  // the queue, since libraries keep memory by the name of a stream.
  DeviceStream* aside = nullptr;

  static void Fail(Parts& parts, std::string_view what, const char* why,
                   bool out_of_memory = false) {
    MutexLock lock(&parts.state->mu);
    if (parts.failed) return;
    parts.state->failure = absl::StrCat("cuda:", parts.device.index, ": ",
                                        std::string(what), ": ", why);
    parts.state->out_of_memory = out_of_memory;
    parts.failed = true;
  }
  // True if the call was done.
  static bool Check(Parts& parts, std::string_view what, const char* why) {
    if (why != nullptr) Fail(parts, what, why);
    return why == nullptr;
  }
  // The device works, but has no memory.
  static void RunOut(Parts& parts, size_t bytes, const char* what,
                     const char* why);
  static std::shared_ptr<std::byte[]> TakePinned(
      const std::shared_ptr<Parts>& parts, size_t bytes);
  // The end of a queue.
  static void Release(Parts* parts);
};

const DeviceQueue& DeviceQueue::Host() {
  static const DeviceQueue queue(HostKernels());
  return queue;
}

DeviceQueue::DeviceQueue(const Kernels& table)
    : parts_(std::make_shared<Parts>()) {
  parts_->kernels = &HostDeviceKernels();
  parts_->host = &table;
  parts_->stream = HostStream(table);
}

absl::StatusOr<DeviceQueue> DeviceQueue::Open(const DeviceKernels& kernels,
                                              const DeviceCalls& calls,
                                              Device device) {
  std::shared_ptr<Parts> parts(new Parts, State::Release);
  parts->kernels = &kernels;
  parts->calls = &calls;
  parts->host = &HostKernels();
  parts->device = device;
  parts->state = std::make_shared<State>();
  const char* why = calls.use(device.index);
  if (why == nullptr) why = calls.create_stream(&parts->stream);
  if (why != nullptr) {
    return absl::UnavailableError(
        absl::StrCat("cuda:", device.index, ": no stream: ", why));
  }
  return DeviceQueue(std::move(parts));
}

void DeviceQueue::State::RunOut(Parts& parts, size_t bytes, const char* what,
                                const char* why) {
  const auto text = [](uint64_t n) {
    const auto size = static_cast<double>(n);
    return size < 1e6 ? absl::StrFormat("%.1f kB", size / 1e3)
                      : absl::StrFormat("%.1f MB", size / 1e6);
  };
  std::string room;
  DeviceFacts facts;
  if (parts.calls->describe != nullptr &&
      parts.calls->describe(parts.device.index, &facts) == nullptr) {
    room = absl::StrCat(", with ", text(facts.free), " free of ",
                        text(facts.memory));
  }
  Fail(parts, absl::StrCat(text(bytes), " for ", what, room), why,
       /*out_of_memory=*/true);
}

void DeviceQueue::State::Release(Parts* parts) {
  const DeviceCalls& calls = *parts->calls;
  if (parts->stream != nullptr) {
    // Errors have nobody left to go to.
    calls.use(parts->device.index);
    calls.synchronize(parts->stream);
    MutexLock lock(&parts->state->mu);
    for (const auto& [bytes, memory] : parts->state->free) {
      calls.release(memory);
    }
    for (auto* pinned : {&parts->state->given_back, &parts->state->fenced}) {
      for (const Pinned& p : *pinned) calls.release_pinned(p.memory);
    }
    if (parts->state->aside != nullptr) {
      calls.destroy_stream(parts->state->aside);
    }
    calls.destroy_stream(parts->stream);
  }
  delete parts;
}

// The device of a thread is a setting of the thread, which others change too.
bool DeviceQueue::Use() const {
  return !parts_->failed &&
         State::Check(*parts_, "use", parts_->calls->use(device().index));
}

void DeviceQueue::Misplaced(Device device) const {
  const auto name = [](Device d) {
    return d.kind == Device::kHost ? std::string("the host")
                                   : absl::StrCat("cuda:", d.index);
  };
  std::fprintf(stderr,
               "DeviceQueue: memory of %s is given to a queue of %s; copy it "
               "with Upload or ToHost\n",
               name(device).c_str(), name(parts_->device).c_str());
  std::abort();
}

void DeviceQueue::CopyBytes(void* to, const void* from, size_t bytes) const {
  if (bytes == 0 || !Enters()) return;
  if (on_host()) {
    std::memcpy(to, from, bytes);
    return;
  }
  const char* why = parts_->calls->copy(parts_->stream, to, from, bytes);
  if (why != nullptr) State::Fail(*parts_, "copy", why);
}

void DeviceQueue::ClearBytes(void* memory, size_t bytes) const {
  if (bytes == 0 || !Enters()) return;
  if (on_host()) {
    std::memset(memory, 0, bytes);
    return;
  }
  const char* why = parts_->calls->clear(parts_->stream, memory, bytes);
  if (why != nullptr) State::Fail(*parts_, "clear", why);
}

// A copy from memory that is not pinned would block until the stream is empty,
// so the values go through pinned memory, which the host writes at once.
void DeviceQueue::UploadBytes(std::span<const std::byte> from, void* to) const {
  if (from.empty()) return;
  if (on_host()) {
    std::memcpy(to, from.data(), from.size());
    return;
  }
  if (!Enters()) return;
  const auto staged = State::TakePinned(parts_, from.size());
  if (staged == nullptr) return;
  std::memcpy(staged.get(), from.data(), from.size());
  CopyBytes(to, staged.get(), from.size());
}

std::shared_ptr<std::byte[]> DeviceQueue::HostBytes(size_t bytes) const {
  if (on_host()) return std::make_shared<std::byte[]>(bytes);
  if (!Enters()) return nullptr;
  return State::TakePinned(parts_, bytes);
}

void DeviceQueue::UploadHeld(const std::byte* held,
                             DeviceSpan<std::byte> to) const {
  CheckPlace(to);
  CopyBytes(to.data, held, to.size);
}

std::shared_ptr<std::byte[]> DeviceQueue::Download(
    DeviceSpan<const std::byte> from) const {
  CheckPlace(from);
  std::shared_ptr<std::byte[]> bytes;
  if (!on_host() && Enters()) bytes = State::TakePinned(parts_, from.size);
  if (bytes == nullptr) {
    // Of the host, or zeros of a queue that has failed.
    bytes = std::make_shared<std::byte[]>(from.size);
    if (!on_host()) return bytes;
  }
  CopyBytes(bytes.get(), from.data, from.size);
  return bytes;
}

std::shared_ptr<std::byte[]> DeviceQueue::State::TakePinned(
    const std::shared_ptr<Parts>& parts, size_t bytes) {
  State& state = *parts->state;
  std::vector<Pinned> back;
  {
    MutexLock lock(&state.mu);
    back.swap(state.given_back);
  }
  if (!back.empty()) {
    const DeviceFence fence = DeviceQueue(parts).RecordFence();
    for (Pinned& p : back) {
      p.last = fence;
      state.fenced.push_back(std::move(p));
    }
  }
  Pinned taken;
  const auto fit =
      std::find_if(state.fenced.begin(), state.fenced.end(), [&](Pinned& p) {
        return p.capacity >= bytes && p.capacity / 2 <= bytes + kPinnedStep &&
               p.last.done();
      });
  if (fit != state.fenced.end()) {
    taken = std::move(*fit);
    state.fenced.erase(fit);
  } else {
    taken.capacity = (bytes / kPinnedStep + 1) * kPinnedStep;
    const char* why =
        parts->calls->allocate_pinned(taken.capacity, &taken.memory);
    if (!Check(*parts, absl::StrCat(taken.capacity, " bytes of pinned memory"),
               why)) {
      return nullptr;
    }
  }
  return std::shared_ptr<std::byte[]>(
      static_cast<std::byte*>(taken.memory),
      // The queue lives on while a payload does: its memory is the driver's.
      [parts, capacity = taken.capacity](std::byte* p) {
        MutexLock lock(&parts->state->mu);
        parts->state->given_back.push_back({p, capacity, {}});
      });
}

void DeviceQueue::OnShortage(void (*give_back)()) const {
  if (!on_host()) parts_->state->on_shortage = give_back;
}

DeviceFence DeviceQueue::RecordFence() const {
  DeviceFence fence;
  if (on_host() || !Enters()) return fence;
  DeviceEvent* event = nullptr;
  if (!State::Check(*parts_, "event", parts_->calls->create_event(&event))) {
    return fence;
  }
  const DeviceCalls* calls = parts_->calls;
  fence.event_ = std::shared_ptr<DeviceEvent>(
      event, [calls](DeviceEvent* e) { calls->destroy_event(e); });
  if (State::Check(*parts_, "event", calls->record(event, parts_->stream))) {
    fence.parts_ = parts_;
  }
  return fence;
}

bool DeviceFence::done() {
  const auto parts = parts_.lock();
  if (parts == nullptr || parts->failed) return true;
  bool done = false;
  const char* why = parts->calls->poll(event_.get(), &done);
  if (!DeviceQueue::State::Check(*parts, "earlier work", why)) done = true;
  // An event that has been passed is not asked again, and keeps no queue.
  if (done) *this = DeviceFence();
  return done;
}

absl::Status DeviceQueue::Wait() const {
  if (!on_host() && Enters()) {
    State::Check(*parts_, "earlier work",
                 parts_->calls->synchronize(parts_->stream));
  }
  return status();
}

void DeviceQueue::BytesToHost(const void* from, std::span<std::byte> to) const {
  if (to.empty()) return;
  if (on_host()) {
    std::memcpy(to.data(), from, to.size());
    return;
  }
  const auto bytes = Download(
      {static_cast<const std::byte*>(from), to.size(), parts_->device});
  if (Wait().ok()) std::memcpy(to.data(), bytes.get(), to.size());
}

absl::Status DeviceQueue::status() const {
  if (!parts_->failed) return absl::OkStatus();
  State& state = *parts_->state;
  MutexLock lock(&state.mu);
  return state.out_of_memory ? absl::ResourceExhaustedError(state.failure)
                             : absl::UnavailableError(state.failure);
}

absl::StatusOr<CapturedWork> DeviceQueue::Capture(
    absl::FunctionRef<absl::Status(DeviceStream*)> enqueue) const {
  if (on_host()) {
    return absl::UnavailableError("the host does its work at once");
  }
  if (!Enters()) return status();
  const DeviceCalls& calls = *parts_->calls;
  const auto failed = [](const char* why) {
    return absl::UnavailableError(absl::StrCat("no graph of the work: ", why));
  };
  DeviceStream*& aside = parts_->state->aside;
  if (aside == nullptr) {
    if (const char* why = calls.create_stream(&aside)) {
      aside = nullptr;
      return failed(why);
    }
  }
  if (const char* why = calls.begin_capture(aside)) return failed(why);
  const absl::Status enqueued = enqueue(aside);
  DeviceGraph* graph = nullptr;
  const char* const why = calls.end_capture(aside, &graph);
  CapturedWork work;
  if (graph != nullptr) {
    // The queue lives on while the work does, as its memory's.
    work.graph_ =
        std::shared_ptr<DeviceGraph>(graph, [parts = parts_](DeviceGraph* g) {
          parts->calls->use(parts->device.index);
          parts->calls->destroy_graph(g);
        });
  }
  if (!enqueued.ok()) return enqueued;
  if (why != nullptr) return failed(why);
  return work;
}

void DeviceQueue::Replay(const CapturedWork& work) const {
  if (work.graph_ == nullptr || !Enters()) return;
  State::Check(*parts_, "captured work",
               parts_->calls->launch(work.graph_.get(), parts_->stream));
}

void* DeviceQueue::Take(size_t bytes, const char* what) const {
  if (on_host()) {
    void* memory = std::malloc(bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
  }
  if (!Enters()) return nullptr;
  State& state = *parts_->state;
  const DeviceCalls& calls = *parts_->calls;
  {
    MutexLock lock(&state.mu);
    if (const auto fit = state.free.find(bytes); fit != state.free.end()) {
      void* const memory = fit->second;
      state.free.erase(fit);
      return memory;
    }
  }
  void* memory = nullptr;
  const char* why = calls.allocate(bytes, &memory);
  if (why != nullptr) {
    // The memory of other sizes goes first.
    if (!Wait().ok()) return nullptr;
    {
      MutexLock lock(&state.mu);
      for (const auto& [size, unused] : state.free) calls.release(unused);
      state.free.clear();
    }
    if (void (*const give_back)() = state.on_shortage) give_back();
    why = calls.allocate(bytes, &memory);
  }
  if (why == nullptr) return memory;
  // A reason that stays behind is of the device, not of its memory.
  if (Wait().ok()) State::RunOut(*parts_, bytes, what, why);
  return nullptr;
}

void DeviceQueue::GiveBack(void* memory, size_t bytes) const {
  if (on_host()) return std::free(memory);
  MutexLock lock(&parts_->state->mu);
  parts_->state->free.emplace(bytes, memory);
}

}  // namespace gossamer
