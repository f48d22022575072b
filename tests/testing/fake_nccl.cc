#include "tests/testing/fake_nccl.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gossamer {

// A member's handle of a communicator; it is the NcclComm.
struct FakeNccl::Member {
  Rank* rank = nullptr;
  uint64_t comm = 0;
  NcclResult state = NcclResult::kInProgress;
};

struct FakeNccl::Comm {
  uint64_t number = 0;
  int size = 0;
  std::map<int, Member> members;            // by place; aborted ones leave
  std::set<std::pair<int, int>> connected;  // places
  uint64_t steps = 0;
  bool making = false;
};

// This end's half of a pair: what it sends to another member and receives from
// it, in the order of the calls.
struct FakeNccl::Part {
  int other = 0;  // its place in the communicator
  std::vector<std::span<const std::byte>> sends = {};
  std::vector<std::span<std::byte>> receives = {};
  bool running = false, done = false;

  size_t bytes() const {
    size_t sum = 0;
    for (const auto& send : sends) sum += send.size();
    return sum;
  }
  bool Fits(const Part& other) const {
    return std::ranges::equal(
        sends, other.receives, {}, [](auto s) { return s.size(); },
        [](auto r) { return r.size(); });
  }
  void CopyTo(const Part& other) const {
    for (size_t i = 0; i < sends.size(); ++i) {
      std::memcpy(other.receives[i].data(), sends[i].data(), sends[i].size());
    }
  }
};

// A stream runs steps: a copy, halves of pairs that go on beside each other, or
// a part of a sum.
struct FakeNccl::Step {
  enum class Kind { kCopy, kPairs, kSum };
  Kind kind = Kind::kCopy;
  uint64_t comm = 0;
  int place = 0;  // in the communicator
  const void* from = nullptr;
  size_t from_bytes = 0;
  void* to = nullptr;
  size_t to_bytes = 0;
  bool running = false;  // a sum
  std::vector<Part> parts;

  // The half that waits for the member at that place; the end if none does.
  size_t Waiting(int other) const {
    size_t i = 0;
    while (i < parts.size() && (parts[i].other != other || parts[i].running)) {
      ++i;
    }
    return i;
  }
  bool done() const {
    return std::ranges::all_of(parts, [](const Part& p) { return p.done; });
  }
};

FakeNccl::FakeNccl(EventLoop* loop, FakeNcclOptions options,
                   std::function<void(const Circle&)> on_deadlock)
    : loop_(loop),
      options_(options),
      on_deadlock_(std::move(on_deadlock)),
      key_(RngKey(options.seed).Fold("nccl")) {}

FakeNccl::~FakeNccl() = default;

std::unique_ptr<FakeNccl::Rank> FakeNccl::NewRank(const std::string& device,
                                                  int version) {
  return std::make_unique<Rank>(this, device, version);
}

void FakeNccl::Calm() {
  options_.hang = options_.error = options_.slow = 0;
  options_.partial = options_.torn = 0;
  options_.making_hang = options_.connecting_hang = options_.making_error = 0;
}

void FakeNccl::Join(uint64_t number, Rank* rank, int of, int place) {
  std::unique_ptr<Comm>& comm = comms_[number];
  if (comm == nullptr) {
    comm = std::make_unique<Comm>();
    comm->number = number;
    comm->size = of;
  }
  comm->members[place] = {.rank = rank, .comm = number};
  if (static_cast<int>(comm->members.size()) < of || comm->making) return;
  comm->making = true;
  std::set<std::string> devices;
  for (const auto& [at, member] : comm->members) {
    devices.insert(member.rank->device_);
  }
  const RngKey draw = key_.Fold("making").Fold(number);
  const bool shared = devices.size() < comm->members.size();
  const bool fails = draw.Uniform(0) < options_.making_error;
  const bool hangs = draw.Uniform(1) < options_.making_hang;
  if (!shared && fails) ++faults_["nccl_errors"];
  if (!shared && !fails && hangs) ++faults_["nccl_hangs"];
  if (!shared && !fails && hangs) return;
  loop_->RunAt(
      loop_->Now() + options_.making,
      [this, alive = std::weak_ptr<bool>(alive_), number, shared, fails] {
        if (alive.expired()) return;
        const auto made = comms_.find(number);
        if (made == comms_.end()) return;
        for (auto& [at, member] : made->second->members) {
          // NCCL refuses two ranks on one device with this error.
          member.state = shared  ? NcclResult::kInvalidUsage
                         : fails ? NcclResult::kSystemError
                                 : NcclResult::kSuccess;
        }
      });
}

void FakeNccl::Fail(uint64_t number, NcclResult why) {
  const auto comm = comms_.find(number);
  if (comm == comms_.end()) return;
  for (auto& [place, member] : comm->second->members) member.state = why;
}

absl::Duration FakeNccl::Fate(uint64_t number, size_t bytes, bool* hangs,
                              bool* fails) {
  ++operations_;
  const RngKey draw =
      key_.Fold("step").Fold(number).Fold(comms_.at(number)->steps++);
  *hangs = draw.Uniform(0) < options_.hang;
  *fails = !*hangs && draw.Uniform(1) < options_.error;
  const bool slow = draw.Uniform(2) < options_.slow;
  if (*hangs) ++faults_["nccl_hangs"];
  if (*fails) ++faults_["nccl_errors"];
  if (slow && !*hangs && !*fails) ++faults_["nccl_slow"];
  // The time of an operation varies, so independent ones end in any order.
  return (options_.latency * (1 + 3 * draw.Uniform(3)) +
          absl::Seconds(static_cast<double>(bytes) /
                        options_.bytes_per_second)) *
         (slow ? options_.slow_factor : 1);
}

// Members are connected once in a communicator.
absl::Duration FakeNccl::FateOfPair(const Step& step, const Part& part,
                                    size_t bytes, bool* hangs, bool* fails) {
  Comm& comm = *comms_.at(step.comm);
  if (!comm.connected.insert(std::minmax(step.place, part.other)).second) {
    return Fate(step.comm, bytes, hangs, fails);
  }
  *fails = false;
  *hangs = key_.Fold("connecting").Fold(step.comm).Uniform(0) <
           options_.connecting_hang;
  if (*hangs) ++faults_["nccl_hangs"];
  return options_.connecting;
}

void FakeNccl::BeginPair(Rank* a, size_t a_part, Rank* b, size_t b_part) {
  const auto mine = a->stream_.front(), theirs = b->stream_.front();
  Part& here = mine->parts[a_part];
  Part& there = theirs->parts[b_part];
  here.running = there.running = true;
  const uint64_t number = mine->comm;
  bool hangs = false, fails = false;
  const absl::Duration took = FateOfPair(
      *mine, here, std::max(here.bytes(), there.bytes()), &hangs, &fails);
  if (hangs) return;
  loop_->RunAt(
      loop_->Now() + took, [this, alive = std::weak_ptr<bool>(alive_), number,
                            fails, a, a_part, b, b_part, mine, theirs] {
        if (alive.expired()) return;
        const auto present = [this](Rank* rank, const auto& step) {
          return ranks_.contains(rank) && !rank->stream_.empty() &&
                 rank->stream_.front() == step;
        };
        // An end that was aborted, or has died, leaves the other one hanging.
        if (!present(a, mine) || !present(b, theirs)) return;
        Part& here = mine->parts[a_part];
        Part& there = theirs->parts[b_part];
        // The real one damages memory or hangs.
        const bool fits = here.Fits(there) && there.Fits(here);
        if (fails || !fits) return Fail(number, NcclResult::kRemoteError);
        here.CopyTo(there);
        there.CopyTo(here);
        here.done = there.done = true;
        for (const auto& [rank, step] : {std::pair(a, mine), {b, theirs}}) {
          if (step->done()) rank->stream_.pop_front();
        }
        Progress(a);
        Progress(b);
      });
}

bool FakeNccl::Ready(const Rank* rank, uint64_t comm) const {
  return !rank->stream_.empty() && !rank->stream_.front()->running &&
         rank->stream_.front()->kind == Step::Kind::kSum &&
         rank->stream_.front()->comm == comm;
}

void FakeNccl::BeginSum(Comm& comm) {
  std::vector<std::pair<Rank*, std::shared_ptr<Step>>> parts;
  for (const auto& [place, member] : comm.members) {
    if (!Ready(member.rank, comm.number)) return;
    parts.emplace_back(member.rank, member.rank->stream_.front());
  }
  if (static_cast<int>(parts.size()) < comm.size) return;
  for (const auto& [rank, step] : parts) step->running = true;
  bool hangs = false, fails = false;
  const absl::Duration took =
      Fate(comm.number, parts[0].second->from_bytes, &hangs, &fails);
  if (hangs) return;
  loop_->RunAt(loop_->Now() + took, [this, alive = std::weak_ptr<bool>(alive_),
                                     number = comm.number, fails, parts] {
    if (alive.expired()) return;
    for (const auto& [rank, step] : parts) {
      if (!ranks_.contains(rank) || rank->stream_.empty() ||
          rank->stream_.front() != step) {
        return;
      }
    }
    if (fails) return Fail(number, NcclResult::kRemoteError);
    const RngKey draw = key_.Fold("partial").Fold(operations_);
    const bool partial = draw.Uniform(0) < options_.partial;
    if (partial) ++faults_["nccl_partial"];
    std::vector<float> sum(parts[0].second->to_bytes / sizeof(float));
    for (const auto& [rank, step] : parts) {
      const auto* from = static_cast<const float*>(step->from);
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += from[i];
    }
    uint64_t at = 0;
    for (const auto& [rank, step] : parts) {
      if (partial && draw.Uniform(++at) < 0.5) {
        for (auto& [place, member] : comms_.at(number)->members) {
          if (member.rank == rank) member.state = NcclResult::kRemoteError;
        }
        continue;
      }
      std::memcpy(step->to, sum.data(), step->to_bytes);
      rank->stream_.pop_front();
    }
    for (const auto& [rank, step] : parts) Progress(rank);
  });
}

void FakeNccl::Progress(Rank* rank) {
  while (!rank->stream_.empty()) {
    const std::shared_ptr<Step> step = rank->stream_.front();
    if (step->running) return;
    if (step->kind == Step::Kind::kCopy) {
      std::memcpy(step->to, step->from, step->to_bytes);
      rank->stream_.pop_front();
      continue;
    }
    const auto comm = comms_.find(step->comm);
    if (comm == comms_.end()) return;
    if (step->kind == Step::Kind::kSum) return BeginSum(*comm->second);
    for (size_t i = 0; i < step->parts.size(); ++i) {
      const Part& part = step->parts[i];
      const auto other = comm->second->members.find(part.other);
      if (part.running || other == comm->second->members.end()) continue;
      Rank* const there = other->second.rank;
      if (there->stream_.empty()) continue;
      const Step& theirs = *there->stream_.front();
      if (theirs.kind != Step::Kind::kPairs || theirs.comm != step->comm) {
        continue;
      }
      const size_t half = theirs.Waiting(step->place);
      if (half < theirs.parts.size()) BeginPair(rank, i, there, half);
    }
    return LookForCircle(rank);
  }
}

// Follows who waits for whom, along the first steps of the streams.
bool FakeNccl::FindCircle(const Rank* at, std::set<const Rank*>& seen,
                          Circle& way) {
  if (at->stream_.empty() || !seen.insert(at).second) return false;
  const Step& step = *at->stream_.front();
  const auto comm = comms_.find(step.comm);
  if (step.kind != Step::Kind::kPairs || comm == comms_.end()) return false;
  for (const Part& part : step.parts) {
    const auto other = comm->second->members.find(part.other);
    if (part.running || other == comm->second->members.end()) continue;
    Wait wait{.who = at, .on = other->second.rank};
    if (part.sends.back().size() >= sizeof wait.name) {
      std::memcpy(&wait.name, part.sends.back().data(), sizeof wait.name);
    }
    way.push_back(wait);
    if (wait.on == way.front().who || FindCircle(wait.on, seen, way)) {
      return true;
    }
    way.pop_back();
  }
  return false;
}

void FakeNccl::LookForCircle(const Rank* from) {
  std::set<const Rank*> seen;
  Circle circle;
  if (FindCircle(from, seen, circle) && on_deadlock_) on_deadlock_(circle);
}

void FakeNccl::Forget(Rank* rank) {
  ranks_.erase(rank);
  for (auto& [number, comm] : comms_) {
    std::erase_if(comm->members,
                  [rank](const auto& m) { return m.second.rank == rank; });
  }
  std::erase_if(comms_, [](const auto& comm) {
    return comm.second->making && comm.second->members.empty();
  });
}

FakeNccl::Rank::Rank(FakeNccl* world, std::string device, int version)
    : world_(world), device_(std::move(device)), version_(version) {
  world_->ranks_.insert(this);
}

FakeNccl::Rank::~Rank() { world_->Forget(this); }

std::string FakeNccl::Rank::TextOf(NcclResult result) const {
  return absl::StrCat("NCCL result ", static_cast<int>(result));
}

NcclResult FakeNccl::Rank::GetUniqueId(NcclUniqueId* id) {
  *id = {};
  const uint64_t number = ++world_->ids_;
  std::memcpy(id->data(), &number, sizeof number);
  return NcclResult::kSuccess;
}

NcclResult FakeNccl::Rank::CommInitRank(NcclComm* comm, int ranks,
                                        const NcclUniqueId& id, int rank) {
  uint64_t number = 0;
  std::memcpy(&number, id.data(), sizeof number);
  world_->Join(number, this, ranks, rank);
  *comm = &world_->comms_.at(number)->members.at(rank);
  return NcclResult::kInProgress;
}

NcclResult FakeNccl::Rank::CommGetAsyncError(NcclComm comm, NcclResult* error) {
  *error = static_cast<const Member*>(comm)->state;
  return NcclResult::kSuccess;
}

NcclResult FakeNccl::Rank::GroupStart() {
  in_group_ = true;
  return NcclResult::kSuccess;
}

// The sends and receives of one group with one member are halves of one pair.
FakeNccl::Part& FakeNccl::Rank::Grouped(NcclComm comm, int rank) {
  const auto& member = *static_cast<const Member*>(comm);
  auto step = std::ranges::find_if(
      group_, [&](const auto& s) { return s->comm == member.comm; });
  if (step == group_.end()) {
    step = group_.insert(step, std::make_shared<Step>());
    (*step)->kind = Step::Kind::kPairs;
    (*step)->comm = member.comm;
    for (const auto& [place, m] : world_->comms_.at(member.comm)->members) {
      if (m.rank == this) (*step)->place = place;
    }
  }
  for (Part& part : (*step)->parts) {
    if (part.other == rank) return part;
  }
  return (*step)->parts.emplace_back(Part{.other = rank});
}

NcclResult FakeNccl::Rank::Send(const void* from, size_t bytes, int rank,
                                NcclComm comm, void*) {
  if (!in_group_) return NcclResult::kInvalidUsage;  // it could wait for ever
  Grouped(comm, rank)
      .sends.emplace_back(static_cast<const std::byte*>(from), bytes);
  return NcclResult::kSuccess;
}

NcclResult FakeNccl::Rank::Recv(void* to, size_t bytes, int rank, NcclComm comm,
                                void*) {
  if (!in_group_) return NcclResult::kInvalidUsage;
  Grouped(comm, rank).receives.emplace_back(static_cast<std::byte*>(to), bytes);
  return NcclResult::kSuccess;
}

NcclResult FakeNccl::Rank::GroupEnd() {
  in_group_ = false;
  for (auto& step : group_) stream_.push_back(std::move(step));
  group_.clear();
  world_->Progress(this);
  return NcclResult::kSuccess;
}

NcclResult FakeNccl::Rank::AllReduce(const float* from, float* to, size_t count,
                                     NcclComm comm, void*) {
  auto step = std::make_shared<Step>();
  step->kind = Step::Kind::kSum;
  step->comm = static_cast<const Member*>(comm)->comm;
  step->from = from;
  step->to = to;
  step->from_bytes = step->to_bytes = count * sizeof(float);
  stream_.push_back(std::move(step));
  world_->Progress(this);
  return NcclResult::kSuccess;
}

NcclResult FakeNccl::Rank::Watch(NcclComm, absl::Duration patience) {
  patience_ = patience;
  return unwatched_ ? NcclResult::kAborted : NcclResult::kSuccess;
}

void FakeNccl::Rank::AbortUnwatched() {
  unwatched_ = true;
  stream_.clear();
}

// The kernel of the other end goes on to its end.
void FakeNccl::Rank::Tear(const Step& aborted) {
  const RngKey draw = world_->key_.Fold("torn").Fold(world_->operations_);
  const auto comm = world_->comms_.find(aborted.comm);
  for (const Part& part : aborted.parts) {
    if (!part.running || part.done ||
        draw.Uniform(static_cast<uint64_t>(part.other)) >=
            world_->options_.torn) {
      continue;
    }
    const auto other = comm->second->members.find(part.other);
    if (other == comm->second->members.end()) continue;
    Rank* const there = other->second.rank;
    if (there->stream_.empty()) continue;
    const std::shared_ptr<Step> theirs = there->stream_.front();
    for (Part& half : theirs->parts) {
      if (theirs->comm != aborted.comm || half.other != aborted.place ||
          !half.running || half.done || !part.Fits(half)) {
        continue;
      }
      ++world_->faults_["nccl_torn"];
      part.CopyTo(half);
      for (std::byte& b : half.receives.front()) b ^= std::byte{1};
      half.done = true;
    }
    if (theirs->kind == Step::Kind::kPairs && theirs->done()) {
      there->stream_.pop_front();
      world_->Progress(there);
    }
  }
}

void FakeNccl::Rank::CommAbort(NcclComm comm, std::shared_ptr<void> buffers) {
  const uint64_t number = static_cast<const Member*>(comm)->comm;
  if (!stream_.empty() && stream_.front()->comm == number) {
    Tear(*std::shared_ptr<Step>(stream_.front()));
  }
  std::erase_if(stream_,
                [number](const auto& step) { return step->comm == number; });
  std::erase_if(world_->comms_.at(number)->members,
                [this](const auto& m) { return m.second.rank == this; });
  world_->Progress(this);
}

absl::StatusOr<std::shared_ptr<void>> FakeNccl::Rank::Allocate(size_t bytes) {
  auto memory = std::make_shared<std::vector<std::byte>>(bytes);
  return std::shared_ptr<void>(memory, memory->data());
}

absl::StatusOr<std::shared_ptr<std::byte[]>> FakeNccl::Rank::AllocateHost(
    size_t bytes) {
  return std::make_shared<std::byte[]>(bytes);
}

absl::Status FakeNccl::Rank::CopyIn(void* to, std::span<const std::byte> from) {
  return CopyOut({static_cast<std::byte*>(to), from.size()}, from.data());
}

absl::Status FakeNccl::Rank::CopyOut(std::span<std::byte> to,
                                     const void* from) {
  auto step = std::make_shared<Step>();
  step->from = from;
  step->to = to.data();
  step->to_bytes = to.size();
  stream_.push_back(std::move(step));
  world_->Progress(this);
  return absl::OkStatus();
}

absl::StatusOr<bool> FakeNccl::Rank::Idle() { return stream_.empty(); }

}  // namespace gossamer
