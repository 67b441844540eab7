// Reads a trainer's programs: its sends and recvs, how each is cut, and the end of its step.
#include "transpiler/check/facts/facts.h"

namespace penstock::check {
namespace {

using Kind = roles::CommOp::Kind;

std::vector<Piece> PiecesOf(const roles::CommOp& one) {
  std::vector<Piece> pieces;
  pieces.reserve(one.pieces.size());
  for (const roles::Piece& piece : one.pieces) pieces.push_back({piece});
  return pieces;
}

Transfer TransferOf(const roles::CommOp& one) {
  return {.op = one.op,
          .position = one.position,
          .param = one.param,
          .whole = one.whole,
          .cut = one.cut,
          .cut_op = one.cut_op,
          .cut_position = one.cut_position,
          .counts_steps = one.kind == Kind::kStep,
          .pieces = PiecesOf(one)};
}

Barrier BarrierOf(const roles::CommOp& one) {
  return {roles::BarrierView(*one.op).addresses(), one.op, one.position};
}

class TrainerReader {
 public:
  TrainerReader(const RoleProgram& file, const OpRegistry& ops, TrainerFacts& facts)
      : program_(file.program), ops_(ops), facts_(facts), role_(roles::ReadTrainer(program_)) {}

  void ReadMain() {
    facts_.by_communicator = role_.by_communicator;
    for (const roles::CommOp& one : role_.ops) ReadComm(one);
    for (const OpEntry& entry : program_.main().ops()) ReadOp(*entry.op);
    LookUpMoved(facts_.sends);
    LookUpMoved(facts_.recvs);
    LookUpPieces(facts_.lookups);
    for (std::size_t i = 0; i < facts_.sends.size(); ++i) facts_.send_of.emplace(facts_.sends[i].param, i);
    for (std::size_t i = 0; i < facts_.recvs.size(); ++i) facts_.recv_of.emplace(facts_.recvs[i].param, i);
  }

  void ReadStartup() {
    for (const roles::CommOp& one : role_.ops) {
      if (one.kind == Kind::kRecv) facts_.startup_recvs.push_back(TransferOf(one));
      if (one.kind == Kind::kFetchBarrier) facts_.startup_barriers.push_back(BarrierOf(one));
    }
    LookUpMoved(facts_.startup_recvs);
  }

 private:
  void ReadComm(const roles::CommOp& one) {
    switch (one.kind) {
      case Kind::kSend:
      case Kind::kStep:
        return facts_.sends.push_back(TransferOf(one));
      case Kind::kTold:
        return facts_.tells_ids.push_back(TransferOf(one));
      case Kind::kRecv:
        return facts_.recvs.push_back(TransferOf(one));
      case Kind::kSendBarrier:
        return facts_.send_barriers.push_back(BarrierOf(one));
      case Kind::kFetchBarrier:
        return facts_.fetch_barriers.push_back(BarrierOf(one));
      case Kind::kLookup:
        facts_.remote_tables.insert(one.whole);
        [[fallthrough]];
      case Kind::kPrefetch:
      case Kind::kAnswers:
        return facts_.lookups.push_back({.op = one.op,
                                         .position = one.position,
                                         .table = one.whole,
                                         .cut = one.cut,
                                         .pieces = PiecesOf(one),
                                         .split = one.cut_op,
                                         .merge = one.merge_op});
      case Kind::kSampler:
        facts_.remote_tables.insert(one.whole);
        return;
      case Kind::kSave:
        return;
    }
  }

  void ReadOp(const Op& op) {
    if (Has(op.role(), OpRole::kBackward)) {
      ForEachPair(op,
                  [&](std::string_view param, std::string_view) { facts_.gradients.emplace(param, &op); });
    } else if (roles::PrefetchesRows(op)) {
      for (const Slot& slot : op.inputs()) facts_.remote_tables.insert(slot.args.begin(), slot.args.end());
    }
    if (const auto slots = FindOptimizerSlots(op, ops_))
      facts_.updated_here.insert(op.InputName(slots->param));
  }

  // Looks up the program's declarations of the pieces of transfers or lookups.
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

  // Also reads the numbers of rows, if the op states them.
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

  const Program& program_;
  const OpRegistry& ops_;
  TrainerFacts& facts_;
  const roles::TrainerFacts role_;
};

// Takes the trainer's id from a barrier, recv or lookup, because all sends of Fluid have 0.
int TrainerId(const TrainerFacts& facts, int otherwise) {
  const Op* op = nullptr;
  if (!facts.send_barriers.empty()) {
    op = facts.send_barriers.front().op;
  } else if (!facts.recvs.empty()) {
    op = facts.recvs.front().op;
  } else if (!facts.startup_recvs.empty()) {
    op = facts.startup_recvs.front().op;
  } else if (!facts.lookups.empty()) {  // all parameters are tables, and a communicator ends the steps
    op = facts.lookups.front().op;
  }
  return op == nullptr ? otherwise : roles::TrainerOf(*op).value_or(otherwise);
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
