// Reads the pservers' side of a Job: for each optimize block the piece that it updates, its gradients and
// state.
#include <algorithm>

#include "framework/ir/mentions.h"
#include "framework/op/slices.h"
#include "transpiler/cost/job_parts.h"

namespace penstock::cost {
namespace {

using Names = std::set<std::string>;

class PserverReader {
 public:
  PserverReader(const OpRegistry& ops, const JobProgram& in, int index) : ops_(ops), in_(in) {
    out_.program = &in;
    index_ = index;
  }

  Result<JobPserver> Read() {
    const Op* op = roles::FindServe(in_.program->main());
    if (op == nullptr) return InvalidArgument("E-job-pserver", in_.file, ": no op listen_and_serv");
    const roles::ServeView serve(*op);
    out_.address = serve.address();
    out_.trainers = serve.trainers();
    if (out_.trainers < 1 || out_.trainers > 1'000'000) {
      return InvalidArgument("E-job-pserver", in_.file, ": listen_and_serv is made for ", out_.trainers,
                             " trainers");
    }
    out_.mode = serve.mode();
    std::vector<int> blocks;
    for (const BlockRef ref : serve.blocks()) {
      if (ref.index < 1 || ref.index >= in_.program->block_count()) {
        return InvalidArgument("E-job-block", in_.file, ": optimize block ", ref.index,
                               " does not exist; the program has ", in_.program->block_count(), " blocks");
      }
      if (ref.index != serve.lr_block()) blocks.push_back(ref.index);
    }
    const roles::ServerWiring wiring = roles::ReadWiring(
        ops_, *in_.program, out_.mode, blocks, roles::ArrivingAt(ops_, *in_.program, serve, blocks));
    if (wiring.exchange != nullptr) PENSTOCK_RETURN_IF_ERROR(ReadExchange(wiring));
    for (const roles::Update& update : wiring.updates) PENSTOCK_RETURN_IF_ERROR(ReadUpdate(update));
    AddOther();
    return std::move(out_);
  }

 private:
  // All variables of the update's gradient: received variables, inputs of the merge, and the gradient itself.
  Names GradientsOf(const roles::Update& update) const {
    Names names;
    const auto add = [&](std::string_view name) {
      if (name != update.param && in_.program->main().FindVar(name) != nullptr) names.emplace(name);
    };
    for (const std::string_view name : update.consumes) add(name);
    add(update.grad);
    if (update.merge_block != update.block) add(update.merged);
    return names;
  }

  Status ReadExchange(const roles::ServerWiring& wiring) {
    const roles::ExchangeView exchange(*wiring.exchange);
    JobTelling telling{.pserver = index_};
    for (const std::string& peer : exchange.peers()) {
      if (peer != out_.address) ++telling.peers;
    }
    for (const std::string& name : exchange.own()) {
      PENSTOCK_ASSIGN_OR_RETURN(
          const std::int64_t bytes,
          RequireJobBytes(in_, in_.program->FindVar(std::max(0, wiring.shared_block), name), name,
                          "what pservers tell each other"));
      AddBytes(telling.bytes, bytes);
    }
    out_.telling = telling;
    return OkStatus();
  }

  Status ReadUpdate(const roles::Update& update) {
    if (update.optimizer == nullptr) return OkStatus();  // an idle pserver has one empty block
    const int index = update.block;
    const std::string param(update.param);
    const std::optional<JobOptimizer> optimizer = ReadJobOptimizer(ops_, *update.optimizer);
    const Var* var = in_.program->FindVar(index, param);
    PENSTOCK_ASSIGN_OR_RETURN(const std::int64_t bytes,
                              RequireJobBytes(in_, var, param, "what an optimize block updates"));
    JobPiece piece{
        .name = param,
        .param = std::string(roles::LogicalRowsOf(*in_.program, index, param).whole),
        .pserver = index_,
        .dtype = var->type->dtype,
        .shape = var->shape(),
        .elementwise = (!optimizer || optimizer->elementwise) && !NeedsWhole(in_.program->block(index)),
        .value_bytes = bytes};
    const Names gradients = GradientsOf(update);
    for (const std::string& name : gradients) {
      const Var* gradient = in_.program->FindVar(index, name);
      piece.sparse = piece.sparse || gradient->kind == VarKind::kSelectedRows;
    }
    if (!piece.sparse) {
      PENSTOCK_ASSIGN_OR_RETURN(piece.gradient_bytes, Take(index, gradients));
    }
    taken_.insert(gradients.begin(), gradients.end());
    PENSTOCK_ASSIGN_OR_RETURN(piece.state_bytes,
                              Take(index, optimizer ? StateOf(index, *optimizer) : Names()));
    taken_.insert(piece.name);
    AddBytes(out_.memory.parameters, piece.value_bytes);
    AddBytes(out_.memory.gradients, piece.gradient_bytes);
    AddBytes(out_.memory.optimizer_state, piece.state_bytes);
    out_.pieces.push_back(std::move(piece));
    return OkStatus();
  }

  // Whether the pserver needs the gradient as a whole, for example to clip it by its norm.
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

  // The bytes of those that no earlier block has taken.
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
  Names taken_;  // variables that are counted already
};

}  // namespace

std::optional<JobOptimizer> ReadJobOptimizer(const OpRegistry& ops, const Op& op) {
  const auto slots = roles::FindOptimizerSlots(op, ops);
  if (!slots) return std::nullopt;
  JobOptimizer out{.state = {}, .elementwise = slots->elementwise};
  for (const Slot& slot : op.inputs()) {
    const std::string_view name = slot.name.str();
    if (name == slots->param || name == slots->grad || name == slots->rate) continue;
    out.state.insert(out.state.end(), slot.args.begin(), slot.args.end());
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
