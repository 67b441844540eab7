// Each parameter is updated exactly once a step, by one complete optimizer, from the mean of all trainers'
// gradients.
#include <algorithm>

#include "framework/ir/mentions.h"
#include "framework/text/printer.h"
#include "transpiler/check/facts/facts.h"
#include "transpiler/check/facts/mean.h"
#include "transpiler/check/facts/rank_ops.h"

namespace penstock::check {
namespace {

class UpdateRules {
 public:
  UpdateRules(const RoleFacts& facts, const OpRegistry& ops, Findings& findings)
      : facts_(facts), ops_(ops), findings_(findings) {}

  void Run() {
    FindSliced();
    async_called_sync_ = facts_.async_called_sync();  // reported once, by the rules of barriers
    by_communicator_ = std::any_of(facts_.trainers.begin(), facts_.trainers.end(),
                                   [](const TrainerFacts& trainer) { return trainer.by_communicator; });
    for (const PserverFacts& pserver : facts_.pservers) {
      pserver_ = &pserver;
      for (const UpdateBlock& update : pserver.updates) CheckBlock(update);
      if (pserver.updates.empty() && !pserver.received.empty()) {
        Error("E-check-no-update",
              StrCat("waits for ", pserver.received.size(),
                     " gradients and has no optimize block: nothing is trained"),
              pserver.serve);
      }
      CheckOnce();
      CheckAllConsumed();
    }
    CheckOwners();
    for (const TrainerFacts& trainer : facts_.trainers) {
      if (!facts_.geo()) CheckFetchedAreUpdated(trainer);
      CheckTrained(trainer);
    }
  }

 private:
  void Error(std::string id, std::string message, const Op* op) {
    findings_.Error(std::move(id), *pserver_->file, std::move(message), op);
  }

  void CheckBlock(const UpdateBlock& update) {
    const bool empty = pserver_->file->program.block(update.block).ops().empty();
    if (update.optimizer == nullptr && empty && pserver_->received.empty() && pserver_->updates.size() == 1) {
      findings_.Warning("W-check-idle", *pserver_->file,
                        StrCat(pserver_->address, " holds no parameter: there are more pservers than slices"),
                        pserver_->serve);
      return;
    }
    if (update.optimizer == nullptr || (pserver_->mode == ServeMode::kGeo && !update.delta)) {
      Error("E-check-no-update",
            pserver_->mode == ServeMode::kGeo
                ? StrCat("block ", update.block, " does not add a trainer's change to a parameter")
                : StrCat("optimize block ", update.block, " has no optimizer: nothing is trained"),
            pserver_->serve);
      return;
    }
    if (update.optimizers.size() > 1) {
      Error("E-check-updated-twice",
            StrCat("block ", update.block, " has ", update.optimizers.size(), " optimizer ops; ",
                   update.param, " must be updated once a step"),
            update.optimizers[1]);
    }
    if (update.delta) return;
    const bool alone = pserver_->trainers == 1 && by_communicator_ && update.merge == nullptr;
    if (pserver_->mode == ServeMode::kSync && !alone && !async_called_sync_) {
      CheckMerge(update);
    } else if (update.merge != nullptr && update.merge_inputs.size() > 1) {
      Error("E-check-mode",
            StrCat("has distributed_mode ", static_cast<int>(pserver_->mode), ", but block ", update.block,
                   " merges the gradients of all trainers as in sync mode"),
            update.merge);
    }
    CheckGradient(update);
    CheckUpdate(update);
  }

  void CheckGradient(const UpdateBlock& update) {
    if (update.consumes.empty() || !DependsOnArriving(update)) {
      Error("E-check-grad-source",
            StrCat("block ", update.block, " updates ", update.param, " with ", update.grad,
                   ", which is not made of what trainers send"),
            update.optimizer);
    }
    const Var* param = update.param_var;
    const Var* grad = update.grad_var;
    if (param != nullptr && grad != nullptr && param->type && grad->type && param->kind == VarKind::kTensor &&
        !Compatible(param->shape(), grad->shape())) {
      Error("E-check-update-shape",
            StrCat(update.param, " is ", PrintVarType(*param), ", its gradient ", update.grad, " is ",
                   PrintVarType(*grad)),
            update.optimizer);
    }
    if (param != nullptr && grad != nullptr && param->type && grad->type &&
        param->type->dtype != grad->type->dtype) {
      Error("E-check-update-shape",
            StrCat(update.param, " holds ", DTypeName(param->type->dtype), ", its gradient ", update.grad,
                   " ", DTypeName(grad->type->dtype)),
            update.optimizer);
    }
  }

  // Whether the optimizer's gradient arrives, or is computed from an arriving variable by ops of its block.
  bool DependsOnArriving(const UpdateBlock& update) const {
    std::set<std::string_view> made(update.consumes.begin(), update.consumes.end());
    for (const int block : update.blocks()) {
      for (const OpEntry& entry : pserver_->file->program.block(block).ops()) {
        if (entry.op.get() == update.optimizer) return made.contains(update.grad);
        bool reads = false;
        for (const Slot& slot : entry.op->inputs()) {
          reads |= std::any_of(slot.args.begin(), slot.args.end(),
                               [&](const std::string& name) { return made.contains(name); });
        }
        for (const Slot& slot : entry.op->outputs()) {
          for (const std::string& name : slot.args) {
            if (reads) made.insert(name);
            if (!reads) made.erase(name);
          }
        }
      }
    }
    return false;
  }

  void CheckMerge(const UpdateBlock& update) {
    if (update.merge == nullptr) {
      Error("E-check-merge", StrCat("block ", update.block, " merges no gradients of trainers"),
            update.optimizer);
      return;
    }
    if (static_cast<int>(update.merge_inputs.size()) != pserver_->trainers) {
      Error("E-check-merge",
            StrCat("block ", update.block, " merges ", update.merge_inputs.size(), " gradients; there are ",
                   pserver_->trainers, " trainers"),
            update.merge);
    }
    const ViewSet distinct(update.merge_inputs.begin(), update.merge_inputs.end());
    if (distinct.size() != update.merge_inputs.size()) {
      Error("E-check-merge", StrCat("block ", update.block, " merges one gradient twice"), update.merge);
    }
    if (distinct.contains(update.merged)) {
      Error("E-check-merge",
            StrCat("block ", update.block, " merges ", update.merged, ", which is not a trainer's"),
            update.merge);
    }
    CheckMergedAlike(update);
    CheckScale(update);
  }

  // Includes trainers without a program in the set.
  void CheckMergedAlike(const UpdateBlock& update) {
    const std::vector<std::string_view> names(update.merge_inputs.begin(), update.merge_inputs.end());
    std::vector<const Var*> vars(names.size());
    pserver_->file->program.FindVars(0, names, vars);
    const Var* first = vars.empty() ? nullptr : vars.front();
    if (first == nullptr || !first->type) return;
    for (const Var* var : vars) {
      if (var == nullptr || !var->type ||
          (var->kind == first->kind && var->type->dtype == first->type->dtype &&
           Compatible(var->shape(), first->shape())))
        continue;
      Error("E-check-merge",
            StrCat("block ", update.block, " merges ", first->name, " : ", PrintVarType(*first), " with ",
                   var->name, " : ", PrintVarType(*var)),
            update.merge);
    }
  }

  void CheckScale(const UpdateBlock& update) {
    if (update.plain) {
      if (pserver_->trainers == 1) return;
      findings_.Warning("W-check-table-sum", *pserver_->file,
                        StrCat("block ", update.block, " adds the gradients of ", update.param,
                               " without dividing by the number of trainers: its learning rate is ",
                               pserver_->trainers, " times that of dense parameters"),
                        update.merge);
      return;
    }
    float scale = 1.0f;
    bool plain = true;
    for (const Op* op : update.scales) {
      scale *= op->GetOr<float>("scale", 1.0f);
      plain &= op->GetOr<float>("bias", 0.0f) == 0.0f && op->Input("ScaleTensor").empty();
    }
    const Op* op = update.scales.empty() ? update.merge : update.scales.front();
    if (!TakesMeanOf(scale, pserver_->trainers)) {
      Error("E-check-merge-scale",
            StrCat("block ", update.block, " scales the sum of the gradients by ", scale, "; the mean of ",
                   pserver_->trainers, " trainers needs ", 1.0f / static_cast<float>(pserver_->trainers)),
            op);
    }
    if (!plain) {
      Error("E-check-merge-scale",
            StrCat("block ", update.block,
                   " adds to the merged gradient, or scales it by a variable; the mean ", "needs neither"),
            op);
    }
  }

  void CheckUpdate(const UpdateBlock& update) {
    if (update.by_hand) return;
    const Op& op = *update.optimizer;
    CheckOptimizer(*pserver_->file, update.block, op, ops_, findings_);
    const OpDef* def = ops_.Find(op.type());
    if (def == nullptr || def->optimizer()->elementwise) return;
    if (!sliced_.contains({pserver_->address, update.param})) return;
    findings_.Warning(
        "W-check-norms", *pserver_->file,
        StrCat(op.type(), " needs the norm of a whole parameter, but ", update.param, " is a slice of one"),
        &op);
  }

  // The pieces of sliced parameters. All trainers slice alike, so the first one suffices.
  void FindSliced() {
    if (facts_.trainers.empty()) return;
    for (const Transfer& recv : facts_.trainers.front().recvs) {
      if (recv.pieces.size() < 2) continue;
      for (const Piece& piece : recv.pieces) sliced_.insert({piece.pserver, piece.remote});
    }
  }

  // No two blocks write the same parameter or other persistable variable.
  void CheckOnce() {
    ViewMap<int> writer;
    std::vector<std::pair<int, const Op*>> blocks;
    if (pserver_->lr_block > 0 && pserver_->lr_block < pserver_->file->program.block_count()) {
      blocks.emplace_back(pserver_->lr_block, pserver_->serve);
    }
    if (pserver_->shared_block > 0) blocks.emplace_back(pserver_->shared_block, pserver_->serve);
    for (const UpdateBlock& update : pserver_->updates) {
      for (const int block : update.blocks()) blocks.emplace_back(block, update.anchor(pserver_->serve));
    }
    for (const auto& [block, op] : blocks) {
      std::set<std::string_view> written;
      for (const OpEntry& entry : pserver_->file->program.block(block).ops()) {
        if (entry.op.get() == pserver_->exchange) continue;  // its outputs are values of other servers
        for (const Slot& slot : entry.op->outputs()) written.insert(slot.args.begin(), slot.args.end());
      }
      for (const std::string_view name : written) {
        const Var* var = pserver_->file->program.main().FindVar(name);
        if (var == nullptr || !var->persistable) continue;
        const auto [it, first] = writer.emplace(name, block);
        if (first) continue;
        Error("E-check-updated-twice",
              StrCat(name, " is written by optimize block ", it->second, " and by block ", block), op);
      }
    }
  }

  void CheckAllConsumed() {
    if (pserver_->mode == ServeMode::kGeo) return;
    ViewSet seen;
    for (const std::string& name : pserver_->received) {
      if (!seen.insert(name).second) {
        Error("E-check-not-merged", StrCat("lists ", name, " twice among what arrives"), pserver_->serve);
      }
      if (pserver_->ConsumerOf(name) != nullptr) continue;
      Error("E-check-not-merged", StrCat("receives ", name, ", but no optimize block reads it"),
            pserver_->serve);
    }
    for (const UpdateBlock& update : pserver_->updates) {
      if (update.by_id) continue;  // Fluid does not list what is sharded by id
      for (const std::string_view name : update.consumes) {
        if (seen.contains(name)) continue;
        Error("E-check-not-listed",
              StrCat("block ", update.block, " reads ", name,
                     ", which listen_and_serv does not list among what ", "arrives"),
              pserver_->serve);
      }
    }
  }

  // A slice has one pserver; a table sharded by id is on all of them.
  void CheckOwners() {
    ViewMap<const PserverFacts*> owner;
    for (const PserverFacts& pserver : facts_.pservers) {
      pserver_ = &pserver;
      for (const UpdateBlock& update : pserver.updates) {
        if (update.param.empty() || update.by_id) continue;
        const auto [it, first] = owner.emplace(update.param, &pserver);
        if (first || it->second == &pserver) continue;
        Error("E-check-two-owners",
              StrCat(update.param, " is updated at ", it->second->address, " and at ", pserver.address),
              update.optimizer);
      }
    }
    for (const PserverFacts& pserver : facts_.pservers) {
      if (pserver.startup == nullptr) continue;
      for (const OpEntry& entry : pserver.startup->program.main().ops()) {
        for (const Slot& slot : entry.op->outputs()) {
          for (const std::string& name : slot.args) {
            const auto it = owner.find(name);
            if (it == owner.end() || it->second == &pserver || pserver.UpdateOf(name) != nullptr) continue;
            const Var* var = pserver.startup->program.main().FindVar(name);
            if (var != nullptr && !var->persistable) continue;  // to compute the initial value of another
            findings_.Error(
                "E-check-two-owners", *pserver.startup,
                StrCat("gives an initial value to ", name, ", which ", it->second->address, " holds"),
                entry.op.get());
          }
        }
      }
    }
  }

  void CheckFetchedAreUpdated(const TrainerFacts& trainer) {
    for (const Transfer& recv : trainer.recvs) {
      for (const Piece& piece : recv.pieces) {
        const PserverFacts* pserver = facts_.FindPserver(piece.pserver);
        if (pserver == nullptr || pserver->UpdateOf(piece.remote) != nullptr) continue;
        findings_.Error("E-check-not-updated", *trainer.file,
                        StrCat("receives ", piece.remote, " from ", piece.pserver,
                               ", where no optimize block updates it"),
                        recv.op);
      }
    }
  }

  // A backward op writes the gradient that its role pair names.
  void CheckMadeGradients(const TrainerFacts& trainer, const Op& op) {
    const std::vector<Slot>& outputs = op.outputs();
    for (const auto& pair : op.RolePairs()) {
      const auto& [param, grad] = pair;
      const bool made = std::any_of(outputs.begin(), outputs.end(), [&](const Slot& slot) {
        return std::find(slot.args.begin(), slot.args.end(), pair.second) != slot.args.end();
      });
      if (made) continue;
      findings_.Error("E-check-pair", *trainer.file,
                      StrCat(op.type(), " says that it makes ", grad, ", the gradient of ", param,
                             ", but does not write it"),
                      &op);
    }
  }

  // An unknown op may write a parameter that a pserver updates; the next received value then overwrites it.
  void CheckStrangers(const TrainerFacts& trainer) {
    for (const OpEntry& entry : trainer.file->program.main().ops()) {
      const Op& op = *entry.op;
      if (!Has(op.role(), OpRole::kBackward) || ops_.Find(op.type()) != nullptr) continue;
      for (const Slot& slot : op.outputs()) {
        for (const std::string& name : slot.args) {
          if (trainer.FindSend(name) == nullptr) continue;
          findings_.Warning("W-check-overwritten", *trainer.file,
                            StrCat(op.type(), ", an op that nobody here knows, may write ", name,
                                   "; what it writes is lost: pservers update ", name, " by its gradient"),
                            &op);
        }
      }
    }
  }

  // The first op that reads the gradient of parameter `of`, other than to send or exchange it; null if none
  // does. Ops of another parameter's optimizer do not count.
  static const Op* ReaderOf(const TrainerFacts& trainer, const Op& made, std::string_view of) {
    for (const auto& [param, grad] : made.RolePairs()) {
      if (param != of) continue;
      for (const OpEntry& entry : trainer.file->program.main().ops()) {
        const Op& op = *entry.op;
        const bool moves = Has(op.role(), OpRole::kRpc) || Has(op.role(), OpRole::kDist) || IsCollective(op);
        if (&op == &made || moves || AwaitsStream(op) || !Reads(op, grad)) continue;
        const auto pairs = op.RolePairs();
        if (!Has(op.role(), OpRole::kOptimize) || (!pairs.empty() && pairs.front().first == of)) return &op;
      }
    }
    return nullptr;
  }

  // Ranks without pservers may leave the update to ops of the user's, or, if no optimizer updates anything,
  // to the user, who fetches the gradients.
  bool LeavesUpdateToUser(const Op* reader) const {
    if (!facts_.pservers.empty() || reader != nullptr) return facts_.pservers.empty();
    return std::all_of(facts_.trainers.begin(), facts_.trainers.end(),
                       [](const TrainerFacts& trainer) { return trainer.updated_here.empty(); });
  }

  // If a gradient is computed, the trainer either sends it or updates the parameter itself.
  void CheckTrained(const TrainerFacts& trainer) {
    ViewSet trained(trainer.updated_here.begin(), trainer.updated_here.end());
    for (const Transfer& send : trainer.sends) trained.insert(send.param);
    for (const auto& [param, op] : trainer.gradients) {
      CheckMadeGradients(trainer, *op);
      if (trained.contains(param)) continue;
      const Op* reader = ReaderOf(trainer, *op, param);
      if (LeavesUpdateToUser(reader)) continue;
      findings_.Error("E-check-untrained", *trainer.file,
                      reader == nullptr
                          ? StrCat("the gradient of ", param, " is computed, but neither sent nor used here")
                          : StrCat("the gradient of ", param, " is computed and read by ", reader->type(),
                                   ", but not sent, and no optimizer updates ", param, " here"),
                      op);
    }
    CheckStrangers(trainer);
    for (const std::string_view param : trainer.updated_here) {
      const Transfer* send = trainer.FindSend(param);
      if (send == nullptr) continue;
      findings_.Error("E-check-updated-twice", *trainer.file,
                      StrCat(param, " is updated by this trainer, and by a pserver that gets its gradient"),
                      send->op);
    }
  }

  const RoleFacts& facts_;
  const OpRegistry& ops_;
  Findings& findings_;
  const PserverFacts* pserver_ = nullptr;
  bool by_communicator_ = false;
  bool async_called_sync_ = false;
  PlaceSet sliced_;
};

}  // namespace

void CheckUpdates(const RoleFacts& facts, const OpRegistry& ops, Findings& findings) {
  UpdateRules(facts, ops, findings).Run();
}

}  // namespace penstock::check
