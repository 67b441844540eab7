#include "transpiler/plan/update_cuts.h"

#include <algorithm>
#include <set>
#include <string>

#include "framework/base/view_map.h"
#include "framework/op/slices.h"

namespace penstock::plan {
namespace {

class CutFinder {
 public:
  CutFinder(const OpRegistry& ops, const Block& main, Analysis& analysis)
      : ops_(ops), main_(main), analysis_(analysis) {}

  void Run(Dialect dialect) {
    for (TrainedParam& param : analysis_.params) {
      const Var* var = main_.FindVar(param.param);
      if (var == nullptr || !var->HasShape()) continue;
      const bool cut = IsCut(var->shape(), param);
      param.chunkable = cut && IsMeasuredByRows(var->shape(), param);
      if (dialect == Dialect::kFluid18) continue;
      param.elementwise = param.elementwise && (param.sparse ? RowsMayBeCut(var->shape(), param) : cut);
      if (param.elementwise) NoteInputs(var->shape(), param);
    }
    KeepSharedWhole();
  }

 private:
  bool WorksByRows(OpId id, const Shape& whole) const {
    return penstock::WorksByRows(ops_, *main_.FindOp(id), whole,
                                 [&](const std::string& name) { return main_.FindVar(name); });
  }

  bool IsCut(const Shape& whole, const TrainedParam& param) const {
    return std::ranges::all_of(param.server_ops, [&](OpId id) { return WorksByRows(id, whole); });
  }

  bool IsMeasuredByRows(const Shape& whole, const TrainedParam& param) const {
    return std::ranges::all_of(param.measure_ops, [&](OpId id) { return WorksByRows(id, whole); });
  }

  // A gradient of selected rows, and what is computed from it, has rows of its own.
  bool RowsMayBeCut(const Shape& whole, const TrainedParam& param) const {
    ViewSet of_rows;
    of_rows.insert(param.grad);
    return std::ranges::all_of(param.server_ops, [&](OpId id) {
      const Op& op = *main_.FindOp(id);
      if (id == param.optimizer && !param.by_hand) return true;
      const bool reads = std::ranges::any_of(op.inputs(), [&](const Slot& slot) {
        return std::ranges::any_of(slot.args, [&](const auto& name) { return of_rows.contains(name); });
      });
      if (!reads) return WorksByRows(id, whole);
      for (const Slot& slot : op.outputs()) of_rows.insert(slot.args.begin(), slot.args.end());
      return true;
    });
  }

  // The optimizer's state is cut by its declaration.
  void NoteInputs(const Shape& whole, TrainedParam& param) {
    if (whole.Count() <= Dim{1}) return;
    for (const OpId id : param.server_ops) {
      if (id == param.optimizer && !param.by_hand) continue;
      for (const std::string& name : main_.FindOp(id)->InputNames()) {
        const Var* var = main_.FindVar(name);
        const bool beside = var != nullptr && var->persistable && var->kind == VarKind::kTensor &&
                            var->HasShape() && var->shape() == whole && name != param.param &&
                            name != param.grad;
        if (!beside || param.written.contains(name) || param.row_state.contains(name)) continue;
        readers_[var->name].push_back(&param);
      }
    }
  }

  void KeepSharedWhole() {
    for (const auto& [name, params] : readers_) {
      const bool shared =
          std::ranges::any_of(params, [&](const auto* param) { return param != params.front(); });
      for (TrainedParam* param : params) {
        if (shared) param->elementwise = param->chunkable = false;
        if (!shared) param->written.insert(std::string(name));
      }
    }
  }

  const OpRegistry& ops_;
  const Block& main_;
  Analysis& analysis_;
  ViewMap<std::vector<TrainedParam*>> readers_;  // of variables that updates only read
};

}  // namespace

void FindCuts(const OpRegistry& ops, const Block& main, Dialect dialect, Analysis& analysis) {
  CutFinder(ops, main, analysis).Run(dialect);
}

}  // namespace penstock::plan
