// Replaces the initial values of prefetched tables: their rows live on the pservers only.
//
//   before  (Out=table) = uniform_random() {shape=[1000000l, 16l]}
//   after   (Out=table) = fake_init() {shape=[1000000l, 16l]}      at the end of the block
#include <map>

#include "framework/ir/edit.h"
#include "transpiler/passes/comm_ops.h"
#include "transpiler/passes/passes.h"

namespace penstock {

Result<Program> FakeInitTables(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  for (const ParamPlacement& param : context.plan.params) {
    if (!param.prefetched) continue;
    const std::vector<OpId>& writers = main.def_use().Writers(param.param);
    if (writers.size() != 1) {
      return InvalidArgument("E-pass-fake-init", "fake_init_tables: ", writers.size(),
                             " ops of the start-up program write ", param.param, "; there must be 1");
    }
    main.Remove(writers.front());
    main.Append(MakeFakeInit(param.param, param.shape).SetMadeBy("fake_init_tables"));
  }
  return edit.Apply();
}

}  // namespace penstock
