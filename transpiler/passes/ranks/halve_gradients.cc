// Makes dense gradients travel between ranks as f16.
//
//   before  w@GRAD = c_allreduce_sum(X=w@GRAD) {ring_id=0} @backward
//           ...
//           (ParamOut=w) = sgd(Grad=w@GRAD, ...) @optimize
//   after   w@GRAD@FP16 = cast(X=w@GRAD) {in_dtype=5, out_dtype=4} @backward
//           w@GRAD@FP16 = c_allreduce_sum(X=w@GRAD@FP16) {ring_id=0} @backward
//           ...
//           w@GRAD = cast(X=w@GRAD@FP16) {in_dtype=4, out_dtype=5} @backward
//           (ParamOut=w) = sgd(Grad=w@GRAD, ...) @optimize
//
// All are cast back before the first update; until then the exchange overlaps with the backward pass.
// Requires: AllreduceGradients and AwaitGradients ran.
#include <algorithm>

#include "framework/ir/edit.h"
#include "framework/roles/collective_views.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/collective_ops.h"

namespace penstock::passes {
namespace {

// The reduced variable if it can be halved, a tensor of f32 or f64; null otherwise.
const Var* HalvedBy(const Program& in, const Op& op) {
  const bool reduces = roles::CollectiveView(op).kind() == roles::CollectiveKind::kAllReduce;
  if (!reduces || !Has(op.role(), Role::kBackward)) return nullptr;
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

}  // namespace

Result<Program> HalveGradients(const Program& in, const PassContext&) {
  constexpr char kPass[] = "halve_gradients";
  const auto& ops = in.main().ops();
  const auto update = std::find_if(
      ops.begin(), ops.end(), [](const OpEntry& entry) { return Has(entry.op->role(), Role::kOptimize); });
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  for (const OpEntry& entry : ops) {
    const Var* const whole = HalvedBy(in, *entry.op);
    if (whole == nullptr) continue;
    Var half = HalfOf(*whole);
    if (main.FindVar(half.name) != nullptr) return NameTaken(kPass, half.name);
    Op exchange = *entry.op;
    exchange.AddInput("X", {half.name}).AddOutput("Out", {half.name});
    main.InsertBefore(entry.id, MakeCast(*whole, half, Role::kBackward).SetMadeBy(kPass));
    main.Replace(entry.id, std::move(exchange));
    Op back = std::move(MakeCast(half, *whole, Role::kBackward).SetMadeBy(kPass));
    if (update == ops.end()) {
      main.Append(std::move(back));
    } else {
      main.InsertBefore(update->id, std::move(back));
    }
    main.SetVar(std::move(half));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
