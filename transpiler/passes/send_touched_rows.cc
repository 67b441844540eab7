// Ends a step of geo-SGD: tells the communicator which rows of which table the step has looked up.
//
//   plan    table: sparse
//   before  a = lookup_table(W=table, Ids=i) ; b = lookup_table(W=table, Ids=j)
//   after   __control_var@0.send = send(X=[i, j]) {send_varnames=["table", "table"]}
//
// The op stands there without a table too: it is what counts the steps.
#include <unordered_set>

#include "framework/ir/edit.h"
#include "transpiler/passes/comm_ops.h"
#include "transpiler/passes/passes.h"
#include "transpiler/plan/names.h"

namespace penstock {

Result<Program> SendTouchedRows(const Program& in, const PassContext& context) {
  std::unordered_set<std::string> tables;
  for (const ParamPlacement& param : context.plan.params) {
    if (param.sparse) tables.insert(param.param);
  }
  NameList ids, touched;
  for (const OpEntry& entry : in.main().ops()) {
    const std::string& table = entry.op->InputName("W");
    if (entry.op->type() != "lookup_table" || !tables.contains(table)) continue;
    ids.push_back(entry.op->InputName("Ids"));
    touched.push_back(table);
  }
  ProgramEdit edit(in);
  const std::string done = ControlName("send");
  edit.main().SetVar(ControlVar(done));
  edit.main().Append(MakeNotice(ids, touched, SenderId(context), done).SetMadeBy("send_touched_rows"));
  return edit.Apply();
}

}  // namespace penstock
