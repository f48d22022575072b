// A library with the functions of NCCL that NcclLibrary calls, each of which
// succeeds at once, but for an abort, which waits for EndAbort.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace {

std::mutex mu;
std::condition_variable changed;
int begun = 0, ended = 0;  // aborts

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  *version = 22809;
  return 0;
}
const char* ncclGetErrorString(int) { return "no error"; }
int ncclGetUniqueId(void*) { return 0; }
struct Id {
  std::byte bytes[128];
};
int ncclCommInitRankConfig(void** comm, int, Id, int, void*) {
  *comm = &begun;
  return 0;
}
int ncclCommGetAsyncError(void*, int* error) {
  *error = 0;
  return 0;
}
int ncclGroupStart() { return 0; }
int ncclGroupEnd() { return 0; }
int ncclSend(const void*, size_t, int, int, void*, void*) { return 0; }
int ncclRecv(void*, size_t, int, int, void*, void*) { return 0; }
int ncclAllReduce(const void*, void*, size_t, int, int, void*, void*) {
  return 0;
}
int ncclCommAbort(void*) {
  std::unique_lock<std::mutex> lock(mu);
  const int own = ++begun;
  changed.notify_all();
  changed.wait(lock, [own] { return ended >= own; });
  return 0;
}

// Returns 0 if no abort is under way within the seconds.
int AwaitAbort(int seconds) {
  std::unique_lock<std::mutex> lock(mu);
  return changed.wait_for(lock, std::chrono::seconds(seconds),
                          [] { return begun > ended; })
             ? 1
             : 0;
}

void EndAbort() {
  const std::lock_guard<std::mutex> lock(mu);
  ++ended;
  changed.notify_all();
}

}  // extern "C"
