// A trainer's programs, read: what it sends and receives, cut how, and where its step ends.
#include <algorithm>
#include <span>

#include "transpiler/check/facts/facts.h"

namespace penstock::check {
namespace {

using Names = std::vector<std::string>;

// Texts of the program: some that stand in a list, or one of them as often as is said.
class Texts {
 public:
  Texts(std::span<const std::string> list)  // NOLINT(google-explicit-constructor)
      : list_(list), count_(list.size()) {}
  Texts(std::size_t count, std::string_view text) : text_(text), count_(count) {}
  std::size_t size() const { return count_; }
  std::string_view operator[](std::size_t i) const { return list_.empty() ? text_ : list_[i]; }

 private:
  std::span<const std::string> list_;
  std::string_view text_;
  std::size_t count_ = 0;
};

struct CutBy {
  const Op* op = nullptr;
  int position = 0;
};

Cut KindOfSplit(const Op& op) {
  if (op.type() == "split_byref" || op.type() == "split_selected_rows") return Cut::kByRows;
  return op.type() == "split_ids" ? Cut::kById : Cut::kNot;
}

const std::string& SplitSource(const Op& op) { return op.InputName(op.type() == "split_ids" ? "Ids" : "X"); }

std::string_view ParamOf(const Op& op) {
  const Names& pairs = StringsOf(op, kRoleVarAttr);
  return pairs.size() < 2 ? std::string_view() : pairs.front();
}

class TrainerReader {
 public:
  TrainerReader(const RoleProgram& file, const OpRegistry& ops, TrainerFacts& facts)
      : program_(file.program), ops_(ops), facts_(facts) {}

  void ReadMain() {
    const auto& entries = program_.main().ops();
    for (std::size_t i = 0; i < entries.size(); ++i) ReadOp(*entries[i].op, static_cast<int>(i));
    Link(facts_.recvs);
    LookUpMoved(facts_.sends);
    LookUpMoved(facts_.recvs);
    LookUpPieces(facts_.lookups);
    for (std::size_t i = 0; i < facts_.sends.size(); ++i) facts_.send_of.emplace(facts_.sends[i].param, i);
    for (std::size_t i = 0; i < facts_.recvs.size(); ++i) facts_.recv_of.emplace(facts_.recvs[i].param, i);
  }

  void ReadStartup() {
    const auto& entries = program_.main().ops();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const Op& op = *entries[i].op;
      const int position = static_cast<int>(i);
      if (op.type() == "recv") {
        facts_.startup_recvs.push_back(ReadRecv(op, position));
      } else if (op.type() == "fetch_barrier") {
        facts_.startup_barriers.push_back({StringsOf(op, "endpoints"), &op, position});
      } else if (op.type() == "concat") {
        NoteJoin(op, position);
      }
    }
    Link(facts_.startup_recvs);
    LookUpMoved(facts_.startup_recvs);
  }

 private:
  void ReadOp(const Op& op, int position) {
    if (op.type() == "send") {
      ReadSend(op, position);
    } else if (op.type() == "recv") {
      facts_.recvs.push_back(ReadRecv(op, position));
    } else if (op.type() == "send_barrier") {
      facts_.send_barriers.push_back({StringsOf(op, "endpoints"), &op, position});
    } else if (op.type() == "fetch_barrier") {
      facts_.fetch_barriers.push_back({StringsOf(op, "endpoints"), &op, position});
    } else if (KindOfSplit(op) != Cut::kNot) {
      for (const std::string& piece : op.Output("Out")) split_[piece] = {&op, position};
    } else if (op.type() == "concat") {
      NoteJoin(op, position);
    } else if (op.type() == "distributed_lookup_table") {
      ReadLookup(op, position);
    } else if (op.type() == "prefetch") {
      ReadPrefetch(op, position);
    } else if (op.type() == "merge_ids") {
      bool asked = false;
      for (Lookup& lookup : facts_.lookups) {
        if (lookup.cut != Cut::kById || lookup.op->Output("Out") != op.Input("X")) continue;
        lookup.merge = &op;
        asked = true;
      }
      if (!asked) facts_.lookups.push_back({.op = &op, .position = position, .cut = Cut::kById});
    } else if (op.GetOr<bool>("remote_prefetch", false) && !Has(op.role(), Role::kBackward)) {
      for (const Slot& slot : op.inputs()) facts_.remote_tables.insert(slot.args.begin(), slot.args.end());
    }
    if (Has(op.role(), Role::kBackward)) {
      ForEachPair(op,
                  [&](std::string_view param, std::string_view) { facts_.gradients.emplace(param, &op); });
    }
    if (const auto slots = FindOptimizerSlots(op, ops_))
      facts_.updated_here.insert(op.InputName(slots->param));
  }

  void NoteJoin(const Op& op, int position) {
    for (const std::string& piece : op.Input("X")) join_[piece] = {&op, position};
  }

  // How the program declares the pieces of transfers or lookups.
  template <typename Holder>
  void LookUpPieces(std::vector<Holder>& holders) const {
    std::vector<std::string_view> names;
    for (const Holder& holder : holders) {
      for (const Piece& piece : holder.pieces) names.push_back(piece.local);
    }
    std::vector<const Var*> vars(names.size());
    program_.FindVars(0, names, vars);
    auto next = vars.begin();
    for (Holder& holder : holders) {
      for (Piece& piece : holder.pieces) piece.here = *next++;
    }
  }

  // And so, where it says, how many rows are moved.
  void LookUpMoved(std::vector<Transfer>& transfers) const {
    LookUpPieces(transfers);
    for (Transfer& transfer : transfers) {
      if (transfer.cut == Cut::kAtRunTime) continue;
      for (Piece& piece : transfer.pieces) {
        const bool told = piece.here != nullptr && piece.here->type && piece.here->shape().rank() > 0;
        if (told) piece.rows = piece.here->shape()[0];
      }
    }
  }

  // Pieces by position: pserver i gets or gives names[i], which is locals[i] here; fewer of one kind than of
  // another show as an empty name or a missing address.
  static std::vector<Piece> Pieces(Texts locals, Texts remotes, Texts servers) {
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

  void ReadSend(const Op& op, int position) {
    const Names& names = StringsOf(op, "send_varnames");
    const Names& servers = StringsOf(op, "epmap");
    const ArgList& inputs = op.Input("X");
    Transfer send{.op = &op, .position = position, .param = ParamOf(op)};
    send.whole = op.InputName("X");
    send.counts_steps = !op.GetOr<bool>("use_send_handler", true);
    if (send.counts_steps) {  // one variable, told to all
      const std::string_view remote = names.empty() ? send.whole : names.front();
      send.pieces = Pieces({servers.size(), send.whole}, {servers.size(), remote}, {servers});
      facts_.by_communicator |= !names.empty();
      facts_.sends.push_back(std::move(send));
      return;
    }
    const bool no_sections = LongsOf(op, "sections").empty();
    if (op.RolePairs().empty() && no_sections && (inputs.empty() || !names.empty())) {
      facts_.tells_ids.push_back({.op = &op, .position = position, .whole = send.whole});
      return;  // geo: the communicator is told of which tables to look at which rows
    }
    if (!names.empty()) {
      facts_.by_communicator = true;
      send.cut = Cut::kAtRunTime;
      send.pieces = Pieces({names.size(), send.whole}, {names}, {servers});
      const std::vector<std::int64_t> sections = LongsOf(op, "sections");
      for (std::size_t i = 0; i < send.pieces.size(); ++i) {
        send.pieces[i].rows = i < sections.size() ? sections[i] : kUnknownDim;
      }
    } else {
      send.pieces = Pieces({inputs}, {inputs}, {servers});
      const auto split = split_.find(send.whole);
      if (split != split_.end()) {
        send.cut_op = split->second.op;
        send.cut_position = split->second.position;
        send.cut = KindOfSplit(*send.cut_op);
        send.whole = SplitSource(*send.cut_op);
      }
    }
    facts_.sends.push_back(std::move(send));
  }

  Transfer ReadRecv(const Op& op, int position) const {
    const Names& servers = StringsOf(op, "epmap");
    const ArgList& outputs = op.Output("Out");
    Transfer recv{.op = &op, .position = position, .param = ParamOf(op)};
    recv.whole = op.OutputName("Out");
    const Names& pieces = StringsOf(op, "recv_varnames");
    if (!pieces.empty()) {
      recv.cut = Cut::kAtRunTime;
      recv.pieces = Pieces({pieces.size(), recv.whole}, {pieces}, {servers});
      return recv;
    }
    const Names& renamed = StringsOf(op, "varnames");
    recv.pieces = Pieces({outputs}, renamed.empty() ? Texts(outputs) : Texts(renamed), {servers});
    return recv;
  }

  // Which op joins what was received.
  void Link(std::vector<Transfer>& recvs) const {
    for (Transfer& recv : recvs) {
      const auto join = join_.find(recv.whole);
      if (recv.cut == Cut::kNot && join != join_.end() && join->second.position > recv.position) {
        recv.cut_op = join->second.op;
        recv.cut_position = join->second.position;
        recv.cut = Cut::kByRows;
        recv.whole = recv.cut_op->OutputName("Out");
      }
    }
  }

  void ReadLookup(const Op& op, int position) {
    Lookup lookup{.op = &op, .position = position, .table = op.InputName("W")};
    const Names& names = StringsOf(op, "table_names");
    lookup.pieces = Pieces({names.size(), lookup.table}, {names}, {StringsOf(op, "endpoints")});
    const std::vector<std::int64_t> rows = LongsOf(op, "height_sections");
    for (std::size_t i = 0; i < lookup.pieces.size(); ++i) {
      lookup.pieces[i].rows = i < rows.size() ? rows[i] : kUnknownDim;
    }
    facts_.remote_tables.insert(lookup.table);
    facts_.lookups.push_back(std::move(lookup));
  }

  void ReadPrefetch(const Op& op, int position) {
    Lookup lookup{.op = &op, .position = position, .cut = Cut::kById};
    const ArgList& ids = op.Input("X");
    lookup.pieces = Pieces({ids}, {ids}, {StringsOf(op, "epmap")});
    const auto split = split_.find(op.InputName("X"));
    if (split != split_.end()) lookup.split = split->second.op;
    facts_.lookups.push_back(std::move(lookup));
  }

  const Program& program_;
  const OpRegistry& ops_;
  TrainerFacts& facts_;
  ViewMap<CutBy> split_, join_;  // by piece
};

// A barrier or recv carries the id; Fluid's sends all say 0.
int TrainerId(const TrainerFacts& facts, int otherwise) {
  const Op* op = nullptr;
  if (!facts.send_barriers.empty()) {
    op = facts.send_barriers.front().op;
  } else if (!facts.recvs.empty()) {
    op = facts.recvs.front().op;
  } else if (!facts.startup_recvs.empty()) {
    op = facts.startup_recvs.front().op;
  }
  return op == nullptr ? otherwise : op->GetOr<std::int32_t>("trainer_id", otherwise);
}

}  // namespace

TrainerFacts ReadTrainer(const RoleFiles& roles, std::size_t index, const OpRegistry& ops) {
  TrainerFacts facts;
  facts.file = &roles.trainers[index];
  TrainerReader(*facts.file, ops, facts).ReadMain();
  if (index < roles.trainer_startups.size()) {
    facts.startup = &roles.trainer_startups[index];
    TrainerReader(*facts.startup, ops, facts).ReadStartup();
  }
  facts.trainer_id = TrainerId(facts, static_cast<int>(index));
  return facts;
}

const Transfer* TrainerFacts::FindSend(std::string_view param) const {
  const auto it = send_of.find(param);
  return it == send_of.end() ? nullptr : &sends[it->second];
}

const Transfer* TrainerFacts::FindRecv(std::string_view param) const {
  const auto it = recv_of.find(param);
  return it == recv_of.end() ? nullptr : &recvs[it->second];
}

}  // namespace penstock::check
