// Makes trainers look rows up in their own copy of a table instead of requesting them.
//
//   before  a = lookup_table(W=table, Ids=i) {remote_prefetch=true}
//   after   a = lookup_table(W=table, Ids=i) {remote_prefetch=false}
//
// Like Fluid, it does not change lookup_table_v2, which looks up locally if it has no names of remote pieces.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"

namespace penstock::passes {

Result<Program> KeepTablesLocal(const Program& in, const PassContext&) {
  ProgramEdit edit(in);
  for (const OpEntry& entry : in.main().ops()) {
    if (entry.op->type() != "lookup_table") continue;
    Op local = *entry.op;
    edit.main().Replace(entry.id, std::move(local.Set("remote_prefetch", false)));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
