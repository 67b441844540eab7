// Makes a rank of local SGD update parameters only while its examples count, and counts these examples. The
// parameters of a rank without further examples stay unchanged until the next average.
//
//   before  loss = mean(X=cost)
//           (ParamOut=w) = momentum(Param=w, Grad=w@GRAD, ...) @optimize
//   after   loss = mean(X=cost)
//           @RANK_IS_LIVE@ = cast(X=@RANK_LIVE@)
//           conditional_block(Cond=@RANK_IS_LIVE@, Input=[@RANK_EXAMPLES@, w, w@GRAD, ...]) {sub_block=^1}
//           block 1 { (ParamOut=w) = momentum(Param=w, Grad=w@GRAD, ...)
//                     @RANK_EXTENTS@ = shape(Input=cost)
//                     @RANK_ELEMENTS@ = reduce_prod(X=@RANK_EXTENTS@)
//                     @RANK_MORE@ = cast(X=@RANK_ELEMENTS@)
//                     @RANK_EXAMPLES@ = elementwise_add(X=@RANK_EXAMPLES@, Y=@RANK_MORE@) }
//
// The block contains all ops of role optimize except learning-rate schedules, which advance in each step so
// that all ranks have the same rate. Requires: no op that moves has a block.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/collective_ops.h"
#include "transpiler/passes/spell/example_shares.h"
#include "transpiler/passes/spell/moved_ops.h"
#include "transpiler/passes/spell/step_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {
namespace {

constexpr char kWhileLive[] = "update_while_live";
constexpr char kIsLive[] = "@RANK_IS_LIVE@";
constexpr char kLiveScope[] = "@RANK_LIVE_SCOPE@";
constexpr char kLiveExtents[] = "@RANK_EXTENTS@";
constexpr char kLiveElements[] = "@RANK_ELEMENTS@";
constexpr char kLiveMore[] = "@RANK_MORE@";

bool UpdatesWhileLive(const Op& op) { return Has(op.role(), OpRole::kOptimize); }

void CountLiveExamples(const std::string& counted, std::size_t rank, BlockEdit& body) {
  body.SetVar(TensorVar(kLiveExtents, DType::kInt32, Shape({static_cast<Dim>(rank)})));
  const Var elements = TensorVar(kLiveElements, DType::kInt32, Shape({1})), more = CountVar(kLiveMore);
  body.SetVar(elements);
  body.SetVar(more);
  body.Append(MakeExtents(counted, kLiveExtents).SetMadeBy(kWhileLive));
  body.Append(MakeElementCount(kLiveExtents, kLiveElements).SetMadeBy(kWhileLive));
  body.Append(MakeCast(elements, more, OpRole::kOptimize).SetMadeBy(kWhileLive));
  body.Append(MakeElementwise("elementwise_add", plan::kRankExamples, kLiveMore, plan::kRankExamples)
                  .SetMadeBy(kWhileLive));
}

}  // namespace

Result<Program> UpdateWhileLive(const Program& in, const PassContext&) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string counted, CountedByLoss(kWhileLive, in));
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  Var examples = CountVar(plan::kRankExamples), scope;
  examples.persistable = true;
  scope.name = kLiveScope;
  scope.kind = VarKind::kStepScopes;
  const Var live = RankLiveVar(), is_live = TensorVar(kIsLive, DType::kBool, Shape({1}));
  for (const Var& var : {live, examples, is_live, scope}) {
    if (main.FindVar(var.name) != nullptr) return NameTaken(kWhileLive, var.name);
    main.SetVar(var);
  }
  ConditionalSpec update{
      .condition = kIsLive, .in_place = {}, .scope = kLiveScope, .block = edit.AddBlock(0)};
  const MovedVars vars = VarsOfMoved(in, UpdatesWhileLive);
  BlockEdit& body = edit.block(update.block);
  if (const Op* const op = MoveOps(in, UpdatesWhileLive, vars, main, body)) {
    return InvalidArgument(
        "E-pass-uneven-block", kWhileLive, ": ", op->type(),
        ", which belongs to the update, has a block of its own, so that ranks with unequal ",
        "batches cannot leave it out; leave on_uneven out");
  }
  CountLiveExamples(counted, in.main().FindVar(counted)->shape().rank(), body);
  update.in_place = vars.outside;
  update.in_place.push_back(plan::kRankExamples);
  update.reads = {counted};
  const OpId at = LastMoved(in, UpdatesWhileLive);
  main.InsertAfter(at, MakeCast(live, is_live, OpRole::kOptimize).SetMadeBy(kWhileLive));
  main.InsertAfter(at, MakeConditional(update).SetMadeBy(kWhileLive));
  return edit.Apply();
}

}  // namespace penstock::passes
