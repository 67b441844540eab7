// Delay compensation: each trainer's gradient is corrected by the change of the parameter since that trainer
// fetched it, g + l (w - w_t) g g. The rule runs the ops on numbers, because any ops may compute the
// correction.
#include <algorithm>
#include <cmath>

#include "transpiler/check/facts/facts.h"

namespace penstock::check {
namespace {

constexpr char kOwnCopy[] = "ref_by_trainer_id";
constexpr double kTolerance = 1e-9;

// Values of a block's variables; outputs of unknown ops have none.
using Values = std::unordered_map<std::string_view, double>;

std::optional<double> Find(const Values& values, std::string_view name) {
  const auto it = values.find(name);
  return it == values.end() ? std::nullopt : std::optional(it->second);
}

// The result of an op of known arithmetic on single numbers, for trainer t.
std::optional<double> Compute(const Op& op, const Values& values, std::size_t t) {
  const auto x = Find(values, op.InputName("X"));
  if (op.type() == kOwnCopy) {
    const auto& copies = op.Input("X");
    return t < copies.size() ? Find(values, copies[t]) : std::nullopt;
  }
  if (op.type() == "scale" && x && op.Input("ScaleTensor").empty()) {
    const double scale = op.GetOr<float>("scale", 1.0f), bias = op.GetOr<float>("bias", 0.0f);
    return op.GetOr<bool>("bias_after_scale", true) ? *x * scale + bias : (*x + bias) * scale;
  }
  if (op.type() == "sum") {
    double sum = 0;
    for (const std::string& name : op.Input("X")) {
      const auto term = Find(values, name);
      if (!term) return std::nullopt;
      sum += *term;
    }
    return sum;
  }
  const auto y = Find(values, op.InputName("Y"));
  if (!x || !y) return std::nullopt;
  if (op.type() == "elementwise_add") return *x + *y;
  if (op.type() == "elementwise_sub") return *x - *y;
  if (op.type() == "elementwise_mul") return *x * *y;
  return std::nullopt;
}

class DelayRules {
 public:
  DelayRules(const PserverFacts& pserver, Findings& findings) : pserver_(pserver), findings_(findings) {}

  void Run() {
    const bool told = pserver_.said().keeps_backups();
    for (const UpdateBlock& update : pserver_.updates) CheckBlock(update, told);
    if (told && pserver_.mode == ServeMode::kSync) {
      findings_.Warning("W-check-dc-asgd", *pserver_.file,
                        "compensates for delay, but says that it serves in sync mode, where there is none",
                        pserver_.serve);
    }
  }

 private:
  // Delay compensation needs both the attribute and the ops. Rows are applied without compensation.
  void CheckBlock(const UpdateBlock& update, bool told) {
    const auto& ops = pserver_.file->program.block(update.block).ops();
    if (ops.empty()) return;  // the server holds nothing
    const auto own = std::find_if(ops.begin(), ops.end(),
                                  [](const OpEntry& entry) { return entry.op->type() == kOwnCopy; });
    const bool done = own != ops.end();
    const Var* grad = update.grad_var;
    const bool rows = grad != nullptr && grad->kind == VarKind::kSelectedRows;
    if (told != done && !(told && rows)) {
      Error(StrCat("dc_asgd is ", told ? "set" : "not set", ", but block ", update.block,
                   done ? " compensates for delay" : " does not compensate for delay"),
            *pserver_.serve);
    }
    if (!done || update.optimizer == nullptr) return;
    CheckCopies(update, *own->op);
    CheckCorrection(update, *own->op);
  }

  void Error(std::string message, const Op& op) {
    findings_.Error("E-check-dc-asgd", *pserver_.file, std::move(message), &op);
  }

  // A pserver keeps the value that trainer t fetched under a separate name, which the op must use.
  void CheckCopies(const UpdateBlock& update, const Op& own) {
    const auto& copies = own.Input("X");
    if (static_cast<int>(copies.size()) != pserver_.trainers) {
      findings_.Error("E-check-trainers", *pserver_.file,
                      StrCat("keeps what ", copies.size(), " trainers have, but serves ", pserver_.trainers),
                      &own);
    }
    for (std::size_t t = 0; t < copies.size(); ++t) {
      const std::string kept = StrCat(update.param, ".trainer_", t, "_bak");
      if (copies[t] == kept) continue;
      Error(StrCat("takes ", copies[t], " for what trainer ", t, " has of ", update.param,
                   "; pservers keep that in ", kept),
            own);
    }
    const Var* id = pserver_.file->program.FindVar(update.block, own.InputName("TrainerId"));
    if (id == nullptr || !id->type || id->kind != VarKind::kTensor || id->type->dtype != DType::kInt64 ||
        id->shape().Count() != Dim{1}) {
      Error(StrCat(own.InputName("TrainerId"), " is to be the number of a trainer, one i64"), own);
    }
  }

  // The gradient that trainer t's update uses, computed from values of the parameter, its copies and the
  // arriving variables; nullopt if it depends on an op of unknown arithmetic.
  std::optional<double> Used(const UpdateBlock& update, const Op& own, std::size_t t, double param,
                             double copy, double grad) const {
    Values values;
    values[update.param] = param;
    for (std::size_t i = 0; i < own.Input("X").size(); ++i) values[own.Input("X")[i]] = i == t ? copy : 1e3;
    for (const std::string_view name : update.consumes) values[name] = grad;
    for (const OpEntry& entry : pserver_.file->program.block(update.block).ops()) {
      if (entry.op.get() == update.optimizer) break;
      const auto made = Compute(*entry.op, values, t);
      for (const Slot& slot : entry.op->outputs()) {
        for (const std::string& name : slot.args) {
          values.erase(name);
          if (made) values[name] = *made;
        }
      }
    }
    return Find(values, update.grad);
  }

  // The correction is a constant times the change times the squared gradient for all values, and without
  // change the gradient is used as it is.
  void CheckCorrection(const UpdateBlock& update, const Op& own) {
    struct Sample {
      double param, copy, grad;
    };
    constexpr Sample kSamples[] = {{0.75, 0.5, 1.25}, {0.75, 1.5, 1.25}, {0.75, 0.5, -0.5}, {-1.5, 0.5, 2.0}};
    std::optional<double> factor;
    for (std::size_t t = 0; t < own.Input("X").size(); ++t) {
      for (const Sample& sample : kSamples) {
        const auto used = Used(update, own, t, sample.param, sample.copy, sample.grad);
        const auto fresh = Used(update, own, t, sample.param, sample.param, sample.grad);
        if ((!used || !fresh) && !OnlyArithmetic(update)) return;  // depends on unknown arithmetic
        if (!used || !fresh) return NotCorrected(update, own, t);
        const double of = (*used - *fresh) / ((sample.param - sample.copy) * *fresh * *fresh);
        if (!factor) factor = of;
        if (*factor > 0 && std::abs(of - *factor) <= kTolerance * *factor) continue;
        return NotCorrected(update, own, t);
      }
    }
  }

  bool OnlyArithmetic(const UpdateBlock& update) const {
    constexpr std::string_view kKnown[] = {kOwnCopy,          "scale",           "sum",
                                           "elementwise_add", "elementwise_sub", "elementwise_mul"};
    const auto& ops = pserver_.file->program.block(update.block).ops();
    return std::all_of(ops.begin(), ops.end(), [&](const OpEntry& entry) {
      return entry.op.get() == update.optimizer ||
             std::find(std::begin(kKnown), std::end(kKnown), entry.op->type()) != std::end(kKnown);
    });
  }

  void NotCorrected(const UpdateBlock& update, const Op& own, std::size_t t) {
    Error(StrCat("does not correct the gradient of ", update.param, " by a factor times (", update.param,
                 " - what trainer ", t, " has of it) times the gradient squared"),
          own);
  }

  const PserverFacts& pserver_;
  Findings& findings_;
};

}  // namespace

void CheckDelay(const RoleFacts& facts, Findings& findings) {
  for (const PserverFacts& pserver : facts.pservers) DelayRules(pserver, findings).Run();
}

}  // namespace penstock::check
