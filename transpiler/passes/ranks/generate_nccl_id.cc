// Adds the op by which all trainers agree on the ids of their rings, at the end of the startup program. The
// main program does not change: the runner that executes it on several devices sums the gradients.
//
//   plan    {ranks=["a:1", "b:1"], rings=2}
//   after   persist NCCLID : raw ; persist NCCLID_1 : raw
//           (NCCLID=NCCLID) = gen_nccl_id() {trainers=["a:1", "b:1"], trainer_id=0, nccl_comm_num=2}
//
// With groups (node_ranks) each ring has two more ids: one for the ranks of a group, and one for the first
// ranks of all groups. The op finds all variables except the first by their names. Changes nothing if the
// startup program has the op already, for another program.
#include <algorithm>

#include "framework/ir/edit.h"
#include "framework/roles/collective_views.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/collective_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {
namespace {

bool AreAlike(const roles::AllRingsView& a, const roles::AllRingsView& b) {
  return std::ranges::equal(a.addresses(), b.addresses()) && a.rank() == b.rank() && a.rings() == b.rings() &&
         a.hierarchical() == b.hierarchical() && a.group_ranks() == b.group_ranks();
}

}  // namespace

Result<Program> GenerateNcclId(const Program& in, const PassContext& context) {
  constexpr char kPass[] = "generate_nccl_id";
  const plan::RankPlan& ranks = context.plan.ranks;
  const Op made = MakeGenNcclId({.trainers = ranks.addresses,
                                 .trainer_id = context.self.index,
                                 .rings = ranks.rings,
                                 .node_ranks = ranks.node_ranks,
                                 .id = plan::NcclIdNames(ranks).front()});
  for (const OpEntry& entry : in.main().ops()) {
    if (entry.op->type() != made.type() || entry.op->OutputName("NCCLID") != made.OutputName("NCCLID"))
      continue;
    if (AreAlike(roles::AllRingsView(*entry.op), roles::AllRingsView(made))) return in;
    return RingsDiffer(kPass, made.OutputName("NCCLID"));
  }
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  for (const std::string& id : plan::NcclIdNames(ranks)) {
    if (main.FindVar(id) != nullptr) return NameTaken(kPass, id);
    main.SetVar(RingIdVar(id));
  }
  main.Append(Op(made).SetMadeBy(kPass));
  return edit.Apply();
}

}  // namespace penstock::passes
