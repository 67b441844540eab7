// Makes a pserver receive one gradient from each trainer, and begin each update, or the measuring before it,
// with their mean.
//
//   before  listen_and_serv(X=w@GRAD) ; block 1 { ... sgd(Grad=w@GRAD) }
//   after   listen_and_serv(X=[w@GRAD.trainer_0, w@GRAD.trainer_1])
//           block 1 { w@GRAD = sum(X=[both]) ; w@GRAD = scale(X=w@GRAD) {scale=0.5} ; ... sgd(Grad=w@GRAD) }
//
// Requires: ServeGradients ran.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/passes/spell/server_copy.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {
namespace {

constexpr char kMergeGradients[] = "merge_gradients";

NameList Received(const PassContext& context, plan::SliceRef ref) {
  NameList names;
  for (int trainer = 0; trainer < context.plan.trainers; ++trainer) {
    names.push_back(plan::ReceivedGradName(context.plan.param(ref), ref.slice, trainer));
  }
  return names;
}

// Inserts the sum and the scale at the start of the block.
void BeginWithMean(Block& block, const NameList& received, const std::string& merged) {
  const auto trainers = static_cast<double>(received.size());
  block.Insert(0,
               std::move(MakeScale(merged, static_cast<float>(1.0 / trainers)).SetMadeBy(kMergeGradients)));
  block.Insert(0, std::move(MakeSum(received, merged).SetMadeBy(kMergeGradients)));
}

}  // namespace

Result<Program> MergeGradients(const Program& in, const PassContext& context) {
  Program out = in;
  Block& globals = out.MutableBlock(0);
  if (globals.ops().empty() || !IsListenAndServ(*globals.ops().back().op)) {
    return PassError(kMergeGradients, "block 0 does not end with listen_and_serv");
  }
  NameList inputs;
  for (const plan::SliceRef ref : context.shares.SlicesOn(context.self.index)) {
    const plan::ParamPlacement& param = context.plan.param(ref);
    for (std::string& name : Received(context, ref)) {
      Var var = TensorVar(name, param.dtype, param.ShapeOf(context.plan.slice(ref)));
      if (param.sparse) var.kind = VarKind::kSelectedRows;
      globals.SetVar(std::move(var));
      inputs.push_back(std::move(name));
    }
  }
  Op serve = *globals.ops().back().op;
  globals.Replace(globals.ops().back().id, std::move(serve.AddInput("X", std::move(inputs))));

  const std::vector<ServerUpdate>& updates = context.shares.UpdatesOn(context.self.index);
  PENSTOCK_ASSIGN_OR_RETURN(const UpdateLayout layout, LayoutOf(kMergeGradients, out, updates));
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const plan::SliceRef ref = updates[i].at;
    BeginWithMean(out.MutableBlock(layout.merges[i]), Received(context, ref),
                  plan::MergedGradName(context.plan.param(ref), ref.slice));
  }
  return out;
}

}  // namespace penstock::passes
