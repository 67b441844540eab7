#include "transpiler/passes/spell/step_ops.h"

#include <algorithm>
#include <variant>

#include "framework/base/strings.h"
#include "framework/ir/attr.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {

Var CountVar(std::string name) { return TensorVar(std::move(name), DType::kInt64, Shape({1})); }

Op MakeCount(const std::string& var, std::int64_t value, OpRole role) {
  Op op("fill_constant");
  op.AddOutput("Out", {var});
  op.Set("shape", std::vector<std::int64_t>{1}).Set("dtype", static_cast<std::int32_t>(DType::kInt64));
  // str_value is exact even where a float is not.
  op.Set("value", static_cast<float>(value)).Set("str_value", StrCat(value)).Set("force_cpu", false);
  return WithFrame(std::move(op), role);
}

Op MakeIncrement(const std::string& var) {
  Op op("increment");
  op.AddInput("X", {var}).AddOutput("Out", {var}).Set("step", 1.0f);
  return WithFrame(std::move(op), OpRole::kOptimize);
}

Op MakeRemainder(const std::string& of, const std::string& by, const std::string& into) {
  return MakeElementwise("elementwise_mod", of, by, into);
}

Op MakeEqual(const std::string& a, const std::string& b, const std::string& into) {
  Op op("equal");
  op.AddInput("X", {a}).AddInput("Y", {b}).AddOutput("Out", {into});
  op.Set("axis", -1).Set("force_cpu", false);
  return WithFrame(std::move(op), OpRole::kOptimize);
}

Var RankLiveVar() {
  Var live = TensorVar(plan::kRankLive, DType::kFp32, Shape({1}));
  live.persistable = true;
  return live;
}

Op MakeFloat(const std::string& var, float value, OpRole role) {
  Op op("fill_constant");
  op.AddOutput("Out", {var});
  op.Set("shape", std::vector<std::int64_t>{1}).Set("dtype", static_cast<std::int32_t>(DType::kFp32));
  op.Set("value", value).Set("force_cpu", false);
  return WithFrame(std::move(op), role);
}

Op MakeShareOfElements(const std::string& counted, float scale) {
  Op op("c_share_of_elements");
  op.AddInput("X", {counted}).AddInput("Live", {plan::kRankLive}).AddOutput("Out", {plan::kRankShare});
  op.Set("ring_id", 0).Set("scale", scale);
  return WithFrame(std::move(op), OpRole::kBackward);
}

Op MakeShareOfCount(const std::string& count, const std::string& typed, const std::string& out) {
  Op op("c_share_of_elements");
  op.AddInput("X", {typed}).AddInput("Count", {count}).AddOutput("Out", {out});
  op.Set("ring_id", 0).Set("scale", 1.0f);
  return WithFrame(std::move(op), OpRole::kOptimize);
}

Op MakeElementwise(const char* type, const std::string& x, const std::string& y, const std::string& out) {
  Op op(type);
  op.AddInput("X", {x}).AddInput("Y", {y}).AddOutput("Out", {out});
  op.Set("axis", -1).Set("use_mkldnn", false).Set("x_data_format", "").Set("y_data_format", "");
  return WithFrame(std::move(op), OpRole::kOptimize);
}

Op MakeProduct(const std::string& var, const std::string& by, OpRole role) {
  return MakeElementwise("elementwise_mul", var, by, var).SetRole(role);
}

Op MakeUnary(const char* type, const std::string& x, const std::string& out) {
  Op op(type);
  op.AddInput("X", {x}).AddOutput("Out", {out});
  return WithFrame(std::move(op), OpRole::kOptimize);
}

Op MakeExtents(const std::string& of, const std::string& into) {
  Op op("shape");
  op.AddInput("Input", {of}).AddOutput("Out", {into});
  return WithFrame(std::move(op), OpRole::kOptimize);
}

Op MakeElementCount(const std::string& extents, const std::string& into) {
  Op op("reduce_prod");
  op.AddInput("X", {extents}).AddOutput("Out", {into});
  op.Set("dim", std::vector<std::int32_t>{0}).Set("keep_dim", false).Set("reduce_all", true);
  op.Set("in_dtype", -1).Set("out_dtype", -1);
  return WithFrame(std::move(op), OpRole::kOptimize);
}

Op MakeConditional(const ConditionalSpec& spec) {
  Op op("conditional_block");
  std::vector<std::string> read = spec.in_place;
  read.insert(read.end(), spec.reads.begin(), spec.reads.end());
  op.AddInput("Cond", {spec.condition}).AddInput("Input", std::move(read));
  op.AddOutput("Out", spec.in_place).AddOutput("Scope", {spec.scope});
  op.Set("sub_block", BlockRef{spec.block}).Set("is_scalar_condition", true);
  op.Set("skip_eager_deletion_vars", NameList());
  return WithFrame(std::move(op), OpRole::kOptimize);
}

bool HasBlocks(const Op& op) {
  return std::any_of(op.attrs().begin(), op.attrs().end(), [](const NamedAttr& attr) {
    return std::holds_alternative<BlockRef>(attr.value) ||
           std::holds_alternative<std::vector<BlockRef>>(attr.value);
  });
}

std::string GradientSumName(const std::string& gradient) { return gradient + "@SUM"; }

Var GradientSumVar(const plan::RingUse& gradient) {
  Var sum = TensorVar(GradientSumName(gradient.var), gradient.dtype, gradient.shape);
  sum.persistable = true;
  if (gradient.sparse) sum.kind = VarKind::kSelectedRows;
  return sum;
}

Op MakeStartOfSum(const plan::RingUse& gradient) {
  Var sum = GradientSumVar(gradient);
  if (gradient.sparse) sum.type->shape = sum.type->shape.WithRows(0);
  return MakeZeroTensor(sum);
}

std::string RunsName(const plan::RankPlan& ranks) {
  return ranks.reductions.empty() ? "@RUNS" : ranks.reductions.front().var + "@RUNS";
}

Op MakeZeroTensor(const Var& var) {
  Op op("fill_constant");
  op.AddOutput("Out", {var.name});
  op.Set("shape", var.type->shape.dims()).Set("dtype", static_cast<std::int32_t>(var.type->dtype));
  op.Set("value", 0.0f).Set("str_value", "0").Set("force_cpu", false);
  return WithFrame(std::move(op), OpRole::kForward);
}

}  // namespace penstock::passes
