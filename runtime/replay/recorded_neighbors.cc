#include "runtime/replay/recorded_neighbors.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/crc32c.h"
#include "algorithms/edge/edge.h"
#include "algorithms/edge/frame.h"
#include "topology/fleet/protocol.h"

namespace gossamer {
namespace {

// The peer meets each other end once, and it never begins anew.
constexpr ConnectionId kConnection = 1;
constexpr uint64_t kEpoch = MakeEpoch(1, 1);

// What an end without a vector carries.
struct RecordedSide {
  using Token = EdgeMessage;
  std::function<EdgeMessage(ExchangeId)> read;
  void OnZero() {}
  EdgeMessage OnEmit(ExchangeId id) { return read(id); }
  void OnComplete(ExchangeId, const EdgeMessage*, const EdgeMessage*) {}
};
using RecordedEnd =
    EdgeEnd<uint64_t, RecordedSide, kEpochLevel, kMaxEdgeWindow>;

}  // namespace

class RecordedNeighbors::Neighbor {
 public:
  Neighbor(RecordedNeighbors* all, PeerId peer) : all_(all), peer_(peer) {}

  void OnFrame(const EdgeHeader& h) {
    if (h.kind == FrameKind::kHello) {
      OnHello(h);
    } else if (end_) {
      if (end_->OnData(FrameOf(h)) == Verdict::kViolation) {
        all_->Fail(absl::InternalError(
            absl::StrCat("peer ", peer_.value,
                         " as recorded cannot follow round ", RoundOf(h.to))));
      }
    }
    if (end_) Advance();
  }

 private:
  // Like the end that the peer was paired with: of the same cut if it resumes
  // from one, with nothing left to say of what is below.
  void OnHello(const EdgeHeader& h) {
    run_id_ = h.run_id;
    layout_ = h.layout;
    replica_ = h.replica;
    if (!end_) {
      RecordedSide side{[this](ExchangeId id) { return Read(id); }};
      if (h.basis != 0) {
        RecordedEnd::Record record;
        record.cut = record.done = h.to;
        record.window = record.peer_window = h.window;
        end_.emplace(std::move(side), kEpoch, record, h.basis);
      } else {
        end_.emplace(std::move(side), kEpoch, std::max<ExchangeId>(h.to, 1),
                     h.window);
      }
      end_->set_insist(true);
      end_->ConnectionUp(Sender());
    }
    end_->OnHello(FrameOf(h), /*current=*/true, Sender());
  }

  // As far as there is room; after the last payload, to the end of all rounds.
  void Advance() {
    ExchangeId done = 0;
    do {
      done = end_->state().done;
      while (end_->HasRoom()) {
        const ExchangeId id =
            all_->log_->NextFrom(peer_, end_->state().decided);
        if (id == 0) {
          end_->Pass(MakeExchangeId(kMaxRound));
          break;
        }
        end_->Emit(id, /*pay=*/true, Sender());
      }
      end_->Complete(end_->state().decided);
    } while (end_->state().done > done);
    if (end_->state().decided == told_ && end_->state().done == acked_) return;
    told_ = end_->state().decided;
    acked_ = end_->state().done;
    end_->Announce();
    end_->Flush(Sender());
  }

  EdgeMessage Read(ExchangeId id) {
    absl::StatusOr<EdgeMessage> message = all_->log_->Read(peer_, id);
    if (message.ok()) return *std::move(message);
    all_->Fail(message.status());
    return {};
  }

  struct SendFn {
    Neighbor* neighbor;
    void operator()(const RecordedEnd::Frame& f) const { neighbor->Send(f); }
  };
  SendFn Sender() { return {this}; }

  void Send(const RecordedEnd::Frame& f) {
    EdgeHeader h = HeaderOf(f);
    h.layout = layout_;
    if (f.kind == FrameKind::kHello) {
      h.replica = replica_;
      h.run_id = run_id_;
    }
    all_->Answer(peer_, {Payload::FromVector(EncodeHeader(h)), f.token.bytes});
  }

  RecordedNeighbors* const all_;
  const PeerId peer_;
  std::optional<RecordedEnd> end_;
  // As the peer's hello says them: both ends are of one run.
  std::string run_id_;
  uint32_t layout_ = 0;
  bool replica_ = false;
  ExchangeId told_ = 0, acked_ = 0;
};

RecordedNeighbors::RecordedNeighbors(EventLoop* loop, const InputsLog* log)
    : loop_(loop), log_(log) {}

RecordedNeighbors::~RecordedNeighbors() = default;

void RecordedNeighbors::Connect(PeerId peer, const std::string&) {
  if (neighbors_.contains(peer)) return;
  neighbors_.emplace(peer, std::make_unique<Neighbor>(this, peer));
  loop_->Post([this, peer, weak = std::weak_ptr<bool>(alive_)] {
    if (!weak.expired()) listener_->OnUp(peer, kConnection);
  });
}

void RecordedNeighbors::Disconnect(PeerId peer) { neighbors_.erase(peer); }

bool RecordedNeighbors::Send(PeerId peer, Channel channel, Frame frame) {
  const auto it = neighbors_.find(peer);
  if (it == neighbors_.end() || channel != Channel::kEdge) return false;
  counters_.bytes_sent += frame.head.size() + frame.body.size();
  const absl::StatusOr<EdgeHeader> header = DecodeHeader(frame.head.bytes());
  if (!header.ok()) {
    Fail(header.status());
    return false;
  }
  if (header->kind == FrameKind::kPayload) {
    Check(peer, header->to - 1, frame.body.bytes());
  }
  it->second->OnFrame(*header);
  return true;
}

void RecordedNeighbors::Close(PeerId peer, ConnectionId,
                              const absl::Status& why) {
  Fail(absl::DataLossError(
      absl::StrCat("peer ", peer.value, " as recorded: ", why.message())));
}

void RecordedNeighbors::Answer(PeerId peer, Frame frame) {
  counters_.bytes_received += frame.head.size() + frame.body.size();
  loop_->Post([this, peer, frame = std::move(frame),
               weak = std::weak_ptr<bool>(alive_)]() mutable {
    if (weak.expired() || !neighbors_.contains(peer)) return;
    listener_->OnFrame(peer, kConnection, Channel::kEdge, std::move(frame));
  });
}

void RecordedNeighbors::Check(PeerId peer, ExchangeId id,
                              std::span<const std::byte> sent) {
  const std::optional<uint32_t> then = log_->Sent(peer, id);
  if (!then) return;
  if (*then == Crc32c(sent)) {
    ++equal_;
    return;
  }
  Fail(absl::DataLossError(
      absl::StrCat("other bits than in the recorded run: what goes to peer ",
                   peer.value, " in round ", RoundOf(id), " differs")));
}

void RecordedNeighbors::Fail(absl::Status why) {
  if (status_.ok()) status_ = std::move(why);
}

}  // namespace gossamer
