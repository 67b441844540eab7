#include "executor/kvstore/optimizer_arguments.h"

#include <algorithm>
#include <cmath>

#include "executor/kvstore/optimizer.h"

namespace penstock::kvstore {
namespace {

using Range = Argument::Range;

constexpr Argument kLearningRate = {"learning_rate", {}, Range::kAtLeast0};
constexpr Argument Rate(double value) { return {"learning_rate", value, Range::kAtLeast0}; }
constexpr Argument Momentum(double value) { return {"momentum", value, Range::kFraction}; }
constexpr Argument Beta1(double value = 0.9) { return {"beta1", value, Range::kFraction}; }
constexpr Argument Beta2(double value = 0.999) { return {"beta2", value, Range::kFraction}; }
constexpr Argument Epsilon(double value) { return {"epsilon", value, Range::kAtLeast0}; }
constexpr Argument Eps(double value) { return {"eps", value, Range::kAtLeast0}; }
constexpr Argument kLazy = {"lazy_update", 1, Range::kTruth};

struct OptimizerRow {
  std::string_view name;
  std::vector<Argument> arguments;
};

// In the order of names.
const std::vector<OptimizerRow>& OptimizerRows() {
  static const std::vector<OptimizerRow> kRows = {
      {"adadelta", {kLearningRate, {"rho", 0.9, Range::kFraction}, Epsilon(1e-5)}},
      {"adagrad", {kLearningRate, Eps(1e-7)}},
      {"adam", {Rate(0.001), Beta1(), Beta2(), Epsilon(1e-8), kLazy}},
      {"adamax", {Rate(0.002), Beta1(), Beta2()}},
      {"ccsgd", {kLearningRate, Momentum(0), kLazy}},
      {"dcasgd", {kLearningRate, Momentum(0), {"lamda", 0.04}}},
      {"ftml", {kLearningRate, Beta1(0.6), Beta2(), Epsilon(1e-8)}},
      {"ftrl", {Rate(0.1), {"lamda1", 0.01, Range::kAtLeast0}, {"beta", 1, Range::kAtLeast0}}},
      {"groupadagrad", {kLearningRate, Eps(1e-5)}},
      {"lamb",
       {Rate(0.001),
        Beta1(),
        Beta2(),
        Epsilon(1e-6),
        {"lower_bound", {}, Range::kAtLeast0},
        {"upper_bound", {}, Range::kAtLeast0},
        {"bias_correction", 1, Range::kTruth}}},
      {"lars",
       {kLearningRate,
        Momentum(0),
        {"eta", 0.001, Range::kAtLeast0},
        Eps(0),
        kLazy,
        {"momentum_correction", 1, Range::kTruth}}},
      {"lbsgd", {kLearningRate, Momentum(0)}},
      {"nadam", {Rate(0.001), Beta1(), Beta2(), Epsilon(1e-8), {"schedule_decay", 0.004, Range::kAtLeast0}}},
      {"nag", {kLearningRate, Momentum(0)}},
      {"rmsprop",
       {Rate(0.001),
        {"gamma1", 0.9, Range::kFraction},
        {"gamma2", 0.9, Range::kFraction},
        Epsilon(1e-8),
        {"centered", 0, Range::kTruth},
        {"clip_weights", {}, Range::kAbove0}}},
      {"sgd", {kLearningRate, Momentum(0), kLazy}},
      {"sgld", {kLearningRate, {"seed", 0, Range::kCount}}},
      {"signum", {Rate(0.01), Momentum(0.9), {"wd_lh", 0, Range::kAtLeast0}}},
      {"test", {kLearningRate}},
  };
  return kRows;
}

const std::vector<Argument>& OfAllOptimizers() {
  static const std::vector<Argument> kArguments = {
      {"wd", 0, Range::kAtLeast0},
      {"rescale_grad", 1},
      {"clip_gradient", {}, Range::kAny},
      {"multi_precision", 0, Range::kTruth},
      {"begin_num_update", 0, Range::kCount},
  };
  return kArguments;
}

const OptimizerRow* FindRow(std::string_view optimizer) {
  const auto& rows = OptimizerRows();
  const auto found = std::ranges::find(rows, optimizer, &OptimizerRow::name);
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

bool HasOptimizer(std::string_view optimizer) { return FindRow(optimizer) != nullptr; }

std::vector<const Argument*> ArgumentsOf(std::string_view optimizer) {
  std::vector<const Argument*> arguments;
  for (const Argument& argument : FindRow(optimizer)->arguments) arguments.push_back(&argument);
  for (const Argument& argument : OfAllOptimizers()) arguments.push_back(&argument);
  return arguments;
}

const Argument* FindArgument(std::string_view optimizer, std::string_view argument) {
  for (const Argument* one : ArgumentsOf(optimizer)) {
    if (one->name == argument) return one;
  }
  return nullptr;
}

bool InRange(const Argument& argument, double value) {
  if (!std::isfinite(value)) return false;
  switch (argument.range) {
    case Range::kAny:
      return true;
    case Range::kAtLeast0:
      return value >= 0;
    case Range::kAbove0:
      return value > 0;
    case Range::kFraction:
      return value >= 0 && value < 1;
    case Range::kTruth:
      return value == 0 || value == 1;
    case Range::kCount:
      break;
  }
  return value >= 0 && value <= 9007199254740992.0 && value == std::floor(value);
}

std::string_view RangeOf(const Argument& argument) {
  switch (argument.range) {
    case Range::kAny:
      return "finite";
    case Range::kAtLeast0:
      return "at least 0";
    case Range::kAbove0:
      return "above 0";
    case Range::kFraction:
      return "at least 0 and below 1";
    case Range::kTruth:
      return "true or false";
    case Range::kCount:
      break;
  }
  return "an integer of at least 0";
}

std::vector<std::string> OptimizerNames() {
  std::vector<std::string> names;
  for (const OptimizerRow& row : OptimizerRows()) {
    if (row.name != "lbsgd") names.emplace_back(row.name);
  }
  return names;
}

}  // namespace penstock::kvstore
