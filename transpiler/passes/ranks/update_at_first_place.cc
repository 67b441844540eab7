// Places of one process share its parameters: the first one updates them, while no place reads them.
//
//   before  lr = scale(X=lr_0) @lr
//           w@GRAD = mul_grad(...) @backward
//           (ParamOut=w) = sgd(Param=w, Grad=w@GRAD, ...) @optimize
//           norm = reduce_sum(X=w)
//   after   lr = scale(X=lr_0) {first_place=true} @lr
//           w@GRAD = mul_grad(...) @backward
//           @PLACES_READY@ = fill_constant() {shape=[1l], value=0.0} @backward
//           @PLACES_READY@ = c_allreduce_sum(X=@PLACES_READY@) {ring_id=0} @backward
//           @PLACES_READY@ = c_sync_comm_stream(X=@PLACES_READY@) {ring_id=0} @backward
//           (ParamOut=w) = sgd(Param=w, Grad=w@GRAD, ...) {first_place=true} @optimize
//           @PLACES_READY@ = fill_constant() ... the same three ops
//           norm = reduce_sum(X=w)
//
// All places meet before the updates of an optimizer, and after them if other ops follow, such as the
// backward pass of another optimizer. The first place runs the updates and the schedules of learning rates
// alone; the program is that of all places. Without updates nothing changes. Requires: AwaitGradients ran.
#include <utility>

#include "framework/ir/edit.h"
#include "framework/roles/attr_names.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/collective_ops.h"
#include "transpiler/passes/spell/step_ops.h"

namespace penstock::passes {
namespace {

constexpr char kReady[] = "@PLACES_READY@";

bool IsOfSchedule(const Op& op) { return Has(op.role(), OpRole::kLrSched); }
bool Updates(const Op& op) { return Has(op.role(), OpRole::kOptimize) && !IsOfSchedule(op); }

// The ops before which all places meet: the first of each group of updates, and the first after it.
std::vector<OpId> Meetings(const Block& block) {
  std::vector<OpId> meetings;
  bool updating = false;
  for (const OpEntry& entry : block.ops()) {
    if (IsOfSchedule(*entry.op) || Updates(*entry.op) == updating) continue;
    updating = !updating;
    meetings.push_back(entry.id);
  }
  return meetings;
}

}  // namespace

Result<Program> UpdateAtFirstPlace(const Program& in, const PassContext&) {
  constexpr char kPass[] = "update_at_first_place";
  const std::vector<OpId> meetings = Meetings(in.main());
  if (meetings.empty()) return in;
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  if (main.FindVar(kReady) != nullptr) return NameTaken(kPass, kReady);
  main.SetVar(TensorVar(kReady, DType::kFp32, Shape({1})));
  for (const OpId at : meetings) {
    for (Op op : {MakeFloat(kReady, 0.0f, OpRole::kBackward), MakeAllReduce(kReady, 0, OpRole::kBackward),
                  MakeAwaitRing(kReady, 0, OpRole::kBackward)}) {
      main.InsertBefore(at, op.SetMadeBy(kPass));
    }
  }
  for (const OpEntry& entry : in.main().ops()) {
    if (!Updates(*entry.op) && !IsOfSchedule(*entry.op)) continue;
    Op op = *entry.op;
    main.Replace(entry.id, std::move(op.Set(roles::attr::kFirstPlace, true)));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
