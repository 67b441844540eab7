#include "transpiler/check/meaning/composition.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "transpiler/check/facts/rank_ops.h"

namespace penstock::check {
namespace {

int TrainersOf(const RoleFacts& facts) {
  if (facts.trainers.empty()) return 0;
  return facts.pservers.empty() ? RanksOf(facts) : facts.pservers.front().trainers;
}

// The copies that a startup program makes, by the copied variable. Delay compensation keeps the value that
// each trainer fetched; local training, which sums updates in the parameters' variables, keeps the initial
// value. All copies are equal at the start of a step.
Copies CopiesIn(const RoleProgram* startup) {
  Copies copies;
  if (startup == nullptr) return copies;
  for (const OpEntry& entry : startup->program.main().ops()) {
    if (entry.op->type() == "assign") copies[entry.op->InputName("X")].push_back(entry.op->OutputName("Out"));
  }
  return copies;
}

// The copies of CopiesIn that delay compensation selects by trainer. Other copies are state of the user's
// that starts as its parameter and then has values of its own.
Copies FetchedCopies(const PserverFacts& pserver) {
  Copies copies = CopiesIn(pserver.startup);
  if (copies.empty()) return copies;
  ViewSet selected;
  const Program& program = pserver.file->program;
  for (int block = 0; block < program.block_count(); ++block) {
    for (const OpEntry& entry : program.block(block).ops()) {
      if (entry.op->type() != "ref_by_trainer_id") continue;
      const ArgList& from = entry.op->Input("X");
      selected.insert(from.begin(), from.end());
    }
  }
  for (auto& [original, names] : copies)
    std::erase_if(names, [&](std::string_view name) { return !selected.contains(name); });
  return copies;
}

// The pserver's op that answers a lookup by id; null if not found, which another rule reports.
const Op* AnswerTo(const Lookup& lookup, const RoleFacts& facts) {
  if (lookup.cut != Cut::kById || lookup.merge == nullptr || lookup.pieces.empty()) return nullptr;
  const Piece& piece = lookup.pieces.front();
  const PserverFacts* pserver = facts.FindPserver(piece.pserver);
  if (pserver == nullptr) return nullptr;
  const auto block = pserver->prefetch_blocks.find(piece.remote);
  const Program& program = pserver->file->program;
  if (block == pserver->prefetch_blocks.end() || block->second < 1 || block->second >= program.block_count())
    return nullptr;
  for (const OpEntry& entry : program.block(block->second).ops()) {
    if (!entry.op->InputName("W").empty()) return entry.op.get();
  }
  return nullptr;
}

// Whether the op joins the received pieces in their order.
bool IsJoinOf(const Op& op, const Transfer& recv) {
  const ArgList& joined = op.Input("X");
  return std::equal(joined.begin(), joined.end(), recv.pieces.begin(), recv.pieces.end(),
                    [](const std::string& name, const Piece& piece) { return name == piece.local; });
}

// The number of a trainer's ops up to its last send.
std::size_t SentBy(const TrainerFacts& trainer) {
  std::size_t sent = 0;
  for (const Transfer& send : trainer.sends)
    sent = std::max(sent, static_cast<std::size_t>(send.position) + 1);
  return sent;
}

// An estimate for reserving memory. Trainers share most ops, so only the first one counts.
std::size_t OpsToRun(const RoleFacts& facts) {
  std::size_t ops = facts.trainers.front().file->program.main().ops().size();
  for (const PserverFacts& pserver : facts.pservers) {
    const Program& program = pserver.file->program;
    for (int i = 0; i < program.block_count(); ++i) ops += program.block(i).ops().size();
  }
  return ops;
}

}  // namespace

std::vector<std::string_view> ResultsOf(const Program& program) {
  ViewSet read;
  for (const OpEntry& entry : program.main().ops()) {
    for (const Slot& slot : entry.op->inputs()) read.insert(slot.args.begin(), slot.args.end());
  }
  std::vector<std::string_view> results;
  for (const OpEntry& entry : program.main().ops()) {
    const OpRole role = entry.op->role();
    const bool loss = role == (OpRole::kForward | OpRole::kLoss);
    if (role != OpRole::kForward && !loss) continue;
    for (const Slot& slot : entry.op->outputs()) {
      for (const std::string& name : slot.args) {
        if (name == kEmptyVarName || (read.contains(name) && !loss)) continue;
        const Var* var = program.main().FindVar(name);
        if (var == nullptr || var->kind != VarKind::kStepScopes) results.push_back(name);
      }
    }
  }
  return results;
}

Composition::Composition(const RoleFacts& given, const OpRegistry& registry)
    : facts(given), ops(registry), table(registry, TrainersOf(given)) {
  if (facts.trainers.empty()) return;
  table.ReserveOps(OpsToRun(facts));
  RunLrBlocks();
  RunToSends();
  for (std::size_t i = 0; i < facts.pservers.size(); ++i) {
    const PserverFacts& pserver = facts.pservers[i];
    copies_.push_back(FetchedCopies(pserver));
    shared_.push_back(pserver.shared_block < 0 ? nullptr
                                               : std::make_unique<Evaluation>(pserver.file->program, ops,
                                                                              table, lr_blocks[i].get()));
  }
  for (const Transfer& send : facts.trainers.front().sends) {
    if (send.counts_steps || send.param.empty()) continue;
    for (std::size_t i = 0; i < send.pieces.size(); ++i) Update(send, i);
  }
  RunShared();
  for (Run& run : waiting_) End(std::move(run));
  waiting_.clear();
  RunFromReceives();
}

void Composition::RunToSends() {
  for (const TrainerFacts& trainer : facts.trainers) {
    auto run = std::make_unique<Evaluation>(trainer.file->program, ops, table);
    run->CountSteps(&counters);  // the trainer's own counters, if the user's program counts too
    const ViewSet added = AddedUp(trainer.file->program);
    for (const auto& [original, copies] : CopiesIn(trainer.startup)) {
      if (!added.contains(original)) continue;  // a copy of the user's, evaluated as it is
      for (const std::string_view copy : copies) {
        if (trainer.file->program.main().FindVar(copy) != nullptr) run->Set(copy, table.Leaf(original));
      }
    }
    for (const Lookup& lookup : trainer.lookups) {
      if (const Op* answer = AnswerTo(lookup, facts)) {
        run->AsksFor(*lookup.merge, {answer->InputName("W"), answer->GetOr<std::int64_t>("padding_idx", -1)});
      }
    }
    run->RunOps(0, SentBy(trainer));
    for (const Transfer& send : trainer.sends) {
      for (const Piece& piece : send.pieces) {
        arrivals_.emplace(Place(piece.pserver, piece.remote),
                          table.FromTrainer(trainer.trainer_id, run->Get(send.whole)));
      }
    }
    trainers.push_back(std::move(run));
  }
}

// The trainers' ops after their last send, with the updated values in what they receive.
void Composition::RunFromReceives() {
  for (std::size_t t = 0; t < trainers.size(); ++t) RunFromReceives(facts.trainers[t], *trainers[t]);
}

void Composition::RunFromReceives(const TrainerFacts& trainer, Evaluation& run) const {
  const auto& entries = trainer.file->program.main().ops();
  const auto update_tables = [&] {  // of which trainers request rows
    for (const auto& [param, updated] : slices) {
      if (!updated.front().update->by_id && !trainer.remote_tables.contains(param)) continue;
      if (const ExprId value = WholeOf(param); value != ExprId::kNone) run.Set(param, value);
    }
  };
  std::unordered_map<const Op*, const Transfer*> received;
  for (const Transfer& recv : trainer.recvs) {
    received[recv.op] = &recv;
    if (recv.cut_op != nullptr) received[recv.cut_op] = &recv;
  }
  if (trainer.send_barriers.empty()) update_tables();
  for (std::size_t i = SentBy(trainer); i < entries.size(); ++i) {
    const Op& op = *entries[i].op;
    if (!trainer.send_barriers.empty() && &op == trainer.send_barriers.front().op) update_tables();
    const auto recv = received.find(&op);
    if (recv == received.end() || !Receive(*recv->second, op, run)) run.RunOp(op);
  }
}

// Sets what a recv, or the op that joins what it receives, writes. False: nothing in the set updates it.
bool Composition::Receive(const Transfer& recv, const Op& op, Evaluation& run) const {
  const auto updated = slices.find(recv.param);
  if (updated == slices.end()) return false;
  const ArgList& written = op.Output("Out");
  const bool joins = &op == recv.cut_op || recv.cut == Cut::kAtRunTime;
  if (joins || recv.pieces.size() == 1) {
    const ExprId whole = WholeOf(recv.param);
    const bool in_order = recv.cut_op != &op || IsJoinOf(op, recv);
    if (whole == ExprId::kNone || written.size() != 1 || !in_order) return false;
    run.Set(written.front(), whole);
    return true;
  }
  for (const UpdatedSlice& slice : updated->second) {
    if (slice.index < recv.pieces.size()) run.Set(recv.pieces[slice.index].local, slice.value);
  }
  return true;
}

// The updated value of a parameter or table; kNone if nothing updates it, or its slices differently.
ExprId Composition::WholeOf(std::string_view param) const {
  const auto updated = slices.find(param);
  if (updated == slices.end() || updated->second.empty()) return ExprId::kNone;
  const ExprId value = updated->second.front().value;
  const bool alike = std::all_of(updated->second.begin(), updated->second.end(),
                                 [&](const UpdatedSlice& slice) { return slice.value == value; });
  return alike ? value : ExprId::kNone;
}

void Composition::RunLrBlocks() {
  for (const PserverFacts& pserver : facts.pservers) {
    const Program& program = pserver.file->program;
    auto run = std::make_unique<Evaluation>(program, ops, table);
    if (pserver.lr_block > 0 && pserver.lr_block < program.block_count()) {
      for (const OpEntry& entry : program.block(pserver.lr_block).ops()) {
        const auto inputs = entry.op->InputNames();
        // Includes counters of trainers without a program in the set, which no send mentions.
        const bool counted = std::any_of(inputs.begin(), inputs.end(),
                                         [&](const auto& name) { return pserver.counters.contains(name); });
        if (!counted) {
          run->RunOp(*entry.op);
          continue;
        }
        for (const std::string& name : entry.op->OutputNames()) {
          const std::string& counter = *counters.insert(name).first;  // outlives the evaluation
          run->Set(counter, StepLeaf(table, counter));
        }
      }
    }
    lr_blocks.push_back(std::move(run));
  }
}

// Sets arriving variables before the block runs: if gradients are merged, one per trainer; else that of any
// trainer.
void Composition::SetArrivals(const UpdateBlock& update, const PserverFacts& pserver, ExprId gradient,
                              Evaluation& block) {
  if (update.merge == nullptr) {
    for (const std::string_view name : update.consumes) block.Set(name, gradient);
    return;
  }
  // Fluid sums a table's gradients without dividing; another rule warns about it.
  const double scale = update.plain ? 1.0 / pserver.trainers : 1.0;
  for (std::size_t t = 0; t < update.merge_inputs.size(); ++t) {
    const std::string& name = update.merge_inputs[t];
    const auto arrived = arrivals_.find({pserver.address, name});
    const ExprId of =
        arrived != arrivals_.end() ? arrived->second : table.FromTrainer(static_cast<int>(t), gradient);
    block.Set(name, table.Linear({{of, scale}}));
  }
}

void Composition::Update(const Transfer& send, std::size_t index) {
  const Piece& piece = send.pieces[index];
  const UpdateBlock* update = piece.reader;
  if (update == nullptr || update->optimizer == nullptr) return;  // reported
  Run run = Begin(send, index, *piece.to, *update);
  if (piece.to->shared_block < 0) {
    End(std::move(run));
  } else {
    waiting_.push_back(std::move(run));
  }
}

Composition::Run Composition::Begin(const Transfer& send, std::size_t index, const PserverFacts& pserver,
                                    const UpdateBlock& update) {
  const auto server = static_cast<std::size_t>(&pserver - facts.pservers.data());
  const Evaluation* outer = shared_[server] != nullptr ? shared_[server].get() : lr_blocks[server].get();
  Run run{.slice = {.param = send.param, .index = index, .pserver = &pserver, .update = &update},
          .values = std::make_unique<Evaluation>(pserver.file->program, ops, table, outer)};
  Evaluation& block = *run.values;
  block.OfSlice(index, send.pieces.size());
  run.slice.gradient = trainers.front()->Get(send.whole);
  SetArrivals(update, pserver, run.slice.gradient, block);
  const ExprId before = table.Leaf(send.param);
  block.Set(update.param, before);
  if (const auto copies = copies_[server].find(update.param); copies != copies_[server].end()) {
    for (const std::string_view copy : copies->second) block.Set(copy, before);
  }
  if (update.merge_block != update.block) block.RunBlock(update.merge_block);
  return run;
}

// Runs the exchanges of measures; all pservers have measured by now.
void Composition::RunShared() {
  std::map<std::pair<std::string, std::string>, ExprId> measured;  // pserver, its variable
  for (const Run& run : waiting_) {
    const PserverFacts& pserver = *run.slice.pserver;
    Evaluation& shared = *shared_[static_cast<std::size_t>(&pserver - facts.pservers.data())];
    for (const OpEntry& entry : pserver.file->program.block(run.slice.update->merge_block).ops()) {
      for (const Slot& slot : entry.op->outputs()) {
        for (const std::string& name : slot.args) {
          const ExprId* value = run.values->Find(name);
          if (value == nullptr) continue;
          shared.Set(name, *value);
          measured[{pserver.address, name}] = *value;
        }
      }
    }
  }
  for (std::size_t p = 0; p < shared_.size(); ++p) {
    if (shared_[p] == nullptr) continue;
    const PserverFacts& pserver = facts.pservers[p];
    for (const OpEntry& entry : pserver.file->program.block(pserver.shared_block).ops()) {
      const Op& op = *entry.op;
      if (&op != pserver.exchange) {
        shared_[p]->RunOp(op);
        continue;
      }
      const roles::Names all = roles::ExchangeView(op).all();
      const roles::Names owners = roles::ExchangeView(op).owners();
      for (std::size_t i = 0; i < std::min(all.size(), owners.size()); ++i) {
        const auto value = measured.find({owners[i], all[i]});
        if (value != measured.end()) shared_[p]->Set(all[i], value->second);
      }
    }
  }
}

void Composition::End(Run run) {
  Evaluation& block = *run.values;
  UpdatedSlice& slice = run.slice;
  const UpdateBlock& update = *slice.update;
  const OpDef* def = ops.Find(update.optimizer->type());
  const std::string rate = def == nullptr || !def->optimizer() ? "LearningRate" : def->optimizer()->rate_slot;
  const std::vector<StateName> state = StateOf(slice, rate);
  for (const auto& [name, whole] : state) {
    if (name != whole && block.Find(name) == nullptr) block.Set(name, table.Leaf(whole));
  }
  SetSlices(slice, block);
  block.RunBlock(update.block);
  slice.value = block.Get(update.param);
  if (!update.optimizer->InputName(rate).empty()) slice.rate = block.Get(update.optimizer->InputName(rate));
  for (const auto& [name, whole] : state) slice.state.emplace_back(whole, block.Get(name));
  const Program& program = slice.pserver->file->program;
  for (const OpEntry& entry : program.block(update.block).ops()) {
    if (entry.op.get() == update.optimizer && !update.by_hand) continue;
    for (const Slot& slot : entry.op->outputs()) {
      for (const std::string& name : slot.args) {
        const Var* var = program.main().FindVar(name);
        if (var != nullptr && var->persistable && name != update.param) slice.kept[name] = block.Get(name);
      }
    }
  }
  slices[slice.param].push_back(std::move(slice));
}

// A variable that records its whole starts the step as its rows of the whole, whatever its name is.
void Composition::SetSlices(const UpdatedSlice& slice, Evaluation& block) {
  const Program& program = slice.pserver->file->program;
  for (const OpEntry& entry : program.block(slice.update->block).ops()) {
    for (const Slot& slot : entry.op->inputs()) {
      for (const std::string& name : slot.args) {
        const Var* var = program.main().FindVar(name);
        if (var == nullptr || !var->facts.slice || var->facts.slice->whole.empty()) continue;
        if (name != var->facts.slice->whole && block.Find(name) == nullptr)
          block.Set(name, table.Leaf(var->facts.slice->whole));
      }
    }
  }
}

// A second slice of a parameter on one pserver keeps its state under its own names. The argument at the same
// place in the first slice's update gives the parameter's name for it.
std::vector<Composition::StateName> Composition::StateOf(const UpdatedSlice& slice,
                                                         const std::string& rate) const {
  if (slice.update->by_hand) return {};
  const Op* first = slice.update->optimizer;
  if (const auto before = slices.find(slice.param); before != slices.end()) {
    for (const UpdatedSlice& other : before->second) {
      if (other.pserver != slice.pserver) continue;
      first = other.update->optimizer;
      break;
    }
  }
  std::vector<StateName> state;
  for (const Slot& slot : slice.update->optimizer->inputs()) {
    const ArgList& wholes = first->Input(slot.name);
    for (std::size_t i = 0; i < slot.args.size(); ++i) {
      const std::string& name = slot.args[i];
      if (name == slice.update->param || name == slice.update->grad || slot.name == rate) continue;
      state.emplace_back(name, i < wholes.size() ? wholes[i] : name);
    }
  }
  return state;
}

}  // namespace penstock::check
