#include "runtime/checkpoint/checkpoint.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

class Taker : public StateVisitor {
 public:
  Taker(Checkpoint& out, DeferredFloats deferred)
      : out_(out), deferred_(deferred) {}
  bool loads() const override { return false; }
  void Floats(std::string_view name, std::span<float> values) override {
    if (!Take(name)) return;
    std::vector<float>& to = out_.floats[std::string(name)];
    if (deferred_.copy == nullptr || name.find(deferred_.prefix) != 0) {
      to.assign(values.begin(), values.end());
    } else {
      to.resize(values.size());
      deferred_.copy->Add(values, to.data());
    }
  }
  void Counter(std::string_view name, uint64_t& value) override {
    if (Take(name)) out_.counters[std::string(name)] = value;
  }
  void Bytes(std::string_view name, std::vector<std::byte>& bytes) override {
    if (Take(name)) out_.bytes[std::string(name)] = bytes;
  }
  // Drops what `out` had before and has not been shown.
  absl::Status Finish() {
    const auto unseen = [this](const auto& entry) {
      return !names_.contains(entry.first);
    };
    std::erase_if(out_.floats, unseen);
    std::erase_if(out_.bytes, unseen);
    std::erase_if(out_.counters, unseen);
    return status_;
  }

 private:
  bool Take(std::string_view name) {
    // Names are keys of JSON in a safetensors header, which keeps
    // "__metadata__" for itself.
    const bool readable = !name.empty() && name.find("__") != 0 &&
                          std::all_of(name.begin(), name.end(), [](char c) {
                            return c >= ' ' && c <= '~';
                          });
    // Two states of one name would silently share one value after a restore.
    if (readable && names_.insert(std::string(name)).second) return true;
    // The first error is the one to report; visiting goes on, since a visitor
    // cannot stop its host.
    if (status_.ok()) {
      status_ = absl::InvalidArgumentError(absl::StrCat(
          "checkpoint: the name \"", absl::CHexEscape(std::string(name)),
          readable ? "\" is shown twice" : "\" cannot be a state's"));
    }
    return false;
  }

  Checkpoint& out_;
  const DeferredFloats deferred_;
  std::set<std::string> names_;
  absl::Status status_;
};

class Giver : public StateVisitor {
 public:
  explicit Giver(const Checkpoint& from) : from_(from) {}

  bool loads() const override { return true; }
  void Floats(std::string_view name, std::span<float> values) override {
    const auto* saved = Find(from_.floats, name);
    if (saved == nullptr) return;
    // The vector stays as long as the object has it: spans point into it.
    if (saved->size() != values.size()) {
      return Fail(absl::StrCat("\"", std::string(name), "\" has ",
                               saved->size(), " floats, this program's has ",
                               values.size()));
    }
    std::copy(saved->begin(), saved->end(), values.begin());
  }
  void Counter(std::string_view name, uint64_t& value) override {
    if (const auto* saved = Find(from_.counters, name)) value = *saved;
  }
  void Bytes(std::string_view name, std::vector<std::byte>& bytes) override {
    if (const auto* saved = Find(from_.bytes, name)) bytes = *saved;
  }

  absl::Status Finish() {
    const size_t all =
        from_.floats.size() + from_.counters.size() + from_.bytes.size();
    // A state that the program does not ask for is an error too: it would be
    // lost without notice at the next save.
    if (status_.ok() && given_ != all) {
      Fail(absl::StrCat(all - given_, " of its ", all,
                        " states are unknown to this program"));
    }
    return status_;
  }

 private:
  template <typename Map>
  const typename Map::mapped_type* Find(const Map& map, std::string_view name) {
    const auto found = map.find(std::string(name));
    if (found == map.end()) {
      Fail(absl::StrCat("\"", std::string(name), "\" is not in it"));
      return nullptr;
    }
    // The count finds states that nobody asked for (Finish).
    ++given_;
    return &found->second;
  }
  void Fail(std::string what) {
    if (!status_.ok()) return;
    status_ = absl::DataLossError(absl::StrCat(
        "checkpoint of round ", from_.id.round, " does not fit: ", what,
        "; resume with the program and configuration that wrote it"));
  }

  const Checkpoint& from_;
  size_t given_ = 0;
  absl::Status status_;
};

}  // namespace

SafetensorsView ViewOf(const Checkpoint& checkpoint) {
  SafetensorsView view;
  for (const auto& [name, values] : checkpoint.floats) {
    // The view refers to the checkpoint's own memory: gigabytes are not copied
    // to be written.
    view.floats.push_back(
        {name, {static_cast<int64_t>(values.size())}, values});
  }
  for (const auto& [name, values] : checkpoint.bytes) {
    view.bytes.push_back({name, values});
  }
  return view;
}

absl::StatusOr<Checkpoint> TakeCheckpoint(
    CheckpointId id, absl::FunctionRef<void(StateVisitor&)> visit,
    Checkpoint spare, DeferredFloats deferred) {
  spare.id = std::move(id);
  Taker taker(spare, deferred);
  visit(taker);
  GOSSAMER_RETURN_IF_ERROR(taker.Finish());
  return spare;
}

absl::Status RestoreCheckpoint(const Checkpoint& checkpoint,
                               absl::FunctionRef<void(StateVisitor&)> visit) {
  Giver giver(checkpoint);
  visit(giver);
  return giver.Finish();
}

}  // namespace gossamer
