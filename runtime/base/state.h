// What a checkpoint sees of the things it saves.
//
// One function per thing describes its state; the same call saves and loads,
// so the two cannot drift apart.  Knows nothing of files.

#ifndef GOSSAMER_RUNTIME_BASE_STATE_H_
#define GOSSAMER_RUNTIME_BASE_STATE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace gossamer {

// Called with every piece of a thing's state, in a fixed order and under names
// that are unique within the thing.  A saving visitor reads the values, a
// loading one overwrites them; a size that does not fit is the visitor's error.
class StateVisitor {
 public:
  virtual ~StateVisitor() = default;
  virtual void Floats(std::string_view name, std::span<float> values) = 0;
  virtual void Counter(std::string_view name, uint64_t& value) = 0;
  // Variable length, for states that have a format of their own.
  virtual void Bytes(std::string_view name, std::vector<std::byte>& bytes) = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_STATE_H_
