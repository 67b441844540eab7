// Corrects each gradient for the change of the parameter since the sending trainer fetched it:
// g + lambda * g * g * (w - w_then), elementwise. Source: DC-ASGD (Zheng et al., Asynchronous Stochastic
// Gradient Descent with Delay Compensation, 2017).
//
//   plan    {dc_asgd_lambda=0.5}; w whole on pserver 0
//   before  block 1 { sgd(Param=w, Grad=w@GRAD) }
//   after   block 1 { w.local_bak = ref_by_trainer_id(X=[w.trainer_0_bak, w.trainer_1_bak],
//                                                     TrainerId=@TRAINER_ID@)
//                     tmp_dc_output_0 = elementwise_sub(X=w, Y=w.local_bak)
//                     tmp_dc_output_1 = elementwise_mul(X=tmp_dc_output_0, Y=w@GRAD)
//                     tmp_dc_output_2 = elementwise_mul(X=tmp_dc_output_1, Y=w@GRAD)
//                     tmp_dc_output_2 = scale(X=tmp_dc_output_2) {scale=0.5}        omitted if lambda is 1
//                     tmp_dc_output_3 = elementwise_add(X=w@GRAD, Y=tmp_dc_output_2)
//                     sgd(Param=w, Grad=tmp_dc_output_3) }
//
// The server updates w.trainer_i_bak whenever trainer i fetches w. Regularizers run before the correction.
// Requires: ServeGradients ran, and no pass has added blocks since.
#include <algorithm>

#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/passes/spell/pieces.h"
#include "transpiler/passes/spell/server_copy.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {
namespace {

constexpr char kCompensateGradients[] = "compensate_gradients";
constexpr char kTrainerId[] = "@TRAINER_ID@";  // the server sets it to the sender of the gradient

// The ops of one update block.
class Compensation {
 public:
  Compensation(BlockEdit& block, OpId optimizer, const plan::ParamPlacement& param, const Shape& shape)
      : block_(block), optimizer_(optimizer), dtype_(param.dtype), shape_(shape) {}

  std::string Declare(std::string name) {
    block_.SetVar(TensorVar(name, dtype_, shape_));
    return name;
  }
  void Add(Op op) { block_.InsertBefore(optimizer_, std::move(op.SetMadeBy(kCompensateGradients))); }

  // `temporary` counts across the programs of all pservers, as Fluid's names do.
  std::string Compute(std::string_view op, const std::string& x, const std::string& y, int& temporary) {
    std::string out = Declare(StrCat("tmp_dc_output_", temporary++));
    Add(MakeElementwise(op, x, y, out));
    return out;
  }

 private:
  BlockEdit& block_;
  OpId optimizer_;
  DType dtype_;
  const Shape& shape_;
};

// The number that the first temporary has if one process makes the programs of all pservers in order.
int FirstTemporary(const PassContext& context) {
  constexpr int kPerUpdate = 4;
  int before = 0;
  for (int i = 0; i < context.self.index; ++i) before += static_cast<int>(context.shares.UpdatesOn(i).size());
  return kPerUpdate * before;
}

// The copy of the optimizer op. The block has one op for each op of the update, in the same order.
const OpEntry& OptimizerIn(const Block& block, const plan::TrainedParam& trained) {
  const auto at = std::find(trained.server_ops.begin(), trained.server_ops.end(), trained.optimizer);
  return block.ops().at(static_cast<std::size_t>(at - trained.server_ops.begin()));
}

void ReplaceInput(Op& op, const std::string& from, const std::string& to) {
  const std::vector<Slot> inputs = op.inputs();
  for (Slot slot : inputs) {
    std::replace(slot.args.begin(), slot.args.end(), from, to);
    op.AddInput(slot.name, std::move(slot.args));
  }
}

// Declares backups of all held slices, including those that compat does not update.
Status DeclareBackups(const PassContext& context, BlockEdit& main) {
  for (const plan::SliceRef ref : context.shares.SlicesOn(context.self.index)) {
    const plan::ParamPlacement& param = context.plan.param(ref);
    for (int trainer = 0; trainer < context.plan.trainers; ++trainer) {
      const std::string backup = plan::BackupName(plan::ParamPieceName(param, ref.slice), trainer);
      PENSTOCK_RETURN_IF_ERROR(RequireFreeName(context.main, param.param, backup));
      main.SetVar(TensorVar(backup, param.dtype, param.ShapeOf(context.plan.slice(ref))));
    }
  }
  return OkStatus();
}

}  // namespace

Result<Program> CompensateGradients(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  const std::vector<ServerUpdate>& updates = context.shares.UpdatesOn(context.self.index);
  PENSTOCK_ASSIGN_OR_RETURN(const UpdateLayout layout, LayoutOf(kCompensateGradients, in, updates));
  int temporary = FirstTemporary(context);
  PENSTOCK_RETURN_IF_ERROR(DeclareBackups(context, edit.main()));
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const plan::ParamPlacement& param = *updates[i].placement;
    if (param.sparse) {
      return InvalidArgument("E-plan-dc-asgd", "plan: enable_dc_asgd=true needs dense gradients; that of ",
                             param.param, " is sparse");
    }
    if (updates[i].trained->by_hand) {
      return InvalidArgument("E-plan-dc-asgd", "plan: enable_dc_asgd=true corrects the gradient that an ",
                             "optimizer op reads; ", param.param, " is updated without one");
    }
    const Shape shape = param.ShapeOf(context.plan.slice(updates[i].at));
    const std::string piece = plan::ParamPieceName(param, updates[i].at.slice);
    const std::string grad = plan::MergedGradName(param, updates[i].at.slice);
    BlockEdit& block = edit.block(layout.updates[i]);
    const OpEntry& update = OptimizerIn(block.before(), *updates[i].trained);
    Compensation ops(block, update.id, param, shape);
    NameList backups;
    for (int trainer = 0; trainer < context.plan.trainers; ++trainer) {
      backups.push_back(plan::BackupName(piece, trainer));
    }
    block.SetVar(TensorVar(kTrainerId, DType::kInt64, Shape({1})));
    const std::string then = ops.Declare(StrCat(piece, ".local_bak"));
    ops.Add(MakeRefByTrainerId(backups, kTrainerId, then));
    const std::string moved = ops.Compute("elementwise_sub", piece, then, temporary);
    const std::string once = ops.Compute("elementwise_mul", moved, grad, temporary);
    const std::string twice = ops.Compute("elementwise_mul", once, grad, temporary);
    if (context.plan.dc_asgd_lambda != 1.0f) ops.Add(MakeScale(twice, context.plan.dc_asgd_lambda));
    const std::string corrected = ops.Compute("elementwise_add", grad, twice, temporary);
    Op optimizer = *update.op;
    ReplaceInput(optimizer, grad, corrected);
    block.Replace(update.id, std::move(optimizer));
  }
  const OpEntry& serve = in.main().ops().back();
  Op keeping = *serve.op;
  SetKeepsBackups(keeping);
  edit.main().Replace(serve.id, std::move(keeping));
  return edit.Apply();
}

}  // namespace penstock::passes
