// The search: worlds of two ends and their connections, the moves between them,
// the checks of every state, and the depth-first walk.

#include "tests/algorithms/edge/edge_search.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "algorithms/edge/edge_end.h"

namespace gossamer {
namespace {

using Num = uint8_t;
constexpr Num kLevel = 16;
constexpr Num kFirstEpoch = 80;
constexpr int kMaxWindow = 2;
constexpr int kMaxQueue = 14;
constexpr int kMaxConnections = 6;

// The bounds of the search under way, and the first violation that it found.
struct Settings {
  SearchBounds bounds;
  const char* violation = nullptr;
};
Settings* g_search = nullptr;  // one search runs at a time

void Fail(const char* what) {
  if (g_search->violation == nullptr) g_search->violation = what;
}

// Tells the edge which of its rules the search breaks.
struct SearchRules {
  static bool Broken(Rule rule) { return g_search->bounds.broken == rule; }
};

// A codec whose payloads are sets of exchanges, as bit masks: those in x̂, those
// in D from either end, and those whose corrections were applied.
struct Ghost {
  using Token = Num;  // x̂ after the payload; 0: none
  Num replica = 0, mine = 0, theirs = 0;
  Num applied = 0;             // in this incarnation of the edge
  Num applied_by_process = 0;  // in all that the end's process has had
  Num emit_interval = 0, complete_interval = 0;

  static Num Interval(Num id) {
    const int at = g_search->bounds.resync_at;
    return at != 0 && id >= at;
  }
  void OnReset() {
    replica = mine = theirs = applied = 0;
    emit_interval = complete_interval = 0;
  }
  Token OnEmit(Num id) {
    if (Interval(id) != emit_interval) {
      emit_interval = Interval(id);
      replica = 0;
    }
    return replica |= Num{1} << id;
  }
  void OnComplete(Num id, const Token* own, const Token* other) {
    const Num bit = Num{1} << id;
    if (Interval(id) != complete_interval) {
      complete_interval = Interval(id);
      mine = theirs = 0;
    }
    if (own) mine |= bit;
    if (other) theirs |= bit;
    if (!own || !other) return;
    if (mine != *own) Fail("D differs from own replica at the exchange");
    if (theirs != *other) Fail("D differs from the other's replica");
    if (applied_by_process & bit) Fail("correction applied twice");
    applied |= bit;
    applied_by_process |= bit;
  }
};

using End = EdgeEnd<Num, Ghost, kLevel, kMaxWindow, SearchRules>;
using WireFrame = End::Frame;

// One connection; queue[i] holds the undelivered frames of end i.
struct Connection {
  bool alive = false;
  uint8_t size[2] = {0, 0};
  WireFrame queue[2][kMaxQueue];

  void PopFront(int sender) {
    for (int i = 1; i < size[sender]; ++i) {
      queue[sender][i - 1] = queue[sender][i];
    }
    --size[sender];
  }
};

// One state of the search: both ends, their connections, and the number of
// faults that have happened.
struct World {
  End end[2];
  int8_t current[2] = {-1, -1};
  uint8_t connections = 0;
  Connection connection[kMaxConnections];
  uint8_t disconnects, restarts, double_dials, forced_skips, resets, lies;
  uint8_t incarnations[2] = {0, 0};  // of the ends' peers
  bool recording[2] = {false, false}, sealed[2] = {false, false};
  End::Record record[2];
  Ghost recorded_state[2];
};

// Hashes the fields of a state to 64 bits.
class Hasher {
 public:
  void Add(uint8_t v) { buffer_[size_++] = v; }
  void Add(const WireFrame& f) {
    for (Num v : {static_cast<Num>(f.kind), f.epoch, f.peer_epoch, f.prev, f.to,
                  f.ack, f.basis, f.token}) {
      Add(v);
    }
  }
  template <typename Queue>
  void AddQueue(const Queue& q) {
    Add(q.size());
    for (const auto& h : q) {
      Add(h.id);
      Add(h.prev);
      Add(h.token);
    }
  }
  void Add(const Ghost& g) {
    for (Num v : {g.replica, g.mine, g.theirs, g.applied, g.applied_by_process,
                  g.emit_interval, g.complete_interval}) {
      Add(v);
    }
  }
  uint64_t Finish() {
    while (size_ % 8) Add(0);
    uint64_t h = 0x9e3779b97f4a7c15u ^ size_;
    for (size_t i = 0; i < size_; i += 8) {
      uint64_t w;
      std::memcpy(&w, buffer_ + i, 8);
      h = (h ^ w) * 0xff51afd7ed558ccdu;
      h ^= h >> 32;
      h *= 0xc4ceb9fe1a85ec53u;
      h ^= h >> 29;
    }
    return h | 1;
  }

 private:
  uint8_t buffer_[4096];
  size_t size_ = 0;
};

uint64_t HashOf(const World& w) {
  Hasher h;
  for (int i = 0; i < 2; ++i) {
    const End::State& s = w.end[i].state();
    for (Num v : {s.epoch, s.peer_epoch, s.basis, s.decided, s.received, s.done,
                  s.peer_done, s.last, s.announced}) {
      h.Add(v);
    }
    h.Add(static_cast<uint8_t>(s.connected | s.ready << 1 | s.ack_due << 2 |
                               w.recording[i] << 3 | w.sealed[i] << 4));
    h.AddQueue(s.mine);
    h.AddQueue(s.theirs);
    h.Add(w.end[i].codec_state());
    h.Add(static_cast<uint8_t>(w.current[i]));
    h.Add(w.incarnations[i]);
    if (w.recording[i]) {
      const End::Record& r = w.record[i];
      for (Num v : {r.epoch, r.peer_epoch, r.done}) h.Add(v);
      h.AddQueue(r.mine);
      h.AddQueue(r.theirs);
      h.Add(w.recorded_state[i]);
    }
  }
  h.Add(w.connections);
  for (int c = 0; c < w.connections; ++c) {
    h.Add(w.connection[c].alive);
    for (int d = 0; d < 2; ++d) {
      h.Add(w.connection[c].size[d]);
      for (int k = 0; k < w.connection[c].size[d]; ++k) {
        h.Add(w.connection[c].queue[d][k]);
      }
    }
  }
  for (uint8_t v : {w.disconnects, w.restarts, w.double_dials, w.forced_skips,
                    w.resets, w.lies}) {
    h.Add(v);
  }
  return h.Finish();
}

// Queues a frame.  The next data frame of the same incarnation replaces an
// unsent skip at the tail, as senders do.
void Send(World& w, int sender, const WireFrame& f) {
  const int c = w.current[sender];
  if (c < 0 || !w.connection[c].alive) return;
  Connection& q = w.connection[c];
  uint8_t& n = q.size[sender];
  if (f.kind != FrameKind::kHello && n > 0) {
    const WireFrame& tail = q.queue[sender][n - 1];
    if (tail.kind == FrameKind::kSkip && tail.epoch == f.epoch &&
        tail.peer_epoch == f.peer_epoch) {
      --n;
    }
  }
  if (n >= kMaxQueue) return Fail("unsent frames are not bounded");
  q.queue[sender][n++] = f;
}

auto SenderOf(World& w, int i) {
  return [&w, i](const WireFrame& f) { Send(w, i, f); };
}

void Open(World& w, int i, int c) {
  w.current[i] = static_cast<int8_t>(c);
  w.end[i].ConnectionUp(SenderOf(w, i));
}

void Extend(World& w, int i) {
  if (w.recording[i] && !w.sealed[i]) {
    w.sealed[i] = w.end[i].ExtendRecord(w.record[i]);
  }
}

// The frame at the head of sender `d`'s queue on connection `c` arrives.
void Deliver(World& w, int c, int d) {
  const int r = 1 - d;
  const WireFrame f = w.connection[c].queue[d][0];
  w.connection[c].PopFront(d);
  if (f.kind == FrameKind::kHello) {
    w.end[r].OnHello(f, w.current[r] == c, SenderOf(w, r));
  } else if (w.end[r].OnData(f) == Verdict::kViolation) {
    Fail("violation by an honest end");
  }
  Extend(w, r);
}

// Removes frames that can never have an effect again.  This is sound: epochs, R
// and the known C of the other end only grow.
void Purge(World& w) {
  for (int c = 0; c < w.connections; ++c) {
    for (int d = 0; d < 2; ++d) {
      Connection& q = w.connection[c];
      const End::State& s = w.end[1 - d].state();
      auto dead = [&](const WireFrame& f) {
        if (f.epoch < s.peer_epoch) return true;
        if (f.kind == FrameKind::kHello) {
          return f.epoch == s.peer_epoch && f.peer_epoch <= s.epoch &&
                 !q.alive && (f.peer_epoch < s.epoch || f.ack <= s.peer_done);
        }
        return f.peer_epoch < s.epoch ||
               (f.epoch == s.peer_epoch && f.peer_epoch == s.epoch &&
                f.to <= s.received && f.ack <= s.peer_done);
      };
      WireFrame* end = q.queue[d] + q.size[d];
      q.size[d] = std::remove_if(q.queue[d], end, dead) - q.queue[d];
    }
  }
}

void CheckAndCompact(World& w) {
  const End::State &a = w.end[0].state(), &b = w.end[1].state();
  const Ghost &ga = w.end[0].codec_state(), &gb = w.end[1].codec_state();
  if (a.peer_epoch == b.epoch && b.peer_epoch == a.epoch && a.peer_epoch != 0 &&
      b.peer_epoch != 0 && a.done == b.done &&
      (ga.mine != gb.theirs || ga.theirs != gb.mine ||
       ga.applied != gb.applied)) {
    Fail("same completed frontier, but D or corrections differ");
  }
  int kept = 0;
  int8_t moved[kMaxConnections];
  for (int c = 0; c < w.connections; ++c) {
    Connection& q = w.connection[c];
    const bool gone = !q.alive && q.size[0] == 0 && q.size[1] == 0;
    moved[c] = gone || !q.alive ? int8_t{-1} : static_cast<int8_t>(kept);
    if (!gone) {
      if (kept != c) w.connection[kept] = q;
      ++kept;
    }
  }
  w.connections = static_cast<uint8_t>(kept);
  for (int i = 0; i < 2; ++i) {
    if (w.current[i] < 0) continue;
    w.current[i] = moved[w.current[i]];
    if (w.current[i] < 0) w.end[i].ConnectionDown();
  }
}

enum class MoveKind : uint8_t {
  kEmit,
  kComplete,
  kAccept,
  kDial,
  kDeliver,  // moves of the protocol
  kDisconnect,
  kRestart,
  kReset,
  kLie,  // faults
};
// A move from one state to another, with up to three arguments.
struct Move {
  MoveKind kind;
  int8_t a, b, c;
};

bool Deliverable(const World& w, int c, int d) {
  const Connection& q = w.connection[c];
  return q.size[d] > 0 && !(q.alive && c > w.current[1 - d]);
}

void ProtocolMoves(const World& w, std::vector<Move>& out) {
  const SearchBounds& b = g_search->bounds;
  int8_t newest = -1;
  for (int8_t c = 0; c < w.connections; ++c) {
    if (w.connection[c].alive) newest = c;
  }
  for (int8_t i = 0; i < 2; ++i) {
    const End::State& s = w.end[i].state();
    if (s.decided <= b.exchanges) {
      const bool payload = w.end[i].MaySendPayload(s.decided);
      out.push_back({MoveKind::kEmit, i, payload, 0});
      if (payload && w.forced_skips) out.push_back({MoveKind::kEmit, i, 0, 1});
    }
    if (s.done < s.decided && s.done < s.received) {
      out.push_back({MoveKind::kComplete, i, 0, 0});
    }
    if (newest > w.current[i]) {
      out.push_back({MoveKind::kAccept, i, newest, 0});
    }
    if (w.current[i] < 0 && newest < 0) {
      out.push_back({MoveKind::kDial, i, 0, 0});
    }
    if (w.current[i] < 0 && newest >= 0 && w.double_dials &&
        newest == w.connections - 1) {
      out.push_back({MoveKind::kDial, i, 1, 0});
    }
  }
  for (int8_t c = 0; c < w.connections; ++c) {
    for (int8_t d = 0; d < 2; ++d) {
      if (Deliverable(w, c, d)) out.push_back({MoveKind::kDeliver, c, d, 0});
    }
  }
}

void RestartMoves(const World& w, int8_t i, std::vector<Move>& out) {
  int most = 0;  // frames of a dying process that still arrive
  for (int c = 0; c < w.connections; ++c) {
    if (w.connection[c].alive) {
      most = std::max<int>(most, w.connection[c].size[i]);
    }
  }
  for (int kind :
       {kEmptyLowEpoch, kEmptyHighEpoch, kFromRecord, kFromRecordStoredEpoch}) {
    if (!(g_search->bounds.restart_kinds & kind)) continue;
    const bool from_record = kind >= kFromRecord;
    if (from_record && !w.sealed[i]) continue;
    for (int keep = 0; keep <= most; ++keep) {
      // A process without a record may also come back in the middle of the run.
      for (int late = 0; late < (from_record ? 1 : 2); ++late) {
        out.push_back({MoveKind::kRestart, i, static_cast<int8_t>(kind),
                       static_cast<int8_t>(keep * 2 + late)});
      }
    }
  }
}

void FaultMoves(const World& w, std::vector<Move>& out) {
  for (int8_t c = 0; w.disconnects && c < w.connections; ++c) {
    const Connection& q = w.connection[c];
    if (!q.alive) continue;
    for (int8_t x = 0; x <= q.size[0]; ++x) {
      for (int8_t y = 0; y <= q.size[1]; ++y) {
        out.push_back({MoveKind::kDisconnect, c, x, y});
      }
    }
  }
  for (int8_t i = 0; i < 2; ++i) {
    if (w.restarts) RestartMoves(w, i, out);
    if (w.resets && w.end[i].MayReset()) {
      out.push_back({MoveKind::kReset, i, 0, 0});
    }
  }
  for (int8_t c = 0; w.lies && c < w.connections; ++c) {
    for (int8_t d = 0; d < 2; ++d) {
      if (!Deliverable(w, c, d)) continue;
      out.push_back({MoveKind::kLie, c, d, 0});
      out.push_back({MoveKind::kLie, c, d, 1});
      if (w.connection[c].size[d] > 1) {
        out.push_back({MoveKind::kLie, c, d, 2});
      }
    }
  }
}

void Restart(World& w, int i, int kind, int keep, bool late) {
  --w.restarts;
  for (int c = 0; c < w.connections; ++c) {
    Connection& q = w.connection[c];
    if (q.alive) {
      q.alive = false;
      q.size[i] = std::min<uint8_t>(q.size[i], static_cast<uint8_t>(keep));
    }
    q.size[1 - i] = 0;
  }
  w.current[i] = -1;
  // Level and nonce are new in every process.
  const int n = ++w.incarnations[i];
  const int window = g_search->bounds.window;
  if (kind < kFromRecord) {
    const int level = kind == kEmptyLowEpoch ? 5 - n : 5 + 2 * n;
    const int frontier = late ? 1 + g_search->bounds.exchanges / 2 : 1;
    w.end[i] = End(Ghost{}, static_cast<Num>(level * kLevel + n),
                   static_cast<Num>(frontier), window);
    w.recording[i] = w.sealed[i] = false;
    return;
  }
  const End::Record& r = w.record[i];
  const Num epoch = static_cast<Num>(kind == kFromRecordStoredEpoch
                                         ? (r.epoch / kLevel + 1) * kLevel
                                         : (5 + 2 * n) * kLevel + n);
  const Num lower = i == 0 ? r.epoch : r.peer_epoch;
  const Num upper = i == 0 ? r.peer_epoch : r.epoch;
  Ghost state = w.recorded_state[i];
  state.applied_by_process = state.applied;
  w.end[i] =
      End(state, epoch, r, static_cast<Num>(1 + (lower * 31 + upper) % 251));
}

void Lie(World& w, int c, int d, int how) {
  --w.lies;
  Connection& q = w.connection[c];
  const WireFrame f = q.queue[d][0];
  if (how == 0) {
    q.PopFront(d);
  } else if (how == 1) {
    Deliver(w, c, d);
    std::copy_backward(q.queue[d], q.queue[d] + q.size[d],
                       q.queue[d] + q.size[d] + 1);
    q.queue[d][0] = f;
    ++q.size[d];
  } else {
    std::swap(q.queue[d][0], q.queue[d][1]);
  }
}

void Emit(World& w, int i, bool payload, bool forced) {
  if (forced) --w.forced_skips;
  End& e = w.end[i];
  e.Emit(e.state().decided, payload, SenderOf(w, i));
  const int cut = g_search->bounds.record_cut;
  if (cut != 0 && e.state().decided == cut && e.state().peer_epoch != 0) {
    w.recording[i] = true;
    w.sealed[i] = false;
    w.record[i] = e.BeginRecord(static_cast<Num>(cut));
    w.recorded_state[i] = e.codec_state();
    Extend(w, i);
  }
}

void Reset(World& w, int i) {
  --w.resets;
  const End &e = w.end[i], &o = w.end[1 - i];
  if (o.state().peer_epoch == e.state().epoch &&
      e.state().peer_epoch == o.state().epoch &&
      e.codec_state().applied != o.codec_state().applied) {
    Fail("a lossless reset lost a correction");
  }
  w.end[i].LosslessReset(SenderOf(w, i));
}

void Apply(World& w, const Move& m) {
  switch (m.kind) {
    case MoveKind::kEmit:
      Emit(w, m.a, m.b, m.c);
      break;
    case MoveKind::kComplete:
      w.end[m.a].Complete(255);
      break;
    case MoveKind::kAccept:
      Open(w, m.a, m.b);
      break;
    case MoveKind::kDial:
      if (m.b) --w.double_dials;
      if (w.connections >= kMaxConnections) return Fail("connections");
      w.connection[w.connections] = Connection{};
      w.connection[w.connections].alive = true;
      Open(w, m.a, w.connections++);
      break;
    case MoveKind::kDeliver:
      Deliver(w, m.a, m.b);
      break;
    case MoveKind::kDisconnect:
      --w.disconnects;
      w.connection[m.a].alive = false;
      w.connection[m.a].size[0] = static_cast<uint8_t>(m.b);
      w.connection[m.a].size[1] = static_cast<uint8_t>(m.c);
      break;
    case MoveKind::kRestart:
      Restart(w, m.a, m.b, m.c / 2, m.c % 2);
      break;
    case MoveKind::kReset:
      Reset(w, m.a);
      break;
    case MoveKind::kLie:
      Lie(w, m.a, m.b, m.c);
      break;
  }
  for (int i = 0; i < 2; ++i) {
    if (g_search->bounds.eager) w.end[i].Complete(255);
    w.end[i].Flush(SenderOf(w, i));
  }
  Purge(w);
  CheckAndCompact(w);
  Purge(w);
}

World InitialWorld() {
  const SearchBounds& b = g_search->bounds;
  World w{};
  w.disconnects = static_cast<uint8_t>(b.disconnects);
  w.restarts = static_cast<uint8_t>(b.restarts);
  w.double_dials = static_cast<uint8_t>(b.double_dials);
  w.forced_skips = static_cast<uint8_t>(b.forced_skips);
  w.resets = static_cast<uint8_t>(b.resets);
  w.lies = static_cast<uint8_t>(b.lies);
  for (End& e : w.end) e = End(Ghost{}, kFirstEpoch, 1, b.window);
  if (b.connected) {
    w.connections = 1;
    w.connection[0].alive = true;
    for (int i = 0; i < 2; ++i) Open(w, i, 0);
    while (w.connection[0].size[0] + w.connection[0].size[1] > 0) {
      for (int d = 0; d < 2; ++d) {
        if (w.connection[0].size[d] > 0) Deliver(w, 0, d);
      }
      Purge(w);
    }
  }
  return w;
}

// Checks a state in which faults are over and no move is left: everything must
// be complete.
void CheckEnd(const World& w, SearchResult& result) {
  const SearchBounds& b = g_search->bounds;
  ++result.end_states;
  const Num all = static_cast<Num>(b.exchanges + 1);
  const End::State &x = w.end[0].state(), &y = w.end[1].state();
  const Ghost &gx = w.end[0].codec_state(), &gy = w.end[1].codec_state();
  bool ok = w.current[0] >= 0 && w.current[0] == w.current[1] &&
            x.peer_epoch == y.epoch && y.peer_epoch == x.epoch &&
            gx.mine == gy.theirs && gx.theirs == gy.mine &&
            gx.applied == gy.applied;
  for (const End::State* s : {&x, &y}) {
    ok = ok && s->decided == all && s->received == all && s->done == all &&
         s->mine.empty() && s->theirs.empty();
  }
  if (!ok && b.lies == 0) Fail("stuck: nothing to do, edge not complete");
  if (b.restarts == 0 && b.resets == 0 && gx.applied != gx.applied_by_process) {
    Fail("correction of another incarnation without a crash");
  }
  result.all_corrected +=
      gx.applied == gy.applied && gx.applied == Num((1 << all) - 2);
}

// An open-addressing set of state hashes; each hash remembers whether it is on
// the current path.
class StateSet {
 public:
  StateSet() { Resize(1 << 20); }
  // Returns the slot of `h`, which holds `h` or 0.
  size_t Find(uint64_t h) const {
    size_t i = (h >> 7) & (keys_.size() - 1);
    while (keys_[i] != 0 && keys_[i] != h) i = (i + 1) & (keys_.size() - 1);
    return i;
  }
  bool Has(size_t slot) const { return keys_[slot] != 0; }
  bool OnPath(size_t slot) const { return on_path_[slot]; }
  void Leave(uint64_t h) { on_path_[Find(h)] = false; }
  void Insert(uint64_t h) {
    if (++used_ * 10 > keys_.size() * 7) Grow();
    const size_t slot = Find(h);
    keys_[slot] = h;
    on_path_[slot] = true;
  }

 private:
  void Resize(size_t n) {
    keys_.assign(n, 0);
    on_path_.assign(n, 0);
  }
  void Grow() {
    std::vector<uint64_t> keys = std::move(keys_);
    std::vector<uint8_t> on_path = std::move(on_path_);
    Resize(keys.size() * 2);
    for (size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] == 0) continue;
      const size_t slot = Find(keys[i]);
      keys_[slot] = keys[i];
      on_path_[slot] = on_path[i];
    }
  }
  std::vector<uint64_t> keys_;
  std::vector<uint8_t> on_path_;
  size_t used_ = 0;
};

// A state on the current path, with its moves and the next one to try.
struct PathNode {
  World world;
  uint64_t hash;
  std::vector<Move> moves;
  size_t next = 0;
};

}  // namespace

SearchResult SearchEdge(const SearchBounds& bounds) {
  Settings settings{bounds};
  g_search = &settings;
  SearchResult result;
  StateSet seen;
  std::vector<PathNode> path;
  auto enter = [&](const World& w, uint64_t hash) {
    path.push_back({w, hash, {}});
    seen.Insert(hash);
    ++result.states;
    ProtocolMoves(w, path.back().moves);
    if (path.back().moves.empty()) CheckEnd(w, result);
    FaultMoves(w, path.back().moves);
  };
  const World first = InitialWorld();
  enter(first, HashOf(first));
  while (!path.empty() && settings.violation == nullptr &&
         result.states < bounds.max_states) {
    PathNode& node = path.back();
    if (node.next == node.moves.size()) {
      seen.Leave(node.hash);
      path.pop_back();
      continue;
    }
    World next = node.world;
    Apply(next, node.moves[node.next++]);
    const uint64_t hash = HashOf(next);
    const size_t slot = seen.Find(hash);
    if (seen.Has(slot)) {
      if (seen.OnPath(slot)) Fail("a cycle without a fault: livelock");
      continue;
    }
    if (settings.violation == nullptr) enter(next, hash);
  }
  result.complete = path.empty();
  if (settings.violation != nullptr) result.violation = settings.violation;
  g_search = nullptr;
  return result;
}

}  // namespace gossamer
