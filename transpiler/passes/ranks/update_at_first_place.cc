// Places of one process share its parameters: the first one updates them, once no place reads them any more.
//
//   plan    rank 1
//   before  lr = scale(X=lr_0) @lr
//           w@GRAD = mul_grad(...) @backward
//           (ParamOut=w) = sgd(Grad=w@GRAD, ...) @optimize
//   after   w@GRAD = mul_grad(...) @backward
//           @PLACES_READY@ = fill_constant() {shape=[1l], value=0.0} @backward
//           @PLACES_READY@ = c_allreduce_sum(X=@PLACES_READY@) {ring_id=0} @backward
//           @PLACES_READY@ = c_sync_comm_stream(X=@PLACES_READY@) {ring_id=0} @backward
//
// Rank 0 keeps its updates and schedules of learning rates. Without updates nothing changes.
// Requires: AwaitGradients ran.
#include <algorithm>

#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/collective_ops.h"
#include "transpiler/passes/spell/step_ops.h"

namespace penstock::passes {
namespace {

constexpr char kReady[] = "@PLACES_READY@";

}  // namespace

Result<Program> UpdateAtFirstPlace(const Program& in, const PassContext& context) {
  constexpr char kPass[] = "update_at_first_place";
  const auto& ops = in.main().ops();
  const auto first = std::find_if(
      ops.begin(), ops.end(), [](const OpEntry& entry) { return Has(entry.op->role(), Role::kOptimize); });
  if (first == ops.end()) return in;
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  if (main.FindVar(kReady) != nullptr) return NameTaken(kPass, kReady);
  main.SetVar(TensorVar(kReady, DType::kFp32, Shape({1})));
  for (Op op : {MakeFloat(kReady, 0.0f, Role::kBackward), MakeAllReduce(kReady, 0, Role::kBackward),
                MakeAwaitRing(kReady, 0, Role::kBackward)}) {
    main.InsertBefore(first->id, op.SetMadeBy(kPass));
  }
  if (context.self.index == 0) return edit.Apply();
  for (const OpEntry& entry : ops) {
    if (Has(entry.op->role(), Role::kOptimize) || Has(entry.op->role(), Role::kLrSched))
      main.Remove(entry.id);
  }
  return edit.Apply();
}

}  // namespace penstock::passes
