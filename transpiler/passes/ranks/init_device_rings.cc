// Creates the communicators of all rings among the devices of one process, at the end of the startup program.
//
//   after   c_comm_init_all()
//
// A ring that the startup program creates already, for another program, is used again.
#include <algorithm>
#include <utility>

#include "framework/ir/edit.h"
#include "framework/roles/collective_views.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/collective_ops.h"

namespace penstock::passes {
namespace {

bool IsMadeIn(const Block& main, const Op& ring) {
  return std::any_of(main.ops().begin(), main.ops().end(), [&](const OpEntry& entry) {
    return entry.op->type() == ring.type() &&
           roles::RingView(*entry.op).ring() == roles::RingView(ring).ring();
  });
}

}  // namespace

Result<Program> InitDeviceRings(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  for (int ring = 0; ring < context.plan.ranks.rings; ++ring) {
    Op made = MakeInitRingOfDevices(ring);
    if (!IsMadeIn(in.main(), made)) edit.main().Append(std::move(made.SetMadeBy("init_device_rings")));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
