#include "topology/fleet/view_change.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/base/rng.h"
#include "topology/graph.h"

namespace gossamer {
namespace {

// A member's entries in the lists of a message.
struct Entry {
  uint64_t id;
  std::string address, device;
  friend bool operator==(const Entry&, const Entry&) = default;
};

std::vector<Entry> EntriesOf(const wire::ViewMessage& m) {
  std::vector<Entry> entries(static_cast<size_t>(m.member_id_size()));
  for (int i = 0; i < m.member_id_size(); ++i) {
    entries[static_cast<size_t>(i)] = {
        .id = m.member_id(i),
        .address = m.member_address(i),
        .device = m.member_device_size() == 0 ? "" : m.member_device(i)};
  }
  return entries;
}

uint64_t FingerprintOf(const std::vector<Entry>& entries) {
  RngKey hash = RngKey(0).Fold("members");
  for (const Entry& e : entries) {
    hash = hash.Fold(e.id).Fold(e.address).Fold(e.device);
  }
  return hash.Bits(0);
}

void SetEntries(std::vector<Entry> entries, wire::ViewMessage& m) {
  m.clear_member_id();
  m.clear_member_address();
  m.clear_member_device();
  // As ToMessage has it: no list where all are empty.
  const bool devices = std::ranges::any_of(
      entries, [](const Entry& e) { return !e.device.empty(); });
  for (Entry& e : entries) {
    m.add_member_id(e.id);
    m.add_member_address(std::move(e.address));
    if (devices) m.add_member_device(std::move(e.device));
  }
}

absl::Status NoChange(absl::string_view why) {
  return absl::DataLossError(absl::StrCat("a change of a view ", why));
}

// The lists fit each other, and ids ascend.
bool Sound(const wire::ViewMessage& m) {
  return m.member_id_size() <= kMaxPeers &&
         m.member_address_size() == m.member_id_size() &&
         (m.member_device_size() == 0 ||
          m.member_device_size() == m.member_id_size()) &&
         std::ranges::adjacent_find(m.member_id(), std::greater_equal()) ==
             m.member_id().end();
}

}  // namespace

wire::ViewChange ChangeOf(const wire::ViewMessage& base,
                          const wire::ViewMessage& next) {
  const std::vector<Entry> before = EntriesOf(base);
  std::vector<Entry> after = EntriesOf(next);
  wire::ViewChange change;
  change.set_generation(base.generation());
  change.set_epoch(base.epoch());
  change.set_members_fingerprint(FingerprintOf(before));
  for (const Entry& e : before) {
    if (!std::ranges::binary_search(after, e.id, {}, &Entry::id)) {
      change.add_gone_id(e.id);
    }
  }
  std::erase_if(after, [&](const Entry& e) {
    const auto old = std::ranges::lower_bound(before, e.id, {}, &Entry::id);
    return old != before.end() && *old == e;
  });
  wire::ViewMessage& view = *change.mutable_view();
  view = next;
  SetEntries(std::move(after), view);
  return change;
}

absl::StatusOr<wire::ViewMessage> Apply(const wire::ViewMessage& base,
                                        const wire::ViewChange& change) {
  if (change.generation() != base.generation() ||
      change.epoch() != base.epoch() || base.epoch() == 0) {
    return NoChange(absl::StrCat("is of view ", change.epoch(),
                                 " of generation ", change.generation(),
                                 ", and this peer has view ", base.epoch(),
                                 " of generation ", base.generation()));
  }
  if (!Sound(change.view()) || change.gone_id_size() > kMaxPeers) {
    return NoChange("lists members that cannot be");
  }
  const std::vector<Entry> before = EntriesOf(base);
  if (change.members_fingerprint() != FingerprintOf(before)) {
    return NoChange("is of other members than this peer's view has");
  }
  const std::vector<Entry> changed = EntriesOf(change.view());
  std::vector<Entry> after;
  // The new entry of a member comes first, and its old one is dropped.
  std::ranges::merge(changed, before, std::back_inserter(after), {}, &Entry::id,
                     &Entry::id);
  const auto same = [](const Entry& a, const Entry& b) { return a.id == b.id; };
  after.erase(std::unique(after.begin(), after.end(), same), after.end());
  std::vector<uint64_t> gone(change.gone_id().begin(), change.gone_id().end());
  std::ranges::sort(gone);
  std::erase_if(after, [&gone](const Entry& e) {
    return std::ranges::binary_search(gone, e.id);
  });
  wire::ViewMessage view = change.view();
  SetEntries(std::move(after), view);
  return view;
}

}  // namespace gossamer
