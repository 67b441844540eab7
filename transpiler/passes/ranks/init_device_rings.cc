// Creates the communicators of all rings among the devices of one process, at the end of the startup program.
//
//   after   c_comm_init_all()
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/collective_ops.h"

namespace penstock::passes {

Result<Program> InitDeviceRings(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  for (int ring = 0; ring < context.plan.ranks.rings; ++ring) {
    edit.main().Append(MakeInitRingOfDevices(ring).SetMadeBy("init_device_rings"));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
