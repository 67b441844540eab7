#include "transpiler/pipeline/data_parallel.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/roles/collective_views.h"
#include "framework/text/parser.h"
#include "framework/text/printer.h"
#include "operators/all_ops.h"

namespace penstock {
namespace {

constexpr char kSource[] =
    R"(program
block 0 {
  data x : f32[?, 3]
  param w : f32[3]
  param b : f32[3]
  persist mean : f32[3]
  persist variance : f32[3]
  persist lr : f32[1]
  var y : f32[?, 3]
  var y@GRAD : f32[?, 3]
  var s : f32[3]
  var v : f32[3]
  var loss : f32[1]
  var loss@GRAD : f32[1]
  var w@GRAD : f32[3]
  var b@GRAD : f32[3]
)"
    "  (Y=y, MeanOut=mean, VarianceOut=variance, SavedMean=s, SavedVariance=v)"
    " = batch_norm(X=x, Scale=w, Bias=b, Mean=mean, Variance=variance)\n"
    R"(  loss = mean(X=y)
  loss@GRAD = fill_constant() {shape=[1l], value=1.0} @backward|loss
  (X@GRAD=y@GRAD) = mean_grad(X=y, Out@GRAD=loss@GRAD) @backward
)"
    "  (Scale@GRAD=w@GRAD, Bias@GRAD=b@GRAD)"
    " = batch_norm_grad(X=x, Scale=w, Bias=b, SavedMean=s, SavedVariance=v, Y@GRAD=y@GRAD)"
    " {op_role_var=[\"w\", \"w@GRAD\", \"b\", \"b@GRAD\"]} @backward\n"
    R"(  (ParamOut=w) = sgd(Param=w, Grad=w@GRAD, LearningRate=lr) @optimize(w, w@GRAD)
  (ParamOut=b) = sgd(Param=b, Grad=b@GRAD, LearningRate=lr) @optimize(b, b@GRAD)
}
)";

DataParallel Made(const DataParallelConfig& config) {
  Result<Program> source = ParseText(kSource, "test");
  EXPECT_TRUE(source.ok()) << source.status().ToString();
  Result<DataParallel> made = MakeDataParallel(AllOps(), *source, config);
  EXPECT_TRUE(made.ok()) << made.status().ToString();
  return made.ok() ? *std::move(made) : DataParallel{};
}

// "type(X) ring" of each op.
std::vector<std::string> Ops(const Program& program) {
  std::vector<std::string> out;
  for (const OpEntry& entry : program.main().ops()) {
    const Op& op = *entry.op;
    std::string text = op.type();
    if (!op.InputName("X").empty()) text += "(" + op.InputName("X") + ")";
    if (const auto* ring = op.Get<std::int32_t>("ring_id")) text += " " + std::to_string(*ring);
    out.push_back(text);
  }
  return out;
}

using Texts = std::vector<std::string>;

TEST(DataParallel, SumsGradientsAndStartsFromRankZero) {
  const DataParallel made = Made({.addresses = {"a:1", "b:1"}, .rank = 1, .rings = 2});
  EXPECT_EQ(Ops(made.main),
            (Texts{"batch_norm(x)", "mean(y)", "fill_constant", "scale(loss@GRAD)", "mean_grad(y)",
                   "batch_norm_grad(x)", "c_sync_calc_stream(w@GRAD)", "c_allreduce_sum(b@GRAD) 1",
                   "c_allreduce_sum(w@GRAD) 0", "c_sync_comm_stream(b@GRAD) 0",
                   "c_sync_comm_stream(b@GRAD) 1", "sgd", "sgd"}));
  EXPECT_EQ(Ops(made.begin),
            (Texts{"c_gen_nccl_id", "c_comm_init(nccl_id_0) 0", "c_gen_nccl_id", "c_comm_init(nccl_id_1) 1",
                   "c_broadcast(w) 0", "c_broadcast(b) 1", "c_broadcast(mean) 0", "c_broadcast(variance) 1",
                   "c_broadcast(lr) 0", "c_sync_comm_stream(lr) 0", "c_sync_comm_stream(lr) 1"}));
}

TEST(DataParallel, SyncBatchNormUsesItsOwnRing) {
  const DataParallel made =
      Made({.addresses = {"a:1", "b:1"}, .reduction = GradientReduction::kSum, .sync_batch_norm = true});
  EXPECT_EQ(
      Ops(made.main),
      (Texts{"sync_batch_norm(x) 1", "mean(y)", "fill_constant", "mean_grad(y)", "sync_batch_norm_grad(x) 1",
             "c_sync_calc_stream(w@GRAD)", "c_allreduce_sum(b@GRAD) 0", "c_allreduce_sum(w@GRAD) 0",
             "c_sync_comm_stream(b@GRAD) 0", "c_sync_comm_stream(b@GRAD) 1", "sgd", "sgd"}));
}

// A batch that a rank repeats counts neither for the gradient nor for the moments.
TEST(DataParallel, UnevenBatchesAreWeightedByTheirShare) {
  const DataParallel made =
      Made({.addresses = {"a:1", "b:1"}, .reduction = GradientReduction::kShares, .sync_batch_norm = true});
  EXPECT_EQ(Ops(made.main),
            (Texts{"sync_batch_norm(x) 1", "mean(y)", "fill_constant", "c_share_of_elements(y) 0",
                   "elementwise_mul(loss@GRAD)", "mean_grad(y)", "sync_batch_norm_grad(x) 1",
                   "c_sync_calc_stream(w@GRAD)", "c_allreduce_sum(b@GRAD) 0", "c_allreduce_sum(w@GRAD) 0",
                   "c_sync_comm_stream(b@GRAD) 0", "c_sync_comm_stream(b@GRAD) 1", "sgd", "sgd"}));
  for (const OpEntry& entry : made.main.main().ops()) {
    const std::string& type = entry.op->type();
    if (!type.starts_with("sync_batch_norm") && type != "c_share_of_elements") continue;
    EXPECT_EQ(entry.op->InputName("Live"), "@RANK_LIVE@") << type;
  }
  EXPECT_EQ(made.begin.main().ops().back().op->OutputName("Out"), "@RANK_LIVE@");
}

TEST(DataParallel, PlacesShareAProgramAndTheFirstUpdates) {
  const DataParallel made = Made({.addresses = {"a:1", "b:1"}, .places = true});
  Texts of_first, of_all;
  for (const OpEntry& entry : made.main.main().ops())
    (roles::IsOfFirstPlace(*entry.op) ? of_first : of_all).push_back(entry.op->type());
  EXPECT_EQ(of_first, (Texts{"sgd", "sgd"}));
  EXPECT_EQ(of_all, (Texts{"batch_norm", "mean", "fill_constant", "scale", "mean_grad", "batch_norm_grad",
                           "c_sync_calc_stream", "c_allreduce_sum", "c_allreduce_sum", "c_sync_comm_stream",
                           "fill_constant", "c_allreduce_sum", "c_sync_comm_stream"}));
  const DataParallel second = Made({.addresses = {"a:1", "b:1"}, .rank = 1, .places = true});
  EXPECT_EQ(PrintProgram(made.main), PrintProgram(second.main));
  EXPECT_TRUE(made.begin.main().ops().empty());
}

TEST(DataParallel, JoinsRanksInGroups) {
  const DataParallel made = Made({.addresses = {"a:1", "a:2", "b:1", "b:2"}, .rank = 2, .group_ranks = 2});
  const Op& join = *made.begin.main().ops().front().op;
  EXPECT_EQ(join.type(), "gen_nccl_id");
  EXPECT_EQ(join.GetOr<std::int32_t>("hierarchical_allreduce_inter_nranks", 0), 2);
  EXPECT_EQ(join.GetOr<std::int32_t>("trainer_id", 0), 2);
}

TEST(DataParallel, RefusesSyncBatchNormForInplaceAbn) {
  constexpr char kInPlace[] = "program\nblock 0 {\n  data x : f32[?, 3]\n  (Y=x) = inplace_abn(X=x)\n}\n";
  const Result<Program> main = ParseText(kInPlace, "test");
  ASSERT_TRUE(main.ok()) << main.status().ToString();
  const Status status =
      MakeDataParallel(AllOps(), *main, {.addresses = {"a:1", "b:1"}, .sync_batch_norm = true}).status();
  EXPECT_EQ(status.id(), "E-parallel-sync");
  EXPECT_EQ(status.message(),
            "data_parallel: sync_batch_norm does not cover inplace_abn of x; use batch_norm "
            "and an activation");
}

TEST(DataParallel, RefusesASecondTransformation) {
  const DataParallel made = Made({.addresses = {"a:1", "b:1"}});
  EXPECT_EQ(MakeDataParallel(AllOps(), made.main, {.addresses = {"a:1", "b:1"}}).status().id(),
            "E-parallel-twice");
}

}  // namespace
}  // namespace penstock
