// Each parameter is updated exactly once a step, from the merged gradients of all trainers.
#include <algorithm>
#include <cmath>

#include "framework/text/printer.h"
#include "transpiler/check/facts.h"

namespace penstock {
namespace {

constexpr int kSync = 0;
constexpr int kGeo = 3;  // servers add deltas: no optimizer, no merge
constexpr float kScaleTolerance = 1e-6f;

class UpdateRules {
 public:
  UpdateRules(const RoleFacts& facts, std::vector<Finding>& findings) : facts_(facts), findings_(findings) {}

  void Run() {
    for (const PserverFacts& pserver : facts_.pservers) {
      pserver_ = &pserver;
      for (const UpdateBlock& update : pserver.updates) CheckBlock(update);
      CheckOnce();
      CheckAllMerged();
    }
    for (const TrainerFacts& trainer : facts_.trainers) {
      CheckFetchedAreUpdated(trainer);
      CheckTrained(trainer);
    }
  }

 private:
  void Error(std::string id, const RoleProgram& file, std::string message, const Op* op) {
    findings_.push_back(MakeFinding(Severity::kError, std::move(id), file, std::move(message), op));
  }

  bool Writes(int block, const std::string& name) const {
    for (const OpEntry& entry : pserver_->file->program.block(block).ops()) {
      const auto outputs = entry.op->OutputNames();
      if (std::find(outputs.begin(), outputs.end(), name) != outputs.end()) return true;
    }
    return false;
  }

  void CheckBlock(const UpdateBlock& update) {
    if (pserver_->mode == kGeo) return;
    const RoleProgram& file = *pserver_->file;
    if (update.optimizer == nullptr && pserver_->received.empty() &&
        file.program.block(update.block).ops().empty()) {
      findings_.push_back(
          MakeFinding(Severity::kWarning, "W-check-idle", file,
                      StrCat(pserver_->address, " holds no parameter: there are more pservers than slices"),
                      pserver_->serve));
      return;
    }
    if (update.optimizer == nullptr) {
      Error("E-check-no-update", file,
            StrCat("optimize block ", update.block, " has no optimizer: nothing is trained"),
            pserver_->serve);
      return;
    }
    if (pserver_->mode == kSync) CheckMerge(update);
    const bool arrives = std::find(pserver_->received.begin(), pserver_->received.end(), update.grad) !=
                         pserver_->received.end();
    if (!arrives && !Writes(update.block, update.grad)) {
      Error("E-check-grad-source", file,
            StrCat("block ", update.block, " updates ", update.param, " with ", update.grad,
                   ", which nothing sends and the block does not compute"),
            update.optimizer);
    }
    const Var* param = file.program.FindVar(update.block, update.param);
    const Var* grad = file.program.FindVar(update.block, update.grad);
    if (param != nullptr && grad != nullptr && param->type && grad->type &&
        !Compatible(param->shape(), grad->shape())) {
      Error("E-check-update-shape", file,
            StrCat(update.param, " is ", PrintVarType(*param), ", its gradient ", update.grad, " is ",
                   PrintVarType(*grad)),
            update.optimizer);
    }
  }

  void CheckMerge(const UpdateBlock& update) {
    const RoleProgram& file = *pserver_->file;
    if (update.merge == nullptr) {
      Error("E-check-merge", file, StrCat("block ", update.block, " merges no gradients of trainers"),
            update.optimizer);
      return;
    }
    if (static_cast<int>(update.merge_inputs.size()) != pserver_->trainers) {
      Error("E-check-merge", file,
            StrCat("block ", update.block, " merges ", update.merge_inputs.size(), " gradients; there are ",
                   pserver_->trainers, " trainers"),
            update.merge);
    }
    const std::set<std::string> distinct(update.merge_inputs.begin(), update.merge_inputs.end());
    if (distinct.size() != update.merge_inputs.size()) {
      Error("E-check-merge", file, StrCat("block ", update.block, " merges one gradient twice"),
            update.merge);
    }
    const float expected = 1.0f / static_cast<float>(pserver_->trainers);
    const float scale = update.scale.value_or(1.0f);
    if (std::abs(scale - expected) > kScaleTolerance) {
      Error("E-check-merge-scale", file,
            StrCat("block ", update.block, " scales the sum of the gradients by ", scale, "; the mean of ",
                   pserver_->trainers, " trainers needs ", expected),
            update.scale_op != nullptr ? update.scale_op : update.merge);
    }
  }

  // No parameter and no other persistable variable is written by two optimize blocks.
  void CheckOnce() {
    std::map<std::string, int> writer;
    for (const UpdateBlock& update : pserver_->updates) {
      std::set<std::string> written;
      for (const OpEntry& entry : pserver_->file->program.block(update.block).ops()) {
        for (const std::string& name : entry.op->OutputNames()) written.insert(name);
      }
      for (const std::string& name : written) {
        const Var* var = pserver_->file->program.main().FindVar(name);
        if (var == nullptr || !var->persistable) continue;
        const auto [it, first] = writer.emplace(name, update.block);
        if (first) continue;
        Error("E-check-updated-twice", *pserver_->file,
              StrCat(name, " is written by optimize block ", it->second, " and by block ", update.block),
              update.optimizer);
      }
    }
  }

  void CheckAllMerged() {
    if (pserver_->mode != kSync) return;
    std::set<std::string> merged;
    for (const UpdateBlock& update : pserver_->updates) {
      merged.insert(update.merge_inputs.begin(), update.merge_inputs.end());
    }
    for (const std::string& name : pserver_->received) {
      if (merged.contains(name)) continue;
      Error("E-check-not-merged", *pserver_->file,
            StrCat("receives ", name, ", but no optimize block merges it"), pserver_->serve);
    }
  }

  void CheckFetchedAreUpdated(const TrainerFacts& trainer) {
    for (const Message& message : trainer.recvs) {
      const PserverFacts* pserver = facts_.FindPserver(message.pserver);
      if (pserver == nullptr || pserver->mode == kGeo) continue;
      const bool updated =
          std::any_of(pserver->updates.begin(), pserver->updates.end(),
                      [&](const UpdateBlock& update) { return update.param == message.remote; });
      if (updated) continue;
      Error("E-check-not-updated", *trainer.file,
            StrCat("receives ", message.remote, " from ", message.pserver,
                   ", where no optimize block updates it"),
            message.op);
    }
  }

  // A parameter whose gradient is computed is sent somewhere or updated on the trainer.
  void CheckTrained(const TrainerFacts& trainer) {
    std::set<std::string> trained(trainer.updated_here);
    for (const Message& message : trainer.sends) trained.insert(message.param);
    for (const auto& [param, op] : trainer.gradients) {
      if (trained.contains(param)) continue;
      Error("E-check-untrained", *trainer.file,
            StrCat("the gradient of ", param, " is computed, but neither sent nor used here"), op);
    }
  }

  const RoleFacts& facts_;
  std::vector<Finding>& findings_;
  const PserverFacts* pserver_ = nullptr;
};

}  // namespace

void CheckUpdates(const RoleFacts& facts, std::vector<Finding>& findings) {
  UpdateRules(facts, findings).Run();
}

}  // namespace penstock
