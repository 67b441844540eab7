// Replaces the initializers of tables from which trainers request rows, because only pservers hold the rows.
//
//   before  (Out=table) = uniform_random() {shape=[1000000l, 16l]}
//   after   (Out=table) = fake_init() {shape=[1000000l, 16l]}      at the end of the block
//
// Fluid also replaces those of tables that only look as if trainers requested their rows; compat does the
// same.
#include <map>

#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"

namespace penstock::passes {
namespace {

Status DeclareOnly(BlockEdit& main, const std::string& table, const Shape& shape) {
  const std::vector<OpId>& writers = main.def_use().Writers(table);
  if (writers.size() != 1) {
    return InvalidArgument("E-pass-fake-init", "fake_init_tables: ", writers.size(),
                           " ops of the startup program write ", table, "; there must be 1");
  }
  main.Remove(writers.front());
  main.Append(MakeFakeInit(table, shape).SetMadeBy("fake_init_tables"));
  return OkStatus();
}

}  // namespace

Result<Program> FakeInitTables(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  for (const plan::TablePlacement& table : context.plan.tables) {
    PENSTOCK_RETURN_IF_ERROR(DeclareOnly(main, table.table, table.shape));
  }
  for (const plan::ParamPlacement& param : context.plan.params) {
    if (param.prefetched) PENSTOCK_RETURN_IF_ERROR(DeclareOnly(main, param.param, param.shape));
  }
  for (const std::string& table : context.analysis.forgotten_tables) {
    PENSTOCK_RETURN_IF_ERROR(DeclareOnly(main, table, context.main.main().FindVar(table)->shape()));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
