// Creates the communicators of all rings, at the end of the startup program.
//
//   plan    {ranks=["a:1", "b:1"], rings=1}
//   after   nccl_id_0 = c_gen_nccl_id() {rank=0, endpoint="a:1", other_endpoints=["b:1"]}
//           c_comm_init(X=nccl_id_0) {nranks=2, rank=0}
//
// Changes nothing if the plan has no rings of trainers.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/collective_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {

Result<Program> InitRings(const Program& in, const PassContext& context) {
  constexpr char kPass[] = "init_rings";
  if (context.plan.ranks.addresses.empty()) return in;
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  for (int ring = 0; ring < context.plan.ranks.rings; ++ring) {
    const RingSpec spec{.addresses = context.plan.ranks.addresses,
                        .rank = context.self.index,
                        .ring = ring,
                        .id = plan::RingIdName(ring)};
    if (main.FindVar(spec.id) != nullptr) return NameTaken(kPass, spec.id);
    main.SetVar(RingIdVar(spec.id));
    main.Append(MakeGenRingId(spec).SetMadeBy(kPass));
    main.Append(MakeInitRing(spec).SetMadeBy(kPass));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
