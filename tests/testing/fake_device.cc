#include "tests/testing/fake_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace gossamer {
namespace {

struct Work {
  std::function<void()> run;
  // Pinned memory that the host may touch again afterwards.
  std::byte* pinned = nullptr;
};

struct World {
  std::mutex mu;
  FakeDevice::Options options;
  FakeDevice::Counts counts;
  const char* vanished = nullptr;
  // All of the device's memory lies in here.
  std::byte* arena = nullptr;
  size_t used = 0, held = 0;
  std::map<std::byte*, size_t> blocks;
  std::multimap<size_t, std::byte*> free;
  std::map<std::byte*, size_t> pinned;
  size_t pinned_bytes = 0;
  std::map<std::byte*, int> busy;  // copies of pinned memory that are not done
  std::deque<Work> work;
  uint64_t enqueued = 0, done = 0;
  // The stream that captures, and where its work goes; null otherwise.
  DeviceStream* capturing = nullptr;
  std::vector<std::function<void()>>* captured = nullptr;
  const char* capture_fails = nullptr;
};
// Null: there is no device.
World* world = nullptr;

// The place of an event in the work of all streams, which is done in one order.
struct Event {
  uint64_t after = 0;
  int asked = 0;
};
Event* Of(DeviceEvent* event) { return reinterpret_cast<Event*>(event); }

void Die(const char* what) {
  std::fprintf(stderr, "fake device: %s\n", what);
  std::abort();
}

size_t Pages(size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return std::max<size_t>(1, (bytes + page - 1) / page) * page;
}
void Protect(std::byte* memory, size_t bytes, int rights) {
  if (bytes > 0 && mprotect(memory, bytes, rights) != 0) Die("mprotect");
}

// The entry of `all` that has this address inside it.
template <typename Map>
auto Holding(Map& all, const void* memory) {
  auto* const at = static_cast<std::byte*>(const_cast<void*>(memory));
  auto it = all.upper_bound(at);
  if (it == all.begin()) return all.end();
  --it;
  return at < it->first + it->second ? it : all.end();
}

void DoUntil(uint64_t place) {
  if (world->done >= place) return;
  Protect(world->arena, world->used, PROT_READ | PROT_WRITE);
  while (world->done < place) {
    const Work work = std::move(world->work.front());
    world->work.pop_front();
    if (work.pinned != nullptr) {
      Protect(work.pinned, world->pinned.at(work.pinned),
              PROT_READ | PROT_WRITE);
    }
    work.run();
    ++world->done;
    if (work.pinned != nullptr && --world->busy[work.pinned] > 0) {
      Protect(work.pinned, world->pinned.at(work.pinned), PROT_NONE);
    }
  }
  Protect(world->arena, world->used, PROT_NONE);
}

// The pieces of a captured graph.
using Pieces = std::vector<std::function<void()>>;
Pieces* Of(DeviceGraph* graph) { return reinterpret_cast<Pieces*>(graph); }

// On all streams but the one that captures, work is done in one order.
void Enqueue(DeviceStream* stream, std::function<void()> run,
             std::byte* pinned = nullptr) {
  if (world->capturing != nullptr && stream == world->capturing) {
    if (pinned != nullptr) Die("a copy with the host is captured");
    world->captured->push_back(std::move(run));
    return;
  }
  world->work.push_back({std::move(run), pinned});
  ++world->enqueued;
}

// A function of the calls, which fails once the device has vanished.
template <typename F>
const char* Call(F f) {
  if (world == nullptr) Die("a call without a device");
  const std::lock_guard lock(world->mu);
  if (world->vanished != nullptr) return world->vanished;
  return f();
}

const char* Allocate(size_t bytes, void** memory) {
  return Call([&]() -> const char* {
    const size_t size = Pages(bytes);
    if (world->held + size > world->options.memory) return "out of memory";
    std::byte* block = nullptr;
    if (const auto it = world->free.find(size); it != world->free.end()) {
      block = it->second;
      world->free.erase(it);
    } else {
      // A page stays between two blocks.
      if (world->used + size + Pages(1) > 4 * world->options.memory) {
        Die("its addresses are used up");
      }
      block = world->arena + world->used;
      world->used += size + Pages(1);
    }
    world->held += size;
    world->blocks[block] = size;
    *memory = block;
    return nullptr;
  });
}

const char* Release(void* memory) {
  return Call([&]() -> const char* {
    // A device's call waits for the work that may use the memory.
    DoUntil(world->enqueued);
    const auto it = world->blocks.find(static_cast<std::byte*>(memory));
    if (it == world->blocks.end()) Die("released what is not allocated");
    world->held -= it->second;
    world->free.emplace(it->second, it->first);
    world->blocks.erase(it);
    return nullptr;
  });
}

const char* AllocatePinned(size_t bytes, void** memory) {
  return Call([&]() -> const char* {
    void* const taken =
        mmap(nullptr, Pages(bytes), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1, /*offset=*/0);
    if (taken == MAP_FAILED) return "no pinned memory";
    std::memset(taken, 0xa5, Pages(bytes));
    world->pinned[static_cast<std::byte*>(taken)] = Pages(bytes);
    world->pinned_bytes += Pages(bytes);
    world->counts.pinned_peak =
        std::max(world->counts.pinned_peak, world->pinned_bytes);
    *memory = taken;
    return nullptr;
  });
}

const char* ReleasePinned(void* memory) {
  return Call([&]() -> const char* {
    DoUntil(world->enqueued);
    const auto it = world->pinned.find(static_cast<std::byte*>(memory));
    if (it == world->pinned.end()) Die("released what is not pinned");
    munmap(memory, it->second);
    world->pinned_bytes -= it->second;
    world->pinned.erase(it);
    return nullptr;
  });
}

const char* Copy(DeviceStream* stream, void* to, const void* from,
                 size_t bytes) {
  return Call([&]() -> const char* {
    const bool to_device = Holding(world->blocks, to) != world->blocks.end();
    const bool from_device =
        Holding(world->blocks, from) != world->blocks.end();
    const auto run = [=] { std::memcpy(to, from, bytes); };
    if (to_device && from_device) {
      Enqueue(stream, run);
      return nullptr;
    }
    if (!to_device && !from_device) Die("a copy from the host to the host");
    (to_device ? world->counts.to_device : world->counts.to_host)
        .push_back(bytes);
    const auto pinned = Holding(world->pinned, to_device ? from : to);
    if (pinned == world->pinned.end()) {
      Enqueue(stream, run);
      ++world->counts.waits;
      DoUntil(world->enqueued);
      return nullptr;
    }
    Enqueue(stream, run, pinned->first);
    if (world->busy[pinned->first]++ == 0) {
      Protect(pinned->first, pinned->second, PROT_NONE);
    }
    return nullptr;
  });
}

const char* Clear(DeviceStream* stream, void* memory, size_t bytes) {
  return Call([&]() -> const char* {
    if (Holding(world->blocks, memory) == world->blocks.end()) {
      Die("cleared memory that is not the device's");
    }
    Enqueue(stream, [=] { std::memset(memory, 0, bytes); });
    return nullptr;
  });
}

const char* Poll(DeviceEvent* event, bool* done) {
  return Call([&]() -> const char* {
    Event& e = *Of(event);
    if (e.asked++ >= world->options.delay) DoUntil(e.after);
    *done = world->done >= e.after;
    return nullptr;
  });
}

const char* Synchronize(DeviceStream* stream) {
  return Call([&]() -> const char* {
    if (world->capturing != nullptr && stream == world->capturing) {
      Die("a wait is captured");
    }
    ++world->counts.waits;
    DoUntil(world->enqueued);
    return nullptr;
  });
}

// Arguments of a kernel as they are kept until it runs: what a pointer of the
// host points to is read before the call returns.
template <typename T>
struct Kept {
  explicit Kept(const std::remove_reference_t<T>& value) : kept(value) {}
  std::remove_cvref_t<T> get() const { return kept; }
  std::remove_cvref_t<T> kept;
};
template <>
struct Kept<const CodedSpan*> {
  explicit Kept(const CodedSpan* value) {
    if (value != nullptr) kept = *value;
  }
  const CodedSpan* get() const { return kept ? &*kept : nullptr; }
  std::optional<CodedSpan> kept;
};

template <auto kMember, typename Function = decltype(kMember)>
struct Late;
template <auto kMember, typename... P>
struct Late<kMember, void (*DeviceKernels::*)(DeviceStream*, P...)> {
  static void Call(DeviceStream* stream, P... p) {
    if (world == nullptr) Die("a kernel without a device");
    const std::lock_guard lock(world->mu);
    if (world->vanished != nullptr) return;
    ++world->counts.launches;
    Enqueue(stream, [... kept = Kept<P>(p)] {
      (world->options.kernels->*kMember)(world->options.stream,
                                         OnHost(kept.get())...);
    });
  }
  // The kernels that do the work know the memory as theirs.
  template <typename T>
  static DeviceSpan<T> OnHost(DeviceSpan<T> span) {
    return {span.data, span.size};
  }
  template <typename T>
  static T OnHost(T value) {
    return value;
  }
};
template <auto kMember>
constexpr auto kLate = Late<kMember>::Call;

}  // namespace

FakeDevice::FakeDevice() : FakeDevice(Options()) {}

FakeDevice::FakeDevice(const Options& options) {
  if (world != nullptr) Die("there is another one");
  world = new World;
  world->options = options;
  void* const arena =
      mmap(nullptr, 4 * options.memory, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, /*fd=*/-1, 0);
  if (arena == MAP_FAILED) Die("no addresses");
  world->arena = static_cast<std::byte*>(arena);
}

FakeDevice::~FakeDevice() {
  if (world->vanished == nullptr && !world->blocks.empty()) {
    Die("memory is left");
  }
  for (const auto& [memory, bytes] : world->pinned) munmap(memory, bytes);
  munmap(world->arena, 4 * world->options.memory);
  delete std::exchange(world, nullptr);
}

DeviceQueue FakeDevice::queue() const {
  return DeviceQueue::Open(kernels(), calls(), {Device::kCuda, 0}).value();
}

FakeDevice::Counts FakeDevice::counts() const {
  const std::lock_guard lock(world->mu);
  return world->counts;
}

void FakeDevice::ResetCounts() {
  const std::lock_guard lock(world->mu);
  world->counts = {};
  world->counts.pinned_peak = world->pinned_bytes;
}

void FakeDevice::Launch(std::function<void()> work) {
  const std::lock_guard lock(world->mu);
  if (world->vanished != nullptr) return;
  ++world->counts.launches;
  Enqueue(world->capturing, std::move(work));
}

size_t FakeDevice::pending() const {
  const std::lock_guard lock(world->mu);
  return world->work.size();
}

void FakeDevice::FailCapture(const char* why) {
  const std::lock_guard lock(world->mu);
  world->capture_fails = why;
}

void FakeDevice::Vanish(const char* why) {
  const std::lock_guard lock(world->mu);
  world->vanished = why;
}

const DeviceCalls& FakeDevice::calls() {
  static constexpr DeviceCalls table = {
      .versions =
          [](int* driver, int* build) {
            return Call([&]() -> const char* {
              *driver = world->options.driver;
              *build = 13000;
              return nullptr;
            });
          },
      .count =
          [](int* devices) {
            return Call([&]() -> const char* {
              *devices = world->options.devices;
              return nullptr;
            });
          },
      .describe =
          [](int device, DeviceFacts* facts) {
            return Call([&]() -> const char* {
              std::snprintf(facts->name, sizeof facts->name, "Fake GPU");
              std::snprintf(facts->address, sizeof facts->address,
                            "0000:%02x:00.0", device + 1);
              facts->memory = world->options.memory;
              facts->free = world->options.memory - world->held;
              return nullptr;
            });
          },
      .use = [](int) { return Call([]() -> const char* { return nullptr; }); },
      .allocate = Allocate,
      .release = Release,
      .allocate_pinned = AllocatePinned,
      .release_pinned = ReleasePinned,
      .create_stream = [](DeviceStream** stream) -> const char* {
        *stream = reinterpret_cast<DeviceStream*>(new char);
        return nullptr;
      },
      .destroy_stream = [](DeviceStream* stream) -> const char* {
        delete reinterpret_cast<char*>(stream);
        return nullptr;
      },
      .copy = Copy,
      .clear = Clear,
      .create_event = [](DeviceEvent** event) -> const char* {
        *event = reinterpret_cast<DeviceEvent*>(new Event);
        return nullptr;
      },
      .destroy_event = [](DeviceEvent* event) -> const char* {
        delete Of(event);
        return nullptr;
      },
      .record =
          [](DeviceEvent* event, DeviceStream*) {
            return Call([&]() -> const char* {
              *Of(event) = {world->enqueued, 0};
              return nullptr;
            });
          },
      .poll = Poll,
      .synchronize = Synchronize,
      .begin_capture =
          [](DeviceStream* stream) {
            return Call([&]() -> const char* {
              if (world->capturing != nullptr) Die("two captures at a time");
              world->capturing = stream;
              world->captured = new Pieces;
              return nullptr;
            });
          },
      .end_capture =
          [](DeviceStream*, DeviceGraph** graph) {
            return Call([&]() -> const char* {
              world->capturing = nullptr;
              Pieces* const pieces = std::exchange(world->captured, nullptr);
              if (const char* why =
                      std::exchange(world->capture_fails, nullptr)) {
                delete pieces;
                return why;
              }
              ++world->counts.captures;
              *graph = reinterpret_cast<DeviceGraph*>(pieces);
              return nullptr;
            });
          },
      .launch =
          [](DeviceGraph* graph, DeviceStream* stream) {
            return Call([&]() -> const char* {
              ++world->counts.replays;
              for (const auto& piece : *Of(graph)) Enqueue(stream, piece);
              return nullptr;
            });
          },
      .destroy_graph = [](DeviceGraph* graph) -> const char* {
        delete Of(graph);
        return nullptr;
      },
  };
  return table;
}

const CudaLibrary& FakeDevice::library() {
  static const CudaLibrary library = {
      .version = "fake", .kernels = &kernels(), .calls = &calls()};
  return library;
}

const DeviceKernels& FakeDevice::kernels() {
  static constexpr DeviceKernels table = {
      .name = "fake",
      .add = kLate<&DeviceKernels::add>,
      .scale = kLate<&DeviceKernels::scale>,
      .axpy = kLate<&DeviceKernels::axpy>,
      .compensated_axpy = kLate<&DeviceKernels::compensated_axpy>,
      .ema = kLate<&DeviceKernels::ema>,
      .optimistic = kLate<&DeviceKernels::optimistic>,
      .adam = kLate<&DeviceKernels::adam>,
      .oadam = kLate<&DeviceKernels::oadam>,
      .clip = kLate<&DeviceKernels::clip>,
      .all_within = kLate<&DeviceKernels::all_within>,
      .squared_norm = kLate<&DeviceKernels::squared_norm>,
      .sketch = kLate<&DeviceKernels::sketch>,
      .transposed_product = kLate<&DeviceKernels::transposed_product>,
      .product = kLate<&DeviceKernels::product>,
      .add_outer = kLate<&DeviceKernels::add_outer>,
      .normalize = kLate<&DeviceKernels::normalize>,
      .argmax_abs = kLate<&DeviceKernels::argmax_abs>,
      .encode = kLate<&DeviceKernels::encode>,
      .apply = kLate<&DeviceKernels::apply>,
      .valid_within = kLate<&DeviceKernels::valid_within>,
      .valid_scales = kLate<&DeviceKernels::valid_scales>,
      .largest_scale = kLate<&DeviceKernels::largest_scale>,
  };
  return table;
}

}  // namespace gossamer
