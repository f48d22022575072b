// A checkpoint's view of the state that it saves.
//
// One function per thing describes its state; the same call saves and loads, so
// the two cannot drift apart.  This header knows nothing of files.

#ifndef GOSSAMER_ALGORITHMS_BASE_STATE_H_
#define GOSSAMER_ALGORITHMS_BASE_STATE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gossamer {

// Called with every piece of a thing's state, in a fixed order and under names
// that are unique within the thing.  A saving visitor reads the values, a
// loading one overwrites them; a size that does not fit is the visitor's error.
class StateVisitor {
 public:
  virtual ~StateVisitor() = default;
  // Whether the values are overwritten, and not read.
  virtual bool loads() const = 0;
  virtual void Floats(std::string_view name, std::span<float> values) = 0;
  virtual void Counter(std::string_view name, uint64_t& value) = 0;
  // Variable length, for states that have a format of their own.
  virtual void Bytes(std::string_view name, std::vector<std::byte>& bytes) = 0;
};

// Puts a prefix before every name: things that do not know of each other may
// use the same names.
class PrefixedVisitor : public StateVisitor {
 public:
  PrefixedVisitor(StateVisitor& visitor, std::string_view prefix)
      : visitor_(visitor), prefix_(prefix) {}
  bool loads() const override { return visitor_.loads(); }
  void Floats(std::string_view name, std::span<float> values) override {
    visitor_.Floats(prefix_ + std::string(name), values);
  }
  void Counter(std::string_view name, uint64_t& value) override {
    visitor_.Counter(prefix_ + std::string(name), value);
  }
  void Bytes(std::string_view name, std::vector<std::byte>& bytes) override {
    visitor_.Bytes(prefix_ + std::string(name), bytes);
  }

 private:
  StateVisitor& visitor_;
  const std::string prefix_;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_BASE_STATE_H_
