// Jobs with pservers and rings: every gradient has exactly one exchange. A gradient that a trainer uses for
// an update is summed over the ranks once, as a mean; a gradient that pservers use is not summed over the
// ranks.
#include <algorithm>
#include <set>

#include "transpiler/check/facts/mean.h"
#include "transpiler/check/facts/rank_facts.h"
#include "transpiler/check/facts/rank_ops.h"

namespace penstock::check {
namespace {

class ExchangeRules {
 public:
  ExchangeRules(const RankFacts& rank, Findings& findings)
      : rank_(rank), trainer_(*rank.trainer), findings_(findings) {}

  void Run() {
    ReadGradients();
    for (const auto& [param, op] : trainer_.gradients) {
      const bool here = trainer_.updated_here.contains(param);
      const int times = TimesAdded(param);
      if (times == (here ? 1 : 0)) continue;
      findings_.Error(
          "E-check-exchange", *trainer_.file,
          here ? StrCat("updates ", param, ", whose gradient is added up over the ranks ", times,
                        " times; it must be once")
               : StrCat("adds up the gradient of ", param, " over the ranks, and a pserver merges it too"),
          op);
    }
    CheckMeans();
  }

 private:
  // All names of a parameter's gradient in the backward pass: clipping reads the one in its role pair and
  // writes another.
  void ReadGradients() {
    for (const OpEntry& entry : trainer_.file->program.main().ops()) {
      const Op& op = *entry.op;
      if (!Has(op.role(), OpRole::kBackward)) continue;
      ForEachPair(op, [&](std::string_view param, std::string_view grad) {
        std::set<std::string_view>& names = grads_[param];
        names.insert(grad);
        if (!Names(op.inputs(), grad)) return;
        for (const Slot& slot : op.outputs()) names.insert(slot.args.begin(), slot.args.end());
      });
    }
  }

  static bool Names(const std::vector<Slot>& slots, std::string_view name) {
    return std::any_of(slots.begin(), slots.end(), [&](const Slot& slot) {
      return std::find(slot.args.begin(), slot.args.end(), name) != slot.args.end();
    });
  }

  int TimesAdded(std::string_view param) {
    int times = 0;
    for (const Collective& one : rank_.main) {
      if (AddsUp(*one.op) && grads_[param].contains(one.op->InputName("X"))) ++times;
    }
    return times;
  }

  // The product of the in-place scales of a gradient before its sum.
  void CheckMeans() {
    ViewMap<float> scales;
    for (const OpEntry& entry : trainer_.file->program.main().ops()) {
      const Op& op = *entry.op;
      if (AddsUp(op) && rank_.exchanged.contains(op.InputName("X"))) {
        const auto scale = scales.find(op.InputName("X"));
        CheckMean(op, scale == scales.end() ? 1.0f : scale->second);
      } else if (op.type() == "scale" && op.Input("X") == op.Output("Out") &&
                 op.Input("ScaleTensor").empty()) {
        float& scale = scales.emplace(op.InputName("X"), 1.0f).first->second;
        scale *= op.GetOr<float>("scale", 1.0f);
      }
    }
    for (const auto& [scale, loss] : LossScales(trainer_.file->program, rank_.ranks)) {
      if (scale == 1.0f) continue;
      findings_.Error("E-check-merge-scale", *trainer_.file,
                      StrCat("scales the gradient of the loss by ", scale,
                             "; pservers take the mean of the gradients that follow, so it must be 1"),
                      loss);
    }
  }

  void CheckMean(const Op& op, float scale) {
    if (TakesMeanOf(scale, rank_.ranks)) return;
    findings_.Error("E-check-merge-scale", *trainer_.file,
                    StrCat("adds up ", op.InputName("X"), " scaled by ", scale, "; the mean of ", rank_.ranks,
                           " trainers needs ", 1.0f / static_cast<float>(rank_.ranks)),
                    &op);
  }

  const RankFacts& rank_;
  const TrainerFacts& trainer_;
  Findings& findings_;
  ViewMap<std::set<std::string_view>> grads_;  // by parameter
};

}  // namespace

void CheckBothExchanges(const RoleFacts& facts, Findings& findings) {
  if (facts.pservers.empty() || !facts.ranks()) return;
  for (const RankFacts& rank : ReadRanks(facts)) {
    if (rank.joins != nullptr) ExchangeRules(rank, findings).Run();  // else reported with the ranks
  }
}

}  // namespace penstock::check
