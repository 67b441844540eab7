#include "transpiler/passes/spell/update_block.h"

#include <algorithm>
#include <utility>

#include "transpiler/passes/spell/slice_facts.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {
namespace {

template <typename Names>
void OwnNames(const Names& names, const ServerUpdate& update, UpdateSite& site) {
  for (const std::string& name : names)
    site.own[name] = plan::OwnName(*update.placement, update.at.slice, name);
}

}  // namespace

UpdateSite SiteOf(const plan::PlacementPlan& plan, const ServerUpdate& update) {
  const plan::ParamPlacement& placement = *update.placement;
  UpdateSite site{.trained = update.trained,
                  .param = plan::ParamPieceName(placement, update.at.slice),
                  .grad = plan::MergedGradName(placement, update.at.slice),
                  .whole = placement.shape,
                  .here = placement.ShapeOf(plan.slice(update.at)),
                  .describe = [&plan, at = update.at](const std::string& name, Var& state) {
                    RecordSlice(plan, at, name, state);
                  }};
  // Measures of slices need their own names, because servers exchange them.
  if (placement.sliced()) OwnNames(update.trained->measures, update, site);
  if (update.again) OwnNames(update.trained->written, update, site);
  return site;
}

UpdateBlocks::UpdateBlocks(Program& out, const PassContext& context)
    : out_(out), context_(context), names_(context, context.self.index) {}

Status UpdateBlocks::Add(const UpdateSite& site, int parent, std::string_view pass) {
  return AddBlock(site.trained->server_ops, site, parent, pass);
}

Status UpdateBlocks::AddMeasures(const UpdateSite& site, int parent, std::string_view pass) {
  return AddBlock(site.trained->measure_ops, site, parent, pass);
}

Status UpdateBlocks::AddBlock(const std::vector<OpId>& ops, const UpdateSite& site, int parent,
                              std::string_view pass) {
  const int index = out_.AddBlock(parent).index();
  for (const OpId id : ops) {
    const Op* op = context_.main.main().FindOp(id);
    if (op == nullptr) return PassError(pass, "an op of the analysis is gone");
    const bool optimizer = id == site.trained->optimizer && !site.trained->by_hand;
    Op copy = optimizer ? Optimizer(*op, site) : Beside(*op, site);
    // An op of the forward pass that the update needs becomes part of it.
    if (!Has(copy.role(), OpRole::kOptimize) && context_.plan.conventions().marks_ops_of_updates) {
      copy.SetRole(OpRole::kOptimize).SetRolePair(site.trained->param, site.trained->grad);
    }
    out_.MutableBlock(index).Append(std::move(copy.SetMadeBy(std::string(pass))));
  }
  return OkStatus();
}

Op UpdateBlocks::Mapped(const Op& op, const std::function<std::string(const std::string&, bool)>& rename) {
  Op copy = ServerCopy(op, context_.ops);
  const auto renamed = [&](ArgList args, bool written) {
    for (std::string& name : args) name = rename(name, written);
    return args;
  };
  for (const Slot& slot : op.inputs()) copy.AddInput(slot.name, renamed(slot.args, false));
  for (const Slot& slot : op.outputs()) copy.AddOutput(slot.name, renamed(slot.args, true));
  return copy;
}

std::string UpdateBlocks::Here(const std::string& name, const UpdateSite& site) const {
  if (name == site.trained->param) return site.param;
  if (name == site.trained->grad) return site.grad;
  const auto own = site.own.find(name);
  if (own != site.own.end()) return own->second;
  const std::string* held = names_.Held(name);
  return held != nullptr ? *held : name;
}

// Clipping, regularizers, and all other ops except the optimizer.
Op UpdateBlocks::Beside(const Op& op, const UpdateSite& site) {
  const std::vector<std::string> inputs = op.InputNames();
  const bool of_grad = std::any_of(inputs.begin(), inputs.end(), [&](const std::string& name) {
    return name == site.trained->grad || of_grad_.contains(name);
  });
  const bool of_rows = !of_grad && std::any_of(inputs.begin(), inputs.end(), [&](const std::string& name) {
    const Var* var = context_.main.main().FindVar(name);
    return of_rows_.contains(name) || (var != nullptr && var->kind == VarKind::kSelectedRows);
  });
  return Mapped(op, [&](const std::string& name, bool written) {
    std::string here = Here(name, site);
    if (written && of_grad) of_grad_.insert(name);
    if (written && of_rows) of_rows_.insert(name);
    if (out_.main().FindVar(here) == nullptr) {
      DeclareTemporary(name, here, site, written);
    } else if (written) {
      Reshape(here, site);
    }
    return here;
  });
}

// Gives an existing temporary that is written in place the shape of the held slice. (A temporary that is only
// read keeps its declaration, as in Fluid.)
void UpdateBlocks::Reshape(const std::string& here, const UpdateSite& site) {
  const Var& declared = *out_.main().FindVar(here);
  if (site.kind != VarKind::kTensor || declared.kind != VarKind::kTensor || site.whole == site.here) return;
  if (!declared.type || declared.type->shape != site.whole) return;
  Var shaped = declared;
  shaped.type->shape = site.here;
  out_.MutableBlock(0).SetVar(std::move(shaped));
}

Op UpdateBlocks::Optimizer(const Op& op, const UpdateSite& site) {
  return Mapped(op, [&](const std::string& name, bool) {
    std::string here = Here(name, site);
    if (out_.main().FindVar(here) == nullptr) DeclareState(name, here, site);
    return here;
  });
}

// Whether the temporary keeps the height of the whole, because it is computed from selected rows. Without a
// table, only Fluid 1.8.5 has such temporaries: it clips rows on the server that the trainer has not sent.
bool UpdateBlocks::KeepsHeight(const std::string& name, const UpdateSite& site) const {
  if (site.kind != VarKind::kTensor) return of_grad_.contains(name);
  return context_.plan.conventions().clips_unsent_rows && of_rows_.contains(name);
}

// A temporary that was shaped like the whole gets the shape and kind of what is held here. Selected rows of a
// gradient keep their row numbers, and therefore the height of the whole; in Fluid's programs their shape may
// be missing.
void UpdateBlocks::DeclareTemporary(const std::string& name, const std::string& here, const UpdateSite& site,
                                    bool written) {
  const Var* var = context_.main.main().FindVar(name);
  if (var == nullptr) return;
  Var copy = ServerCopy(*var);
  copy.name = here;
  if (copy.kind == VarKind::kSelectedRows && copy.type->shape.rank() == 0) copy.type->shape = site.whole;
  if (written && copy.type && copy.type->shape == site.whole) {
    if (!KeepsHeight(name, site)) copy.type->shape = site.here;
    if (site.kind != VarKind::kTensor) copy.kind = site.kind;
  }
  if (IsStateBeside(*var, site)) {
    copy.type->shape = site.here;
    if (site.describe) site.describe(name, copy);
  }
  out_.MutableBlock(0).SetVar(std::move(copy));
}

// Whether the variable is state of the parameter outside its optimizer, such as an average of its values.
bool UpdateBlocks::IsStateBeside(const Var& users, const UpdateSite& site) const {
  return context_.plan.conventions().cuts_state_of_other_ops && site.kind == VarKind::kTensor &&
         users.persistable && users.HasShape() && users.shape() == site.whole &&
         site.trained->written.contains(users.name);
}

void UpdateBlocks::DeclareState(const std::string& name, const std::string& here, const UpdateSite& site) {
  const Var* var = context_.main.main().FindVar(name);
  if (var == nullptr || !var->type) return;
  const bool rows = site.trained->row_state.contains(name);
  Var state = TensorVar(here, var->type->dtype, rows ? site.here : var->type->shape);
  state.persistable = var->persistable;
  if (rows) state.kind = site.kind;
  if (rows && site.describe) site.describe(name, state);
  if (!rows && here != name) RecordCopy(name, state.shape(), state);
  out_.MutableBlock(0).SetVar(std::move(state));
}

}  // namespace penstock::passes
