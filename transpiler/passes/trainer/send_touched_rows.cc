// Ends a step of geo-SGD: tells the communicator which rows of which tables the step has looked up.
//
//   plan    table: sparse
//   before  a = lookup_table(W=table, Ids=i) ; b = lookup_table(W=table, Ids=j)
//   after   __control_var@0.send = send(X=[i, j]) {send_varnames=["table", "table"]}
//
// For a sampler these are the rows of the labels that it drew. As in Fluid, adjacent duplicates are reported
// once, and gradient ops count as look-ups too, so that ids which two tables share are reported a third time.
// The op exists even without tables, because it counts the steps.
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {
namespace {

struct TouchedRows {
  std::string table;
  std::string ids;
};

// A table and the ids of its rows that an op reads; both names are empty if it reads none.
TouchedRows RowsTakenBy(const Op& op) {
  const std::string& drawn = op.OutputName("SampleLabels");
  if (!drawn.empty() && !Has(op.role(), OpRole::kBackward)) return {op.InputName("Weight"), drawn};
  return {op.InputName("W"), op.InputName("Ids")};
}

}  // namespace

Result<Program> SendTouchedRows(const Program& in, const PassContext& context) {
  std::unordered_set<std::string> tables;
  for (const plan::ParamPlacement& param : context.plan.params) {
    if (param.sparse) tables.insert(param.param);
  }
  NameList ids, touched;
  std::unordered_map<std::string, std::string> last;  // the table for which these ids were reported last
  for (const OpEntry& entry : in.main().ops()) {
    const TouchedRows rows = RowsTakenBy(*entry.op);
    if (rows.ids.empty() || !tables.contains(rows.table)) continue;
    std::string& told = last[rows.ids];
    if (told == rows.table) continue;
    told = rows.table;
    ids.push_back(rows.ids);
    touched.push_back(rows.table);
  }
  ProgramEdit edit(in);
  const std::string done = plan::ControlName("send");
  edit.main().SetVar(ControlVar(done));
  edit.main().Append(MakeNotice(ids, touched, SenderId(context), done).SetMadeBy("send_touched_rows"));
  return edit.Apply();
}

}  // namespace penstock::passes
