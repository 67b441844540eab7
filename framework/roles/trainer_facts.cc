#include "framework/roles/trainer_facts.h"

#include <algorithm>
#include <set>

#include "framework/base/hash.h"
#include "framework/base/view_map.h"
#include "framework/ir/block_uses.h"

namespace penstock::roles {
namespace {

using Kind = CommOp::Kind;

// Texts of the program: a list, or one text repeated `count` times.
class Texts {
 public:
  Texts(Names list) : list_(list), count_(list.size()) {}  // NOLINT(google-explicit-constructor)
  Texts(std::size_t count, std::string_view text) : text_(text), count_(count) {}
  std::size_t size() const { return count_; }
  std::string_view operator[](std::size_t i) const { return list_.empty() ? text_ : list_[i]; }

 private:
  Names list_;
  std::string_view text_;
  std::size_t count_ = 0;
};

// Makes a piece per position: remotes[i] on servers[i] is locals[i] in the trainer.
std::vector<Piece> PiecesOf(Texts locals, Texts remotes, Texts servers) {
  std::vector<Piece> pieces(std::max({locals.size(), remotes.size(), servers.size()}));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    Piece& piece = pieces[i];
    if (i < locals.size()) piece.local = locals[i];
    if (i < remotes.size()) piece.remote = remotes[i];
    piece.has_address = i < servers.size();
    if (piece.has_address) piece.pserver = servers[i];
  }
  return pieces;
}

void SetRows(std::vector<Piece>& pieces, const Numbers& rows) {
  for (std::size_t i = 0; i < std::min(pieces.size(), rows.size()); ++i) pieces[i].rows = rows[i];
}

// The first argument, as a view of the program's text; empty if there is none.
std::string_view First(Names names) { return names.empty() ? std::string_view() : names.front(); }

bool RequestsRows(Comm kind) {
  return kind == Comm::kLookup || kind == Comm::kSampler || kind == Comm::kSplit || kind == Comm::kPrefetch ||
         kind == Comm::kMergeIds;
}

class TrainerReader {
 public:
  explicit TrainerReader(const Program& program) { role_.program = &program; }

  TrainerFacts Read() {
    for (const OpEntry& entry : role_.program->main().ops()) {
      ReadOp(*entry.op);
      ReadBlocksOf(*entry.op);
      ++position_;
    }
    for (CommOp& one : role_.ops) {
      if (one.kind == Kind::kRecv) FindJoin(one);
    }
    if (!role_.trainer_id) role_.trainer_id = looking_up_;
    const auto policy = role_.program->meta().policies.find("bn_sync");
    if (policy != role_.program->meta().policies.end()) role_.bn_sync = policy->second;
    role_.plan_fingerprint = PlanFingerprintOf(*role_.program);
    return std::move(role_);
  }

 private:
  struct CutBy {
    const Op* op = nullptr;
    int position = 0;
  };

  void ReadOp(const Op& op) {
    switch (CommOf(op)) {
      case Comm::kSend:
        return ReadSend(op, SendView(op));
      case Comm::kRecv:
        return ReadRecv(op, RecvView(op));
      case Comm::kSendBarrier:
        NoteTrainer(op);
        return AddServers(op, Kind::kSendBarrier, BarrierView(op).addresses());
      case Comm::kFetchBarrier:
        NoteTrainer(op);
        role_.pulls_end_at_barrier = true;
        return AddServers(op, Kind::kFetchBarrier, BarrierView(op).addresses());
      case Comm::kSave:
        return AddServers(op, Kind::kSave, SaveView(op).addresses());
      case Comm::kSplit:
        for (const std::string& piece : SplitView(op).pieces()) split_[piece] = {&op, position_};
        return;
      case Comm::kLookup:
        return ReadLookup(op, Kind::kLookup);
      case Comm::kSampler:
        return ReadLookup(op, Kind::kSampler);
      case Comm::kPrefetch:
        return ReadPrefetch(op, PrefetchView(op));
      case Comm::kMergeIds:
        return ReadMergeIds(op);
      case Comm::kServe:
      case Comm::kExchange:
        return;
      case Comm::kNone:
        if (op.type() != "concat") return;
        for (const std::string& piece : op.Input("X")) join_[piece] = {&op, position_};
    }
  }

  void ReadBlocksOf(const Op& op) {
    for (const int started : StartedBlocks(op)) {
      if (started <= 0 || started >= role_.program->block_count() || !read_.insert(started).second) continue;
      for (const OpEntry& entry : role_.program->block(started).ops()) {
        if (RequestsRows(CommOf(*entry.op))) ReadOp(*entry.op);
        ReadBlocksOf(*entry.op);
      }
    }
  }

  CommOp& Add(const Op& op, Kind kind) {
    return role_.ops.emplace_back(
        CommOp{.kind = kind, .op = &op, .position = position_, .param = PairOf(op).param});
  }

  void NoteTrainer(const Op& op) {
    if (!role_.trainer_id) role_.trainer_id = TrainerOf(op);
  }

  void AddServers(const Op& op, Kind kind, Names addresses) {
    Add(op, kind).pieces = PiecesOf({0, {}}, {0, {}}, {addresses});
  }

  void ReadSend(const Op& op, const SendView& view) {
    CommOp& send = Add(op, view.counts_step()          ? Kind::kStep
                           : view.tells_communicator() ? Kind::kTold
                                                       : Kind::kSend);
    const Names servers = view.addresses();
    send.whole = First(view.variables());
    send.by_communicator = view.by_communicator();
    if (send.kind == Kind::kTold) return;
    role_.by_communicator |= send.by_communicator;
    if (send.kind == Kind::kStep) {  // one variable, sent to all servers
      const std::string_view remote = send.by_communicator ? First(view.messages()) : send.whole;
      send.pieces = PiecesOf({servers.size(), send.whole}, {servers.size(), remote}, {servers});
    } else if (send.by_communicator) {
      send.cut = Cut::kAtRunTime;
      send.pieces = PiecesOf({view.messages().size(), send.whole}, {view.messages()}, {servers});
      SetRows(send.pieces, view.sections());
    } else {
      send.pieces = PiecesOf({view.variables()}, {view.variables()}, {servers});
      const auto split = split_.find(send.whole);
      if (split == split_.end()) return;
      const SplitView by(*split->second.op);
      send.cut_op = split->second.op;
      send.cut_position = split->second.position;
      send.cut = by.cut();
      send.whole = by.whole();
    }
  }

  void ReadRecv(const Op& op, const RecvView& view) {
    CommOp& recv = Add(op, Kind::kRecv);
    recv.whole = First(view.variables());
    recv.by_communicator = view.by_communicator();
    recv.idle = view.idle();
    if (!recv.idle) NoteTrainer(op);
    if (recv.by_communicator) {
      recv.cut = Cut::kAtRunTime;
      recv.pieces = PiecesOf({view.messages().size(), recv.whole}, {view.messages()}, {view.addresses()});
    } else {
      recv.pieces = PiecesOf({view.variables()}, {view.remote()}, {view.addresses()});
    }
  }

  // Finds the op that joins the received pieces. An op of the user may read a parameter that came whole.
  void FindJoin(CommOp& recv) const {
    if (!recv.param.empty() && recv.whole == recv.param) return;
    const auto join = join_.find(recv.whole);
    if (recv.cut != Cut::kNot || join == join_.end() || join->second.position <= recv.position) return;
    recv.cut_op = join->second.op;
    recv.cut_position = join->second.position;
    recv.cut = Cut::kByRows;
    recv.whole = recv.cut_op->OutputName("Out");
  }

  void ReadLookup(const Op& op, Kind kind) {
    const LookupView view(op);
    if (!looking_up_) looking_up_ = TrainerOf(op);
    CommOp& lookup = Add(op, kind);
    lookup.whole = view.table();
    lookup.cut = Cut::kByRows;
    lookup.pieces = PiecesOf({view.pieces().size(), lookup.whole}, {view.pieces()}, {view.addresses()});
    SetRows(lookup.pieces, view.heights());
  }

  void ReadPrefetch(const Op& op, const PrefetchView& view) {
    CommOp& prefetch = Add(op, Kind::kPrefetch);
    prefetch.cut = Cut::kById;
    prefetch.pieces = PiecesOf({view.ids()}, {view.ids()}, {view.addresses()});
    const auto split = split_.find(First(view.ids()));
    if (split == split_.end()) return;
    prefetch.cut_op = split->second.op;
    prefetch.cut_position = split->second.position;
  }

  void ReadMergeIds(const Op& op) {
    bool asked = false;
    for (CommOp& one : role_.ops) {
      if (one.cut != Cut::kById || one.kind == Kind::kSend || one.op->Output("Out") != op.Input("X"))
        continue;
      one.merge_op = &op;
      asked = true;
    }
    if (!asked) Add(op, Kind::kAnswers).cut = Cut::kById;
  }

  TrainerFacts role_;
  std::optional<int> looking_up_;  // the trainer id of the first lookup
  int position_ = 0;
  std::set<int> read_;           // blocks
  ViewMap<CutBy> split_, join_;  // by piece
};

}  // namespace

TrainerFacts ReadTrainer(const Program& program) { return TrainerReader(program).Read(); }

std::optional<std::uint64_t> PlanFingerprintOf(const Program& program) {
  const std::string& plan = program.meta().plan;
  return plan.empty() ? std::nullopt : std::optional(Fnv1a64(plan));
}

}  // namespace penstock::roles
