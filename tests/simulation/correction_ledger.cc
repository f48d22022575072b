#include "tests/simulation/correction_ledger.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace gossamer::simulation {

CorrectionLedger::Key CorrectionLedger::KeyOf(const EdgeEndName& end) {
  if (end.self < end.other) {
    return {end.self.value, end.other.value, end.epoch, end.peer_epoch};
  }
  return {end.other.value, end.self.value, end.peer_epoch, end.epoch};
}

const CorrectionLedger::Past* CorrectionLedger::PastOf(const EdgeEndName& end,
                                                       uint64_t process) const {
  const auto it = resumed_.find({end.self.value, end.other.value, process});
  return it == resumed_.end() ? nullptr : &it->second;
}

const CorrectionLedger::Past* CorrectionLedger::PastOf(
    const EdgeEndName& end, const Past& later) const {
  const int side = end.self < end.other ? 0 : 1;
  const auto process = process_of_.find({end.self, later.key[2 + side]});
  return process == process_of_.end() ? nullptr : PastOf(end, process->second);
}

const uint64_t* CorrectionLedger::Find(const Applied& applied, Part part) {
  const auto it = std::lower_bound(
      applied.begin(), applied.end(), part,
      [](const auto& entry, Part wanted) { return entry.first < wanted; });
  return it != applied.end() && it->first == part ? &it->second : nullptr;
}

uint64_t CorrectionLedger::NewestRound(PeerId a, PeerId b) const {
  const auto it = newest_.find(std::minmax(a, b));
  return it == newest_.end() ? 0 : RoundOf(it->second);
}

void CorrectionLedger::OnEvent(PeerId peer, const Event& event) {
  const auto process_of = [this](PeerId id) {
    return std::pair(id, processes_[id]);
  };
  if (event.kind == "member_removed") {
    // The detail is "peer 3 is in no view any more".
    const PeerId other{std::stoull(event.detail.substr(5))};
    evicted_.insert(process_of(other));
  } else if (event.kind == "edge_lost" && evicted_.contains(process_of(peer))) {
    crashed_.insert(process_of(peer));
  }
}

std::string CorrectionLedger::Own(PeerId peer, uint64_t process,
                                  uint64_t epoch) {
  const auto [it, fresh] = process_of_.emplace(std::pair(peer, epoch), process);
  if (fresh || it->second == process) return "";
  return absl::StrFormat("peer %d: processes %d and %d have the same epoch %d",
                         peer.value, it->second, process, epoch);
}

std::string CorrectionLedger::Apply(const EdgeEndName& end, ExchangeId id,
                                    uint64_t hash, size_t offset) {
  ++corrections_;
  ExchangeId& newest = newest_[std::minmax(end.self, end.other)];
  newest = std::max(newest, id);
  const int side = end.self < end.other ? 0 : 1;
  // A correction that was pending at a cut belongs to the incarnation that was
  // cut, and may have been pending at an earlier cut already.
  Key key = KeyOf(end);
  for (const Past* past = PastOf(end, ProcessOf(end.self, end.epoch));
       past != nullptr && id < past->cut; past = PastOf(end, *past)) {
    key = past->key;
  }
  Incarnation& in = incarnations_[key];
  Applied& mine = in.applied[side];
  const auto where = [&] {
    return absl::StrFormat(
        "peer %d: the correction with peer %d of round %d.%d", end.self.value,
        end.other.value, RoundOf(id), id % kMaxPhases);
  };
  const Part part = {id, offset};
  if (!mine.empty() && mine.back().first >= part) {
    return absl::StrCat(where(), " was applied twice, or out of order");
  }
  mine.emplace_back(part, hash);
  const uint64_t* other = Find(in.applied[1 - side], part);
  if (other != nullptr && *other != hash) {
    return absl::StrCat(where(), " is not the opposite of the other end's");
  }
  return "";
}

uint64_t CorrectionLedger::ProcessOf(PeerId peer, uint64_t epoch) const {
  const auto known = process_of_.find({peer, epoch});
  return known != process_of_.end() ? known->second : processes_.at(peer);
}

void CorrectionLedger::Resume(const EdgeEndName& before, uint64_t process,
                              ExchangeId done, ExchangeId cut) {
  const int side = before.self < before.other ? 0 : 1;
  Past& now = resumed_[{before.self.value, before.other.value, process}];
  now = {KeyOf(before), cut, done};
  cuts_[now.key][static_cast<size_t>(side)].insert(cut);
  // Undoes the corrections after the record, pending ones included.  An
  // incarnation that has closed such an edge may have begun one anew, of which
  // nothing was complete yet: that one ends the loop.
  for (const Past* past = &now; past != nullptr && past->done <= done;) {
    std::erase_if(incarnations_[past->key].applied[side],
                  [done](const auto& entry) { return entry.first.id >= done; });
    past = done < past->cut ? PastOf(before, *past) : nullptr;
  }
}

bool CorrectionLedger::Excused(const Key& key, int side) const {
  const PeerId self{key[side]};
  const auto process = process_of_.find({self, key[2 + side]});
  if (process == process_of_.end())
    return true;  // the peer never had this epoch
  // The incarnations that went on with it, one after the other.
  for (uint64_t on = process->second;; ++on) {
    if (crashed_.contains({self, on})) return true;
    if (processes_.at(self) == on) return false;
    const auto next = resumed_.find({self.value, key[1 - side], on + 1});
    if (next != resumed_.end() && next->second.key == key) continue;
    return on == process->second;
  }
}

// A service with an old disk takes a member for one that returns; that member
// goes on from its own newest checkpoint, and the cuts differ.
bool CorrectionLedger::CutApart(const Key& key) const {
  const auto it = cuts_.find(key);
  if (it == cuts_.end()) return false;
  const auto& [lower, upper] = it->second;
  return !lower.empty() && !upper.empty() && lower != upper;
}

std::string CorrectionLedger::Finish() const {
  for (const auto& [key, in] : incarnations_) {
    const bool excused = Excused(key, 0) || Excused(key, 1) || CutApart(key);
    if (excused && cuts_.contains(key)) continue;
    for (const int side : {0, 1}) {
      const Applied& other = in.applied[1 - side];
      // A crash loses the last of the corrections that an end would have
      // applied.
      const ExchangeId lost = other.empty() ? 0 : other.back().first.id + 1;
      for (const auto& [part, hash] : in.applied[side]) {
        const ExchangeId id = part.id;
        if (Find(other, part) != nullptr || (excused && id >= lost)) continue;
        return absl::StrFormat(
            "peer %d applied the correction with peer %d of round %d.%d, which "
            "the other end never did, though %s (epochs %d, %d)",
            key[side], key[1 - side], RoundOf(id), id % kMaxPhases,
            excused ? "it applied later ones" : "neither crashed",
            key[2 + side], key[3 - side]);
      }
    }
  }
  return "";
}

}  // namespace gossamer::simulation
