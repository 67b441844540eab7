// Damages of pservers' programs.
#include "operators/all_ops.h"
#include "tests/parity/check/damages.h"

namespace penstock::test {
namespace {

// The first optimize block with a coefficient of weight decay.
std::optional<OpAt> FindDecay(const Program& program) {
  return FindIf(program, [](const Op& op) { return op.type() == "scale" && op.role() == OpRole::kOptimize; });
}

const std::vector<Damage> kUpdates = {
    {"MergeInputMissing",
     [](check::RoleFiles& r) {
       const auto at = FindInner(Pserver(r), "sum");
       if (!at || OpOf(Pserver(r), *at).Input("X").size() < 2) return false;
       Change(Pserver(r), *at, [](Op& op) { op.AddInput("X", {op.InputName("X")}); });
       return true;
     },
     {"E-check-merge"}},
    {"MergeScaleWrong",
     [](check::RoleFiles& r) {
       const auto at = FindIf(
           Pserver(r), [](const Op& op) { return op.type() == "scale" && op.role() == OpRole::kForward; });
       if (at) Change(Pserver(r), *at, [](Op& op) { op.Set("scale", 1.0f); });
       return at.has_value();
     },
     {"E-check-merge-scale"}},
    {"OptimizerOnTheWrongSlice",
     [](check::RoleFiles& r) {
       std::optional<OpAt> first, second;
       for (int b = 1; b < Pserver(r).block_count(); ++b) {
         for (const OpEntry& entry : Pserver(r).block(b).ops()) {
           if (!IsOptimizer(*entry.op)) continue;
           (first ? second : first) = OpAt{b, entry.id};
         }
       }
       if (!second) return false;
       const std::string wrong = OpOf(Pserver(r), *first).InputName("Param");
       Change(Pserver(r), *second, [&](Op& op) {
         op.AddInput("Param", {wrong});
         op.AddOutput("ParamOut", {wrong});
       });
       return true;
     },
     {"E-check-updated-twice", "E-check-slice-order"}},
    {"OptimizerDoubled",
     [](check::RoleFiles& r) {
       const auto at = FindOptimizer(Pserver(r));
       if (at) Repeat(Pserver(r), *at);
       return at.has_value();
     },
     {"E-check-updated-twice"}},
    {"OptimizerMissing",
     [](check::RoleFiles& r) {
       const auto at = FindOptimizer(Pserver(r));
       if (at) Remove(Pserver(r), *at);
       return at.has_value();
     },
     {"E-check-no-update"}},
    {"StateOfWrongShape",
     [](check::RoleFiles& r) {
       const auto at = FindOptimizer(Pserver(r));
       const Op op = OpOf(Pserver(r), *at);
       const auto& states = AllOps().Find(op.type())->optimizer()->states;
       if (states.empty()) return false;
       const std::string name = op.InputName(states.front().slot);
       for (auto files : {&check::RoleFiles::pservers, &check::RoleFiles::pserver_startups}) {
         ChangeVar((r.*files).front().program, name,
                   [](Var& var) { var.type->shape = var.type->shape.WithRows(var.type->shape[0] * 2); });
       }
       return true;
     },
     {"E-check-verify", "E-check-start-shape"}},
    {"LrBlockMissing",
     [](check::RoleFiles& r) {
       const auto at = FindOp(Pserver(r), 0, "listen_and_serv");
       const int lr = OpOf(Pserver(r), *at).GetOr<std::int32_t>("lr_decay_block_id", -1);
       if (lr < 1) return false;
       Change(Pserver(r), *at, [](Op& op) {
         auto blocks = *op.Get<std::vector<BlockRef>>("optimize_blocks");
         blocks.erase(blocks.begin());
         op.Set("optimize_blocks", blocks);
         op.Set("lr_decay_block_id", -1);
       });
       return true;
     },
     {"E-check-lr-block"}},
    {"LrBlockEmptied",
     [](check::RoleFiles& r) {
       const auto at = FindOp(Pserver(r), 0, "listen_and_serv");
       const int lr = OpOf(Pserver(r), *at).GetOr<std::int32_t>("lr_decay_block_id", -1);
       if (lr < 1) return false;
       Pserver(r).MutableBlock(lr).SetOps({});
       return true;
     },
     {"E-check-lr-block"}},
    {"OptimizeBlockWithTheWrongParent",
     [](check::RoleFiles& r) {
       const auto at = FindOp(Pserver(r), 0, "listen_and_serv");
       const auto blocks = *OpOf(Pserver(r), *at).Get<std::vector<BlockRef>>("optimize_blocks");
       const int lr = OpOf(Pserver(r), *at).GetOr<std::int32_t>("lr_decay_block_id", -1);
       if (blocks.size() < 2) return false;
       Pserver(r).MutableBlock(blocks.back().index).set_parent(lr < 1 ? blocks.front().index : 0);
       return true;
     },
     {"E-check-parent"}},
    {"RegularizerCoefficientChanged",
     [](check::RoleFiles& r) {
       const auto at = FindDecay(Pserver(r));
       if (at)
         Change(Pserver(r), *at, [](Op& op) { op.Set("scale", op.GetOr<float>("scale", 1.0f) * 1.01f); });
       return at.has_value();
     },
     {"E-check-source"}},
    {"HyperparameterOfOneSliceChanged",
     [](check::RoleFiles& r) {
       const auto at = FindOptimizer(Pserver(r));
       const Op op = OpOf(Pserver(r), *at);
       for (const NamedAttr& attr : op.attrs()) {
         const auto* value = std::get_if<float>(&attr.value);
         if (value == nullptr) continue;
         Change(Pserver(r), *at, [&](Op& changed) { changed.Set(attr.name, *value + 0.25f); });
         return true;
       }
       return false;
     },
     {"E-check-slices-differ", "E-check-source"}},
    {"LearningRateOfAnotherSchedule",
     [](check::RoleFiles& r) {
       const auto at = FindOp(Pserver(r), 0, "listen_and_serv");
       const int lr = OpOf(Pserver(r), *at).GetOr<std::int32_t>("lr_decay_block_id", -1);
       if (lr < 1) return false;
       const auto scale = FindOp(Pserver(r), lr, "scale");
       if (scale) Change(Pserver(r), *scale, [](Op& op) { op.Set("scale", 0.75f); });
       return scale.has_value();
     },
     {"E-check-rate-differs", "E-check-source"}},
    {"LearningRateMultiplierDropped",
     [](check::RoleFiles& r) {
       // The optimizer of a parameter with a multiplier reads the scaled rate, from the last op of the lr
       // block; lets it read the rate itself.
       const auto at = FindOptimizer(Pserver(r));
       const std::string rate = OpOf(Pserver(r), *at).InputName("LearningRate");
       const auto scaled = FindIf(Pserver(r), [&](const Op& op) {
         return op.type() == "scale" && op.OutputName("Out") == rate && op.InputName("X") != rate;
       });
       if (!scaled) return false;
       const std::string plain = OpOf(Pserver(r), *scaled).InputName("X");
       Change(Pserver(r), *at, [&](Op& op) { op.AddInput("LearningRate", {plain}); });
       return true;
     },
     {"E-check-source"}},
    {"AVariableOfAnotherType",
     [](check::RoleFiles& r) {
       const auto at = FindOptimizer(Pserver(r));
       ChangeVar(Pserver(r), OpOf(Pserver(r), *at).InputName("Param"),
                 [](Var& var) { var.type->dtype = DType::kFp64; });
       return true;
     },
     {"E-check-message-type"}},
};

}  // namespace

const std::vector<Damage>& PserverDamages() { return kUpdates; }

}  // namespace penstock::test
