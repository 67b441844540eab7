// Sends each pserver the rows of a distributed table's gradient that belong to its shard, in every step, even
// if there are none.
//
//   plan    table t, rows by id
//   before  (W@GRAD=t@GRAD) = lookup_table_grad(...)
//   after   (W@GRAD=t@GRAD) = lookup_table_grad(...)
//           t@GRAD.merged = merge_selected_rows(X=t@GRAD)
//           [t@GRAD.trainer_0.pserver_0, t@GRAD.trainer_0.pserver_1] = split_ids(Ids=t@GRAD.merged)
//           __control_var@0.send.t = send(X=[both]) {epmap=[both servers]}
//
// split_ids keeps only one value per row, so the gradients of an id that occurs several times must be summed
// first. Fluid does not sum them; compat does the same.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {
namespace {

constexpr char kSendTableGradients[] = "send_table_gradients";

Var RowsVar(std::string name, const plan::TablePlacement& table) {
  Var var = TensorVar(std::move(name), table.dtype, table.shape);
  var.kind = VarKind::kSelectedRows;
  return var;
}

// The op behind which the gradient is sent.
std::optional<OpId> WriterOf(const BlockEdit& main, const plan::TablePlacement& table,
                             const plan::Conventions& conventions) {
  const std::vector<OpId>& writers = main.def_use().Writers(table.grad);
  if (writers.empty()) return std::nullopt;
  return conventions.merges_rows_of_an_id ? writers.back() : writers.front();
}

}  // namespace

Result<Program> SendTableGradients(const Program& in, const PassContext& context) {
  if (context.plan.tables.empty()) return in;
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  for (const plan::TablePlacement& table : context.plan.tables) {
    const std::optional<OpId> writer = WriterOf(main, table, context.plan.conventions());
    if (!writer) {
      return PassError(kSendTableGradients, "no op writes ", table.grad, ", the gradient planned for table ",
                       table.table);
    }
    OpId at = *writer;
    std::string whole = table.grad;
    if (context.plan.conventions().merges_rows_of_an_id) {
      whole = plan::MergedRowsName(table);
      main.SetVar(RowsVar(whole, table));
      at = main.InsertAfter(at, MakeMergeRows(table.grad, whole).SetMadeBy(kSendTableGradients));
    }
    SendSpec send{.pieces = {},
                  .addresses = context.plan.pservers,
                  .trainer_id = context.self.index,
                  .param = table.table,
                  .grad = table.grad,
                  .done = plan::TableSendIsAwaited(context.plan)
                              ? plan::ControlName(StrCat("send.", table.table))
                              : ""};
    for (int p = 0; p < static_cast<int>(context.plan.pservers.size()); ++p) {
      send.pieces.push_back(plan::SentShardGradName(context.plan, table, p, context.self.index));
      main.SetVar(RowsVar(send.pieces.back(), table));
    }
    main.SetVar(
        ControlVar(plan::ControlName(StrCat("send.", table.table))));  // Fluid declares it in any case
    at = main.InsertAfter(at,
                          MakeSplitIds({whole}, send.pieces, OpRole::kDist).SetMadeBy(kSendTableGradients));
    main.InsertAfter(at, MakeSend(send).SetMadeBy(kSendTableGradients));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
