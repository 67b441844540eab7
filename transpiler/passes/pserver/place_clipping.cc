// Inserts clipping by a norm over all gradients before the updates: for each slice a block that measures its
// merged gradient, then one block in which pservers exchange their measures and each computes the common
// values. Blocks with the same parent run in parallel, after all blocks before them, so all of this is
// complete when the first update begins.
//
//   plan    w: rows [0, 2) on pserver 0, rows [2, 3) on pserver 1
//   after   (pserver 0)  block 1 in 0 { w.square = square(X=w@GRAD.block0)
//                                       w.norm.block0 = reduce_sum(X=w.square) }
//           block 2 in 1 { [w.norm.block0, w.norm.block1] = exchange_sums(X=w.norm.block0)
//                          {epmap=[first server, second], endpoints=[both]}
//                          w.norm = sum(X=[both]) ; norm = sqrt(X=w.norm) ; ... }
//
// All servers sum the measures in the same order, that of parameters and slices. Clipping that needs no other
// gradient is part of the update itself. Requires: PlaceLrSchedule ran; PlaceOptimizers runs next and puts
// its blocks below the last one made here.
#include <algorithm>
#include <map>

#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/passes/spell/update_block.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {
namespace {

constexpr char kPlaceClipping[] = "place_clipping";

class Clipper {
 public:
  Clipper(Program& out, const PassContext& context) : out_(out), context_(context) {
    for (const plan::TrainedParam& trained : context.analysis.params) trained_[trained.param] = &trained;
  }

  Status AddMeasures(const std::vector<ServerUpdate>& updates) {
    const int parent = out_.block_count() - 1;
    UpdateBlocks blocks(out_, context_);
    for (const ServerUpdate& update : updates) {
      if (update.trained->measures.empty()) continue;
      PENSTOCK_RETURN_IF_ERROR(blocks.AddMeasures(SiteOf(context_.plan, update), parent, kPlaceClipping));
    }
    return OkStatus();
  }

  Status AddShared() {
    const int block = out_.AddBlock(out_.block_count() - 1).index();
    const ExchangeSpec exchange = Exchange();
    if (exchange.addresses.size() > 1) Append(block, MakeExchangeSums(exchange));
    for (const plan::ParamPlacement& param : context_.plan.params) {
      if (!param.sliced()) continue;
      for (const std::string& measure : Measures(param)) AddUp(param, measure, block);
    }
    for (const OpId id : context_.analysis.shared_clip_ops) {
      const Op* op = context_.main.main().FindOp(id);
      if (op == nullptr) return PassError(kPlaceClipping, "an op of the analysis is gone");
      for (const std::string& name : op->OutputNames()) Declare(name, name);
      Append(block, ServerCopy(*op, context_.ops));
    }
    return OkStatus();
  }

 private:
  const std::vector<std::string>& Measures(const plan::ParamPlacement& param) const {
    return trained_.at(param.param)->measures;
  }
  static std::string NameOf(const plan::ParamPlacement& param, int slice, const std::string& measure) {
    return param.sliced() ? plan::OwnName(param, slice, measure) : measure;
  }

  // The measures of all servers, in the order of parameters and slices, and the servers that take part.
  ExchangeSpec Exchange() {
    ExchangeSpec spec;
    std::vector<bool> takes_part(context_.plan.pservers.size(), false);
    for (const plan::ParamPlacement& param : context_.plan.params) {
      if (!ClipsTogether(*trained_.at(param.param))) continue;
      for (std::size_t slice = 0; slice < param.slices.size(); ++slice) {
        const int pserver = param.slices[slice].pserver;
        takes_part[static_cast<std::size_t>(pserver)] = true;
        for (const std::string& measure : Measures(param)) {
          std::string name = NameOf(param, static_cast<int>(slice), measure);
          Declare(measure, name);
          if (pserver == context_.self.index) spec.own.push_back(name);
          spec.all.push_back(std::move(name));
          spec.owners.push_back(context_.plan.pservers[static_cast<std::size_t>(pserver)]);
        }
      }
    }
    for (std::size_t i = 0; i < takes_part.size(); ++i) {
      if (takes_part[i]) spec.addresses.push_back(context_.plan.pservers[i]);
    }
    return spec;
  }

  void AddUp(const plan::ParamPlacement& param, const std::string& measure, int block) {
    NameList parts;
    for (int slice = 0; slice < static_cast<int>(param.slices.size()); ++slice) {
      parts.push_back(NameOf(param, slice, measure));
    }
    Declare(measure, measure);
    Append(block, MakeSum(parts, measure));
  }

  // Declares `name` like the user's variable `like`.
  void Declare(const std::string& like, const std::string& name) {
    const Var* var = context_.main.main().FindVar(like);
    if (var == nullptr || out_.main().FindVar(name) != nullptr) return;
    Var copy = ServerCopy(*var);
    copy.name = name;
    out_.MutableBlock(0).SetVar(std::move(copy));
  }

  void Append(int block, Op op) { out_.MutableBlock(block).Append(std::move(op.SetMadeBy(kPlaceClipping))); }

  Program& out_;
  const PassContext& context_;
  std::map<std::string, const plan::TrainedParam*, std::less<>> trained_;
};

}  // namespace

Result<Program> PlaceClipping(const Program& in, const PassContext& context) {
  const std::vector<ServerUpdate>& updates = context.shares.UpdatesOn(context.self.index);
  const bool together = std::any_of(updates.begin(), updates.end(), [](const ServerUpdate& update) {
    return ClipsTogether(*update.trained);
  });
  if (!together) return in;
  Program out = in;
  Clipper clipper(out, context);
  PENSTOCK_RETURN_IF_ERROR(clipper.AddMeasures(updates));
  PENSTOCK_RETURN_IF_ERROR(clipper.AddShared());
  return out;
}

}  // namespace penstock::passes
