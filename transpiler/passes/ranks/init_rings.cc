// Creates the communicators of all rings, at the end of the startup program.
//
//   plan    {ranks=["a:1", "b:1"], rings=1}
//   after   nccl_id_0 = c_gen_nccl_id() {rank=0, endpoint="a:1", other_endpoints=["b:1"]}
//           c_comm_init(X=nccl_id_0) {nranks=2, rank=0}
//
// Changes nothing if the plan has no rings of trainers. A ring that the startup program makes already, for
// another program, is used again.
#include <algorithm>

#include "framework/ir/edit.h"
#include "framework/roles/collective_views.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/collective_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {
namespace {

enum class Made { kNot, kAlike, kOtherwise };

// Whether ops of the block make the ring.
Made MadeIn(const Block& main, const RingSpec& spec) {
  const Op id = MakeGenRingId(spec), ring = MakeInitRing(spec);
  bool has_id = false, has_ring = false;
  for (const OpEntry& entry : main.ops()) {
    const Op& op = *entry.op;
    if (op.type() == id.type() && op.OutputName("Out") == spec.id) {
      const roles::RingIdView made(op), needed(id);
      if (made.rank() != needed.rank() || made.address() != needed.address() ||
          !std::ranges::equal(made.others(), needed.others()))
        return Made::kOtherwise;
      has_id = true;
    } else if (op.type() == ring.type() && op.InputName("X") == spec.id) {
      const roles::RingView made(op);
      if (made.ring() != spec.ring || made.rank() != spec.rank) return Made::kOtherwise;
      has_ring = true;
    }
  }
  return has_id && has_ring ? Made::kAlike : Made::kNot;
}

}  // namespace

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
    const Made made = MadeIn(in.main(), spec);
    if (made == Made::kAlike) continue;
    if (made == Made::kOtherwise) return RingsDiffer(kPass, spec.id);
    if (main.FindVar(spec.id) != nullptr) return NameTaken(kPass, spec.id);
    main.SetVar(RingIdVar(spec.id));
    main.Append(MakeGenRingId(spec).SetMadeBy(kPass));
    main.Append(MakeInitRing(spec).SetMadeBy(kPass));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
