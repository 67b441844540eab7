// The pservers' side of a Job: per optimize block the piece that it updates, its gradients and its state.
#include <algorithm>

#include "framework/ir/mentions.h"
#include "framework/op/slices.h"
#include "transpiler/cost/job_parts.h"

namespace penstock::cost {
namespace {

using Names = std::set<std::string>;

// A rate is read by all optimizers of a server and is state of none.
constexpr char kFluidRateSlot[] = "LearningRate";

class PserverReader {
 public:
  PserverReader(const OpRegistry& ops, const JobProgram& in, int index) : ops_(ops), in_(in) {
    out_.program = &in;
    index_ = index;
  }

  Result<JobPserver> Read() {
    const Op* serve = nullptr;
    for (const OpEntry& entry : in_.program->main().ops()) {
      if (entry.op->type() == "listen_and_serv") serve = entry.op.get();
    }
    if (serve == nullptr) return InvalidArgument("E-job-pserver", in_.file, ": no op listen_and_serv");
    out_.address = serve->GetOr<std::string>("endpoint", "");
    out_.trainers = serve->GetOr<std::int32_t>("Fanin", 1);
    if (out_.trainers < 1 || out_.trainers > 1'000'000) {
      return InvalidArgument("E-job-pserver", in_.file, ": listen_and_serv is made for ", out_.trainers,
                             " trainers");
    }
    out_.mode = serve->GetOr<std::int32_t>("distributed_mode", 0);
    received_.insert(serve->Input("X").begin(), serve->Input("X").end());
    const auto lr_block = serve->GetOr<std::int32_t>("lr_decay_block_id", -1);
    const auto blocks = serve->GetOr<std::vector<BlockRef>>("optimize_blocks", {});
    for (const BlockRef ref : blocks) {
      if (ref.index < 1 || ref.index >= in_.program->block_count()) {
        return InvalidArgument("E-job-block", in_.file, ": optimize block ", ref.index,
                               " does not exist; the program has ", in_.program->block_count(), " blocks");
      }
      if (ref.index != lr_block) PENSTOCK_RETURN_IF_ERROR(ReadPrelude(ref.index));
    }
    for (const BlockRef ref : blocks) {
      if (ref.index != lr_block) PENSTOCK_RETURN_IF_ERROR(ReadBlock(ref.index));
    }
    AddOther();
    return std::move(out_);
  }

 private:
  // An optimizer; or, where trainers optimize themselves, a `sum` that adds what they send to its own first
  // input.
  std::optional<JobOptimizer> UpdateOf(const Block& block) const {
    for (const OpEntry& entry : block.ops()) {
      if (auto optimizer = ReadJobOptimizer(ops_, *entry.op)) return optimizer;
    }
    for (const OpEntry& entry : block.ops()) {
      const Op& op = *entry.op;
      const ArgList& x = op.Input("X");
      if (op.type() != "sum" || x.size() != 2 || op.OutputName("Out") != x[0]) continue;
      return JobOptimizer{.param = x[0], .grad = x[1], .state = {}, .elementwise = true};
    }
    return std::nullopt;
  }

  // What trainers send for the block, and what it becomes: received variables, the inputs of the merge, and
  // the gradient itself.
  Names GradientsOf(const Block& block, const JobOptimizer& update) const {
    Names names;
    bool merged = false;
    for (const OpEntry& entry : block.ops()) {
      const bool merges = !merged && entry.op->type() == "sum";
      for (const std::string& name : entry.op->InputNames()) {
        const Var* var = in_.program->main().FindVar(name);
        if (var == nullptr || name == update.param) continue;
        if (received_.contains(name) || name == update.grad || (merges && !var->persistable))
          names.insert(name);
      }
      merged = merged || merges;
    }
    return names;
  }

  // With those that came in before this block was run.
  Names AllGradientsOf(const Block& block, const JobOptimizer& update) const {
    Names names = GradientsOf(block, update);
    if (merged_in_.empty()) return names;
    for (const OpEntry& entry : block.ops()) {
      for (const std::string& name : entry.op->InputNames()) {
        const auto merged = merged_in_.find(name);
        if (merged == merged_in_.end()) continue;
        names.insert(merged->second.begin(), merged->second.end());
        names.insert(name);
      }
    }
    return names;
  }

  // A block that does not update: it merges a gradient for one that does, to measure it before, or tells
  // other pservers what was measured.
  Status ReadPrelude(int index) {
    const Block& block = in_.program->block(index);
    if (UpdateOf(block)) return OkStatus();
    const Names gradients = GradientsOf(block, {});
    for (const OpEntry& entry : block.ops()) {
      if (entry.op->type() == "exchange_sums") PENSTOCK_RETURN_IF_ERROR(ReadExchange(index, *entry.op));
      for (const std::string& name : entry.op->OutputNames()) {
        if (!gradients.empty()) merged_in_[name] = gradients;
      }
    }
    return OkStatus();
  }

  Status ReadExchange(int index, const Op& op) {
    JobTelling telling{.pserver = index_};
    for (const std::string& peer : op.GetOr<std::vector<std::string>>("endpoints", {})) {
      if (peer != out_.address) ++telling.peers;
    }
    for (const std::string& name : op.Input("X")) {
      PENSTOCK_ASSIGN_OR_RETURN(
          const std::int64_t bytes,
          RequireJobBytes(in_, in_.program->FindVar(index, name), name, "what pservers tell each other"));
      AddBytes(telling.bytes, bytes);
    }
    out_.telling = telling;
    return OkStatus();
  }

  Status ReadBlock(int index) {
    const Block& block = in_.program->block(index);
    const std::optional<JobOptimizer> update = UpdateOf(block);
    if (!update) return OkStatus();  // an idle pserver has one empty block
    const Var* var = in_.program->FindVar(index, update->param);
    PENSTOCK_ASSIGN_OR_RETURN(const std::int64_t bytes,
                              RequireJobBytes(in_, var, update->param, "what an optimize block updates"));
    JobPiece piece{.name = update->param,
                   .param = {},
                   .pserver = index_,
                   .dtype = var->type->dtype,
                   .shape = var->shape(),
                   .elementwise = update->elementwise && !NeedsWhole(block),
                   .value_bytes = bytes};
    if (var->facts.slice) piece.param = var->facts.slice->whole;
    if (piece.param.empty()) piece.param = ParamOf(block);
    const Names gradients = AllGradientsOf(block, *update);
    for (const std::string& name : gradients) {
      const Var* gradient = in_.program->FindVar(index, name);
      piece.sparse = piece.sparse || gradient->kind == VarKind::kSelectedRows;
    }
    if (!piece.sparse) {
      PENSTOCK_ASSIGN_OR_RETURN(piece.gradient_bytes, Take(index, gradients));
    }
    taken_.insert(gradients.begin(), gradients.end());
    PENSTOCK_ASSIGN_OR_RETURN(piece.state_bytes, Take(index, StateOf(index, *update)));
    taken_.insert(piece.name);
    AddBytes(out_.memory.parameters, piece.value_bytes);
    AddBytes(out_.memory.gradients, piece.gradient_bytes);
    AddBytes(out_.memory.optimizer_state, piece.state_bytes);
    out_.pieces.push_back(std::move(piece));
    return OkStatus();
  }

  // Whether the pserver works on the gradient as one, as it does to clip it by its norm.
  bool NeedsWhole(const Block& block) const {
    return std::any_of(block.ops().begin(), block.ops().end(), [&](const OpEntry& entry) {
      const Op& op = *entry.op;
      return ops_.Find(op.type()) != nullptr && !ReadJobOptimizer(ops_, op) &&
             WhatOnSlices(ops_, op) == OnSlices::kNeedsWhole;
    });
  }

  Names StateOf(int block, const JobOptimizer& update) const {
    Names names;
    for (const std::string& name : update.state) {
      const Var* var = in_.program->FindVar(block, name);
      if (var != nullptr && var->persistable) names.insert(name);
    }
    return names;
  }

  static std::string ParamOf(const Block& block) {
    for (const OpEntry& entry : block.ops()) {
      const auto pairs = entry.op->RolePairs();
      if (!pairs.empty()) return pairs.front().first;
    }
    return "";
  }

  // The bytes of those that no block before has taken.
  Result<std::int64_t> Take(int block, const Names& names) {
    std::int64_t sum = 0;
    for (const std::string& name : names) {
      if (!taken_.insert(name).second) continue;
      PENSTOCK_ASSIGN_OR_RETURN(
          const std::int64_t bytes,
          RequireJobBytes(in_, in_.program->FindVar(block, name), name, "what an optimize block reads"));
      AddBytes(sum, bytes);
    }
    return sum;
  }

  void AddOther() {
    for (int i = 0; i < in_.program->block_count(); ++i) {
      for (const VarRef& var : in_.program->block(i).vars()) {
        if (var->kind != VarKind::kTensor || !var->HasShape() || taken_.contains(var->name)) continue;
        AddBytes(out_.memory.other, JobBytes(var->type->dtype, var->shape()).value_or(0));
      }
    }
  }

  const OpRegistry& ops_;
  const JobProgram& in_;
  int index_ = 0;
  JobPserver out_;
  std::set<std::string, std::less<>> received_;
  Names taken_;  // variables that are counted already
  std::map<std::string, Names, std::less<>>
      merged_in_;  // what blocks without an update made, of which gradients
};

}  // namespace

std::optional<JobOptimizer> ReadJobOptimizer(const OpRegistry& ops, const Op& op) {
  JobOptimizer out;
  std::string param = "Param", grad = "Grad", rate = kFluidRateSlot;
  if (const OpDef* def = ops.Find(op.type())) {
    if (!def->optimizer()) return std::nullopt;
    param = def->optimizer()->param_slot;
    grad = def->optimizer()->grad_slot;
    rate = def->optimizer()->rate_slot;
    out.elementwise = def->optimizer()->elementwise;
  } else if (!op.HasInputSlot(param) || !op.HasInputSlot(grad) || !op.HasOutputSlot("ParamOut")) {
    return std::nullopt;
  }
  out.param = op.InputName(param);
  out.grad = op.InputName(grad);
  for (const Slot& slot : op.inputs()) {
    if (slot.name == param || slot.name == grad || slot.name == rate) continue;
    for (const std::string& name : slot.args) out.state.push_back(name);
  }
  return out;
}

Result<JobPserver> ReadJobPserver(const OpRegistry& ops, const JobProgram& program, int index) {
  return PserverReader(ops, program, index).Read();
}

JobServers::JobServers(const std::vector<JobPserver>& pservers) : pservers_(pservers) {
  for (const JobPserver& pserver : pservers) {
    by_address_.emplace(pserver.address, static_cast<int>(by_name_.size()));
    auto& names = by_name_.emplace_back();
    for (const JobPiece& piece : pserver.pieces) names.emplace(piece.name, &piece);
  }
}

int JobServers::Find(std::string_view address) const {
  const auto it = by_address_.find(address);
  return it == by_address_.end() ? -1 : it->second;
}

const JobPiece* JobServers::FindPiece(int pserver, std::string_view name) const {
  const auto& names = by_name_[static_cast<std::size_t>(pserver)];
  const auto it = names.find(name);
  return it == names.end() ? nullptr : it->second;
}

const JobPiece* JobServers::FindPieceReadWith(int pserver, std::string_view name) const {
  const Program& program = *pservers_[static_cast<std::size_t>(pserver)].program->program;
  for (int i = 1; i < program.block_count(); ++i) {
    for (const OpEntry& entry : program.block(i).ops()) {
      if (!Reads(*entry.op, name)) continue;
      for (const std::string& other : entry.op->InputNames()) {
        if (const JobPiece* piece = FindPiece(pserver, other)) return piece;
      }
    }
  }
  return nullptr;
}

}  // namespace penstock::cost
