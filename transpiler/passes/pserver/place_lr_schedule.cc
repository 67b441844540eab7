// Copies the learning-rate ops into a separate block, which a pserver runs once per step before its updates,
// and the blocks that conditional ops enter below it. Leaves out ops on which none of the pserver's updates
// depends; if none is left, makes no block (lr_ops.h).
//
//   before  (main)    lr = scale(X=decay) @lr_sched
//   after   (pserver) block 1 in 0 { lr = scale(X=decay) @lr_sched }
//
// Ops that compute a rate without the schedule role, and ops that advance a user's own counter which the
// schedule reads, get the role here.
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/lr_ops.h"
#include "transpiler/passes/spell/server_copy.h"

namespace penstock::passes {
namespace {

constexpr char kPlaceLrSchedule[] = "place_lr_schedule";

class LrCopier {
 public:
  LrCopier(Program& out, const PassContext& context) : out_(out), context_(context) {}

  // A block that does not exist, or contains itself, is a broken program; depth is bounded by the number of
  // blocks.
  Status Copy(const Op& op, int into, int depth) {
    Op copy = ServerCopy(op, context_.ops);
    const BlockRef* inner = op.Get<BlockRef>(kSubBlockAttr);
    if (inner != nullptr) {
      if (inner->index <= 0 || inner->index >= context_.main.block_count() ||
          depth > context_.main.block_count()) {
        return InvalidArgument("E-pass-sub-block", kPlaceLrSchedule, ": ", op.type(), " enters block ",
                               inner->index, ", which is not there");
      }
      copy.Set(kSubBlockAttr, BlockRef{out_.block_count()});
      PENSTOCK_RETURN_IF_ERROR(CopyBlock(context_.main.block(inner->index), into, depth + 1));
    }
    out_.MutableBlock(into).Append(std::move(copy.SetMadeBy(kPlaceLrSchedule)));
    return OkStatus();
  }

  // Like Fluid, declares all variables that its ops name again in each copied block.
  Status CopyBlock(const Block& from, int parent, int depth) {
    const int index = out_.AddBlock(parent).index();
    for (const VarRef& var : from.vars()) out_.MutableBlock(index).SetVar(ServerCopy(*var));
    for (const OpEntry& entry : from.ops()) {
      Declare(*entry.op, index);
      PENSTOCK_RETURN_IF_ERROR(Copy(*entry.op, index, depth));
    }
    return OkStatus();
  }

  void Declare(const Op& op, int block) {
    for (const auto& names : {op.InputNames(), op.OutputNames()}) {
      for (const std::string& name : names) {
        const Var* var = context_.main.main().FindVar(name);
        if (var != nullptr && out_.block(block).FindVar(name) == nullptr) {
          out_.MutableBlock(block).SetVar(ServerCopy(*var));
        }
      }
    }
  }

 private:
  Program& out_;
  const PassContext& context_;
};

}  // namespace

Result<Program> PlaceLrSchedule(const Program& in, const PassContext& context) {
  const std::vector<OpId> lr_ops = LrOpsOn(context, context.self.index);
  if (lr_ops.empty()) return in;
  Program out = in;
  LrCopier copier(out, context);
  const int lr_block = out.AddBlock(0).index();
  for (const OpId id : lr_ops) {
    const Op* op = context.main.main().FindOp(id);
    if (op == nullptr) return PassError(kPlaceLrSchedule, "an op of the analysis is gone");
    copier.Declare(*op, 0);
    const bool is_marked = Has(op->role(), OpRole::kLrSched);
    PENSTOCK_RETURN_IF_ERROR(copier.Copy(is_marked ? *op : Op(*op).SetRole(OpRole::kLrSched), lr_block, 0));
  }
  return out;
}

}  // namespace penstock::passes
