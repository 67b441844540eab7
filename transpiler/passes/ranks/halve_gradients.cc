// Makes dense gradients travel between ranks as f16.
//
//   plan    reduce w@GRAD on ring 0
//   before  w@GRAD = c_allreduce_sum(X=w@GRAD) {ring_id=0} @backward
//           ...
//           w@GRAD = c_sync_comm_stream(X=w@GRAD) {ring_id=0} @backward
//           (ParamOut=w) = sgd(Grad=w@GRAD, ...) @optimize
//   after   w@GRAD@FP16 = cast(X=w@GRAD) {in_dtype=5, out_dtype=4} @backward
//           w@GRAD@FP16 = c_allreduce_sum(X=w@GRAD@FP16) {ring_id=0} @backward
//           ...
//           w@GRAD = c_sync_comm_stream(X=w@GRAD) {ring_id=0} @backward
//           w@GRAD = cast(X=w@GRAD@FP16) {in_dtype=4, out_dtype=5} @backward
//           (ParamOut=w) = sgd(Grad=w@GRAD, ...) @optimize
//
// All are cast back after the wait; until then the exchange overlaps with the backward pass. Gradients that
// an earlier rewriting exchanges stay as they are. Requires: AllreduceGradients and AwaitGradients ran.
#include <algorithm>
#include <set>
#include <span>

#include "framework/ir/edit.h"
#include "framework/roles/collective_views.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/collective_ops.h"

namespace penstock::passes {
namespace {

// The reduced variable if it is planned and can be halved, a tensor of f32 or f64; null otherwise.
const Var* HalvedBy(const Program& in, const std::set<std::string>& planned, const Op& op) {
  const bool reduces = roles::CollectiveView(op).kind() == roles::CollectiveKind::kAllReduce;
  if (!reduces || !planned.contains(op.InputName("X"))) return nullptr;
  const Var* const var = in.main().FindVar(op.InputName("X"));
  if (var == nullptr || !var->type || var->kind != VarKind::kTensor) return nullptr;
  return var->type->dtype == DType::kFp32 || var->type->dtype == DType::kFp64 ? var : nullptr;
}

Var HalfOf(const Var& var) {
  Var half;
  half.name = var.name + "@FP16";
  half.type = var.type;
  half.type->dtype = DType::kFp16;
  return half;
}

// The first wait for a ring after the op at `from`; null if there is none.
const OpEntry* WaitAfter(std::span<const OpEntry> ops, std::size_t from, int ring) {
  const auto wait =
      std::find_if(ops.begin() + static_cast<std::ptrdiff_t>(from), ops.end(), [&](const auto& entry) {
        return entry.op->type() == "c_sync_comm_stream" && roles::CollectiveView(*entry.op).ring() == ring;
      });
  return wait == ops.end() ? nullptr : &*wait;
}

}  // namespace

Result<Program> HalveGradients(const Program& in, const PassContext& context) {
  constexpr char kPass[] = "halve_gradients";
  std::set<std::string> planned;
  for (const plan::RingUse& use : context.plan.ranks.reductions) planned.insert(use.var);
  const auto& ops = in.main().ops();
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  for (std::size_t at = 0; at < ops.size(); ++at) {
    const OpEntry& entry = ops[at];
    const Var* const whole = HalvedBy(in, planned, *entry.op);
    if (whole == nullptr) continue;
    Var half = HalfOf(*whole);
    if (main.FindVar(half.name) != nullptr) return NameTaken(kPass, half.name);
    Op exchange = *entry.op;
    exchange.AddInput("X", {half.name}).AddOutput("Out", {half.name});
    main.InsertBefore(entry.id, MakeCast(*whole, half, OpRole::kBackward).SetMadeBy(kPass));
    main.Replace(entry.id, std::move(exchange));
    Op back = std::move(MakeCast(half, *whole, OpRole::kBackward).SetMadeBy(kPass));
    const OpEntry* const wait = WaitAfter(ops, at, roles::CollectiveView(*entry.op).ring());
    if (wait == nullptr) return PassError(kPass, "no op waits for ", whole->name);
    main.InsertAfter(wait->id, std::move(back));
    main.SetVar(std::move(half));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
