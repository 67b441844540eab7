// Makes a pserver receive the rows of a distributed table's gradient from each trainer and update its shard
// with their mean.
//
//   before  block 4 { (ParamOut=t) = sgd(Param=t, Grad=t@GRAD, LearningRate=lr) }
//   after   block 4 { t@GRAD = sum(X=[t@GRAD.trainer_0.pserver_1, t@GRAD.trainer_1.pserver_1])
//                     t@GRAD = scale(X=t@GRAD) {scale=0.5} ; (ParamOut=t) = sgd(...) }
//
// Fluid sums without dividing; compat does the same. Requires: ServeTables ran.
#include "framework/ir/mentions.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {
namespace {

constexpr char kMergeTableGradients[] = "merge_table_gradients";

// The block that reads the gradient, which is its update.
int BlockReading(const Program& program, const std::string& grad) {
  for (int b = 1; b < program.block_count(); ++b) {
    for (const OpEntry& entry : program.block(b).ops()) {
      if (Reads(*entry.op, grad)) return b;
    }
  }
  return -1;
}

}  // namespace

Result<Program> MergeTableGradients(const Program& in, const PassContext& context) {
  if (context.plan.tables.empty()) return in;
  Program out = in;
  const int trainers = context.plan.trainers;
  for (const plan::TablePlacement& table : context.plan.tables) {
    const std::string merged = plan::UpdatedShardGradName(context.plan, table, context.self.index);
    const int index = BlockReading(out, merged);
    if (index < 0) return PassError(kMergeTableGradients, "no block updates table ", table.table);
    if (plan::SentShardGradName(context.plan, table, context.self.index, 0) == merged)
      continue;  // it is not merged
    NameList received;
    for (int trainer = 0; trainer < trainers; ++trainer) {
      received.push_back(plan::SentShardGradName(context.plan, table, context.self.index, trainer));
      Var var = TensorVar(received.back(), table.dtype, table.shape);
      var.kind = VarKind::kSelectedRows;
      out.MutableBlock(0).SetVar(std::move(var));
    }
    Block& block = out.MutableBlock(index);
    if (context.plan.conventions().table_gradients_are_means) {
      const auto mean = static_cast<float>(1.0 / static_cast<double>(trainers));
      block.Insert(0, std::move(MakeScale(merged, mean).SetMadeBy(kMergeTableGradients)));
    }
    block.Insert(0, std::move(MakeSum(received, merged).SetMadeBy(kMergeTableGradients)));
  }
  return out;
}

}  // namespace penstock::passes
