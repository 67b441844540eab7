#include "transpiler/plan/server_clip.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "framework/op/slices.h"
#include "framework/text/describe.h"

namespace penstock::plan {
namespace {

constexpr char kRule[] = "E-plan-clip";

// The origin of a value of the clip ops.
struct Origin {
  int param = -1;      // the value has the rows of this parameter's gradient; -1: a shared value
  bool after = false;  // depends on a shared value
};

class ClipMover {
 public:
  ClipMover(const OpRegistry& ops, const Program& main, Analysis& analysis)
      : ops_(ops), program_(main), main_(main.main()), analysis_(analysis) {}

  Status Run() {
    FindGradients();
    works_.resize(analysis_.params.size());
    int position = -1;
    auto next = analysis_.clip_ops.begin();
    for (const OpEntry& entry : main_.ops()) {
      ++position;
      if (next == analysis_.clip_ops.end() || *next != entry.id) continue;
      ++next;
      Status read = Read(entry);
      if (!read.ok()) return AtOp(std::move(read), program_, 0, position, *entry.op);
    }
    for (std::size_t i = 0; i < works_.size(); ++i) PENSTOCK_RETURN_IF_ERROR(Finish(static_cast<int>(i)));
    analysis_.server_ops.insert(analysis_.server_ops.begin(), analysis_.clip_ops.begin(),
                                analysis_.clip_ops.end());
    analysis_.clip_ops.clear();
    return OkStatus();
  }

 private:
  // An op on one gradient.
  struct Step {
    OpId id = OpId::kNone;
    const Op* op = nullptr;
    bool after = false;
  };
  struct Work {
    std::string grad;  // as the backward pass computes it
    std::vector<Step> steps;
  };

  // The role pair of the backward op that completes a gradient gives the parameter.
  void FindGradients() {
    std::unordered_map<std::string, int> trained;
    for (const TrainedParam& param : analysis_.params) {
      trained.emplace(param.param, static_cast<int>(trained.size()));
    }
    for (const OpEntry& entry : main_.ops()) {
      if (!Has(entry.op->role(), OpRole::kBackward)) continue;
      for (const auto& [param, grad] : entry.op->RolePairs()) {
        if (const auto it = trained.find(param); it != trained.end()) gradients_[grad] = it->second;
      }
    }
  }

  TrainedParam& Param(int at) { return analysis_.params[static_cast<std::size_t>(at)]; }
  Work& WorkOf(int at) { return works_[static_cast<std::size_t>(at)]; }

  std::optional<Shape> ShapeOf(const std::string& name) const {
    const Var* var = main_.FindVar(name);
    return var != nullptr && var->HasShape() ? std::optional(var->shape()) : std::nullopt;
  }

  Result<Origin> OriginOf(const std::string& name) {
    if (const auto made = origins_.find(name); made != origins_.end()) return made->second;
    const auto gradient = gradients_.find(name);
    if (gradient == gradients_.end()) {
      return InvalidArgument(kRule, "plan: clip=global reads ", name, ", which is no parameter's gradient");
    }
    WorkOf(gradient->second).grad = name;
    return Origin{.param = gradient->second};
  }

  // The origin of the op's inputs: rows of one parameter's gradient, or shared values.
  Result<Origin> Inputs(const Op& op) {
    Origin of;
    for (const std::string& name : op.InputNames()) {
      PENSTOCK_ASSIGN_OR_RETURN(const Origin input, OriginOf(name));
      of.after |= input.after || input.param < 0;
      if (input.param < 0) continue;
      if (of.param >= 0 && of.param != input.param) {
        return InvalidArgument(kRule, "plan: clip=global cannot let ", op.type(), " mix the gradients of ",
                               Param(of.param).param, " and ", Param(input.param).param,
                               ", which pservers hold apart");
      }
      of.param = input.param;
    }
    return of;
  }

  Status Read(const OpEntry& entry) {
    const Op& op = *entry.op;
    PENSTOCK_ASSIGN_OR_RETURN(const Origin of, Inputs(op));
    if (of.param < 0) {
      analysis_.shared_clip_ops.push_back(entry.id);
      for (const std::string& name : op.OutputNames()) origins_[name] = Origin{};
      return OkStatus();
    }
    WorkOf(of.param).steps.push_back({.id = entry.id, .op = &op, .after = of.after});
    const OnSlices what = OnSlicesOf(op, of.param);
    TrainedParam& param = Param(of.param);
    if (what == OnSlices::kNeedsWhole) param.whole_gradient = true;
    const bool rows = what != OnSlices::kAddsUp && KeepsShape(op, of.param);
    for (const std::string& name : op.OutputNames()) origins_[name] = rows ? of : Origin{};
    if (rows) return OkStatus();
    if (of.after) {
      return InvalidArgument(kRule, "plan: clip=global exchanges measures of gradients once a step, and ",
                             op.type(), " measures what they have made of the gradient of ", param.param);
    }
    for (std::string& name : op.OutputNames()) param.measures.push_back(std::move(name));
    return OkStatus();
  }

  bool KeepsShape(const Op& op, int param) const {
    const auto whole = ShapeOf(analysis_.params[static_cast<std::size_t>(param)].param);
    const std::vector<std::string> outputs = op.OutputNames();
    return std::all_of(outputs.begin(), outputs.end(),
                       [&](const std::string& name) { return ShapeOf(name) == whole; });
  }

  // The op's result on slices. An elementwise op works by rows only if its inputs have the parameter's shape
  // or are single shared values.
  OnSlices OnSlicesOf(const Op& op, int param) {
    const OnSlices what = WhatOnSlices(ops_, op);
    if (what != OnSlices::kByRows) return what;
    const auto whole = ShapeOf(Param(param).param);
    for (const std::string& name : op.InputNames()) {
      const auto shape = ShapeOf(name);
      const auto made = origins_.find(name);
      const bool single = made != origins_.end() && made->second.param < 0;
      if (!shape || (single ? shape->Count() != Dim{1} : shape != whole)) return OnSlices::kNeedsWhole;
    }
    return KeepsShape(op, param) ? what : OnSlices::kNeedsWhole;
  }

  // Divides a parameter's ops into those that compute its measures and those that belong to its update.
  Status Finish(int at) {
    TrainedParam& param = Param(at);
    Work& work = WorkOf(at);
    if (work.steps.empty()) return RequireOwnGradient(at);
    std::set<std::string> needed(param.measures.begin(), param.measures.end());
    std::vector<OpId> measures, updates;
    for (auto step = work.steps.rbegin(); step != work.steps.rend(); ++step) {
      const std::vector<std::string> outputs = step->op->OutputNames();
      const bool measures_it =
          !step->after && std::any_of(outputs.begin(), outputs.end(),
                                      [&](const auto& name) { return needed.contains(name); });
      (measures_it ? measures : updates).push_back(step->id);
      if (!measures_it) continue;
      for (std::string& name : step->op->InputNames()) needed.insert(std::move(name));
    }
    param.measure_ops.assign(measures.rbegin(), measures.rend());
    param.server_ops.insert(param.server_ops.begin(), updates.rbegin(), updates.rend());
    param.reads_shared =
        std::any_of(work.steps.begin(), work.steps.end(), [](const Step& step) { return step.after; });
    PENSTOCK_RETURN_IF_ERROR(RequireOwnGradient(at));
    param.grad = work.grad;
    param.sparse = main_.FindVar(param.grad)->kind == VarKind::kSelectedRows;
    NoteWritten(param);
    return OkStatus();
  }

  // Requires that a parameter is updated by a value computed from its own gradient.
  Status RequireOwnGradient(int at) {
    const TrainedParam& param = Param(at);
    const auto made = origins_.find(param.grad);
    const auto gradient = gradients_.find(param.grad);
    const int of = made != origins_.end()         ? made->second.param
                   : gradient != gradients_.end() ? gradient->second
                                                  : at;
    if (of == at) return OkStatus();
    return InvalidArgument(kRule, "plan: clip=global updates ", param.param, " with ", param.grad,
                           ", which is not made of its own gradient alone");
  }

  void NoteWritten(TrainedParam& param) {
    param.written.clear();
    for (const auto* ids : {&param.measure_ops, &param.server_ops}) {
      for (const OpId id : *ids) {
        for (std::string& name : main_.FindOp(id)->OutputNames()) {
          if (name != param.param && name != param.grad) param.written.insert(std::move(name));
        }
      }
    }
  }

  const OpRegistry& ops_;
  const Program& program_;
  const Block& main_;
  Analysis& analysis_;
  std::unordered_map<std::string, int> gradients_;  // from gradient to position in analysis_.params
  std::unordered_map<std::string, Origin> origins_;
  std::vector<Work> works_;  // by position in analysis_.params
};

}  // namespace

Status MoveClipping(const OpRegistry& ops, const Program& main, Analysis& analysis) {
  return ClipMover(ops, main, analysis).Run();
}

Status RequireNoNormsOfTables(const Analysis& analysis) {
  for (const TrainedParam& param : analysis.params) {
    if (!param.distributed || !(param.whole_gradient || !param.measures.empty())) continue;
    return Unimplemented("E-plan-clip-table", "plan: clip=global cannot take the norm of table ", param.param,
                         ", whose rows are on all pservers; clip it by value, or with clip=local");
  }
  return OkStatus();
}

}  // namespace penstock::plan
