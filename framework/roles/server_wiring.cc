#include "framework/roles/server_wiring.h"

#include <algorithm>

namespace penstock::roles {
namespace {

// Reads one optimize block in the order of its ops.
class UpdateReader {
 public:
  UpdateReader(const ViewSet& arriving, const OpRegistry& ops, Update& update)
      : arriving_(arriving), ops_(ops), update_(update) {}

  void Read(const Op& op) {
    const bool fresh = NoteConsumed(op);
    if (update_.merge == nullptr && op.type() == "sum" && !Has(op.role(), OpRole::kOptimize) && fresh) {
      update_.merge = &op;
      update_.merge_inputs = op.Input("X");
      update_.merged = op.OutputName("Out");
      // The merge consumes all its inputs, including gradients of trainers whose programs are unknown.
      update_.consumes.assign(update_.merge_inputs.begin(), update_.merge_inputs.end());
      in_merge_ = true;
    } else if (in_merge_ && op.type() == "scale" && !Has(op.role(), OpRole::kOptimize) &&
               op.InputName("X") == update_.merged && op.OutputName("Out") == update_.merged) {
      update_.scales.push_back(&op);
    } else {
      in_merge_ = false;
    }
    if (const auto slots = FindOptimizerSlots(op, ops_)) {
      update_.optimizers.push_back(&op);
      if (update_.optimizer == nullptr) {
        update_.optimizer = &op;
        update_.param = op.InputName(slots->param);
        update_.grad = op.InputName(slots->grad);
      }
    }
    for (const Slot& slot : op.outputs()) written_.insert(slot.args.begin(), slot.args.end());
  }

 private:
  // Records the arriving variables that the op reads before this block writes them. Returns whether it reads
  // any.
  bool NoteConsumed(const Op& op) {
    bool any = false;
    for (const Slot& slot : op.inputs()) {
      for (const std::string& name : slot.args) {
        if (written_.contains(name) || !arriving_.contains(name)) continue;
        any = true;
        auto& consumes = update_.consumes;
        if (std::find(consumes.begin(), consumes.end(), name) == consumes.end()) consumes.emplace_back(name);
      }
    }
    return any;
  }

  const ViewSet& arriving_;
  const OpRegistry& ops_;
  Update& update_;
  ViewSet written_;
  bool in_merge_ = false;
};

// Whether an op of the optimize role writes a piece of the parameter that its role pair names; returns the
// piece's name, or an empty name.
std::string_view WrittenPiece(const Program& program, int block, const Op& op) {
  if (!Has(op.role(), OpRole::kOptimize)) return {};
  const std::string_view param = PairOf(op).param;
  if (param.empty()) return {};
  for (const Slot& slot : op.outputs()) {
    for (const std::string& name : slot.args) {
      if (name == param) return name;
      const Var* var = program.FindVar(block, name);
      if (var != nullptr && var->facts.slice && var->facts.slice->whole == param) return name;
    }
  }
  return {};
}

// Reads a block that updates a parameter without an optimizer op, by ops that the user wrote.
void ReadByHand(const Program& program, Update& update) {
  if (update.optimizer != nullptr || update.consumes.empty()) return;
  for (const OpEntry& entry : program.block(update.block).ops()) {
    const std::string_view piece = WrittenPiece(program, update.block, *entry.op);
    if (piece.empty()) continue;
    update.optimizer = entry.op.get();
    update.param = piece;
  }
  if (update.optimizer == nullptr) return;
  update.by_hand = true;
  update.optimizers = {update.optimizer};
  update.grad = update.merge != nullptr ? update.merged : update.consumes.front();
}

// Geo-SGD: reads a block that is P = sum(P, delta), where the delta arrives.
void ReadDelta(const Program& program, Update& update) {
  const auto& ops = program.block(update.block).ops();
  if (ops.size() != 1 || ops.front().op->type() != "sum") return;
  const Op& op = *ops.front().op;
  const auto& inputs = op.Input("X");
  const std::string& out = op.OutputName("Out");
  if (inputs.size() != 2 || std::count(inputs.begin(), inputs.end(), out) != 1) return;
  update.consumes = {inputs[inputs.front() == out ? 1 : 0]};
  update.delta = true;
  update.merge = nullptr;
  update.merge_inputs = {};
  update.merged = {};
  update.optimizer = &op;
  update.optimizers = {&op};
  update.param = out;
  update.grad = update.consumes.front();
}

// Finds the blocks without an optimizer that run before the updates. A block that measures an arriving
// gradient belongs to the update that reads the merged gradient. A block that receives nothing computes for
// all updates.
class PreludeFinder {
 public:
  PreludeFinder(const Program& program, ServerWiring& wiring) : program_(program), wiring_(wiring) {}

  void Find() {
    const auto may_be = [&](const Update& block) {
      return block.optimizer == nullptr && !program_.block(block.block).ops().empty();
    };
    if (std::none_of(wiring_.updates.begin(), wiring_.updates.end(), may_be)) return;
    NoteReaders();
    for (const Update& block : wiring_.updates) {
      if (block.optimizer != nullptr) continue;
      if (block.consumes.empty() ? IsShared(block) : JoinsUpdate(block))
        wiring_.preludes.push_back(block.block);
    }
    std::erase_if(wiring_.updates, [&](const Update& block) {
      return std::find(wiring_.preludes.begin(), wiring_.preludes.end(), block.block) !=
             wiring_.preludes.end();
    });
  }

 private:
  void NoteReaders() {
    for (Update& update : wiring_.updates) {
      for (const OpEntry& entry : program_.block(update.block).ops()) {
        if (CommOf(*entry.op) == Comm::kExchange) wiring_.exchange = entry.op.get();
        if (update.optimizer == nullptr) continue;
        for (const Slot& slot : entry.op->inputs()) {
          for (const std::string& name : slot.args) readers_.try_emplace(name, &update);
        }
      }
    }
  }

  bool IsShared(const Update& block) {
    for (const OpEntry& entry : program_.block(block.block).ops()) {
      const auto& outputs = entry.op->outputs();
      const bool read = std::any_of(outputs.begin(), outputs.end(), [&](const Slot& slot) {
        return std::any_of(slot.args.begin(), slot.args.end(),
                           [&](const std::string& name) { return readers_.contains(name); });
      });
      if (read && wiring_.shared_block < 0) wiring_.shared_block = block.block;
    }
    return wiring_.shared_block == block.block;
  }

  bool JoinsUpdate(const Update& block) const {
    const std::string_view merged = block.merge != nullptr ? block.merged : block.consumes.front();
    const auto reader = readers_.find(merged);
    if (reader == readers_.end()) return false;
    Update& update = *reader->second;
    // The update may seem to receive the merged gradient, if listen_and_serv maps its name to a block.
    if (!update.consumes.empty() && update.consumes != std::vector{merged}) return false;
    update.merge_block = block.block;
    update.consumes = block.consumes;
    update.merge_inputs = block.merge_inputs;
    update.merge = block.merge;
    update.merged = block.merged;
    update.scales = block.scales;
    return true;
  }

  const Program& program_;
  ServerWiring& wiring_;
  ViewMap<Update*> readers_;  // per name, the first update that reads it
};

// A parameter that is selected rows is a shard of a table. listen_and_serv does not list its gradients. They
// are the selected rows that the block reads before it writes them and that are not the optimizer's state.
void AddTableGradients(const OpRegistry& ops, const Program& program, int block, ViewSet& arriving) {
  ViewSet kept, written;
  bool shard = false;
  for (const OpEntry& entry : program.block(block).ops()) {
    const auto slots = FindOptimizerSlots(*entry.op, ops);
    if (!slots || !IsRows(program, block, entry.op->InputName(slots->param))) continue;
    shard = true;
    for (const Slot& slot : entry.op->inputs()) {
      if (slot.name.str() != slots->grad) kept.insert(slot.args.begin(), slot.args.end());
    }
  }
  if (!shard) return;
  for (const OpEntry& entry : program.block(block).ops()) {
    for (const Slot& slot : entry.op->inputs()) {
      for (const std::string& name : slot.args) {
        if (IsRows(program, block, name) && !kept.contains(name) && !written.contains(name))
          arriving.insert(name);
      }
    }
    for (const Slot& slot : entry.op->outputs()) written.insert(slot.args.begin(), slot.args.end());
  }
}

}  // namespace

std::optional<OptimizerSlots> FindOptimizerSlots(const Op& op, const OpRegistry& ops) {
  if (!Has(op.role(), OpRole::kOptimize) && !op.HasInputSlot("Param")) return std::nullopt;
  const OpDef* def = ops.Find(op.type());
  if (def != nullptr) {
    if (!def->optimizer()) return std::nullopt;
    const OptimizerDef& slots = *def->optimizer();
    return OptimizerSlots{slots.param_slot, slots.grad_slot, slots.rate_slot, slots.elementwise};
  }
  const bool fluid = op.HasInputSlot("Param") && op.HasInputSlot("Grad") && op.HasOutputSlot("ParamOut");
  return fluid ? std::optional(OptimizerSlots{"Param", "Grad", "LearningRate"}) : std::nullopt;
}

ViewSet ArrivingAt(const OpRegistry& ops, const Program& program, const ServeView& serve,
                   std::span<const int> blocks) {
  ViewSet arriving(serve.received().begin(), serve.received().end());
  if (serve.mode() == ServeMode::kGeo) {
    for (const std::string& entry : serve.gradient_blocks()) {
      if (const auto named = ParseNamedBlock(entry)) arriving.insert(named->name);
    }
  }
  for (const int block : blocks) AddTableGradients(ops, program, block, arriving);
  return arriving;
}

ServerWiring ReadWiring(const OpRegistry& ops, const Program& program, ServeMode mode,
                        std::span<const int> blocks, const ViewSet& arriving) {
  ServerWiring wiring;
  for (const int block : blocks) {
    Update& update = wiring.updates.emplace_back();
    update.block = update.merge_block = block;
    UpdateReader reader(arriving, ops, update);
    for (const OpEntry& entry : program.block(block).ops()) reader.Read(*entry.op);
    if (mode == ServeMode::kGeo) ReadDelta(program, update);
    ReadByHand(program, update);
  }
  if (mode == ServeMode::kSync) PreludeFinder(program, wiring).Find();
  return wiring;
}

std::vector<std::string_view> ReadCounters(const Program& program, int lr_block, const ViewSet& arriving) {
  ViewSet counters, written;
  for (const OpEntry& entry : program.block(lr_block).ops()) {
    std::vector<std::string_view> counted;
    bool arrives = false;
    for (const Slot& slot : entry.op->inputs()) {
      for (const std::string& name : slot.args) {
        if (written.contains(name)) continue;
        counted.emplace_back(name);
        arrives |= arriving.contains(name);
      }
    }
    if (arrives) counters.insert(counted.begin(), counted.end());
    for (const Slot& slot : entry.op->outputs()) written.insert(slot.args.begin(), slot.args.end());
  }
  return {counters.begin(), counters.end()};
}

bool IsRows(const Program& program, int block, std::string_view name) {
  const Var* var = program.FindVar(block, name);
  return var != nullptr && var->kind == VarKind::kSelectedRows;
}

LogicalRows LogicalRowsOf(const Program& program, int block, std::string_view piece) {
  const Var* var = program.FindVar(block, piece);
  if (var != nullptr && var->facts.slice && !var->facts.slice->whole.empty())
    return {.whole = var->facts.slice->whole, .row_begin = var->facts.slice->row_begin};
  for (const OpEntry& entry : program.block(block).ops()) {
    const std::string_view whole = PairOf(*entry.op).param;
    if (whole.empty()) continue;
    return {.whole = whole, .row_begin = whole == piece ? std::optional<Dim>(0) : std::nullopt};
  }
  return {};
}

}  // namespace penstock::roles
