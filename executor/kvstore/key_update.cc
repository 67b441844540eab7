// UpdateProgram: the variables and ops of a key's update.
#include <set>
#include <utility>

#include "executor/kvstore/optimizer_program.h"
#include "framework/base/hash.h"
#include "framework/base/strings.h"

namespace penstock::kvstore {
namespace {

// What an optimizer's op is and keeps.
struct Rule {
  std::string op = "keyed_update", rule;
  int states = 0;                                 // shaped like the value
  std::string other_state = {};                   // "Product" or "History"
  bool lazy = false;                              // rows without a gradient stay
  std::map<std::string, std::string> attrs = {};  // arguments whose attribute has another name
};

Rule RuleOf(const KeyOptimizer& optimizer) {
  const std::string& name = optimizer.name;
  const auto on = [&](const char* argument) { return optimizer.Number(argument) != 0; };
  const auto whole = [](std::string rule, int states, std::string other = {}) {
    return Rule{.op = "keyed_update_whole",
                .rule = std::move(rule),
                .states = states,
                .other_state = std::move(other)};
  };
  if (name == "sgd" || name == "ccsgd")
    return {.rule = "sgd", .states = on("momentum"), .lazy = on("lazy_update")};
  if (name == "adam") return {.rule = name, .states = 2, .lazy = on("lazy_update")};
  if (name == "adagrad") return {.rule = name, .states = 1, .lazy = true, .attrs = {{"eps", "epsilon"}}};
  if (name == "ftrl") return {.rule = name, .states = 2, .lazy = true, .attrs = {{"lamda1", "lamda"}}};
  if (name == "nag" || name == "signum") return {.rule = name, .states = on("momentum")};
  if (name == "rmsprop") return {.rule = name, .states = on("centered") ? 3 : 1};
  if (name == "nadam") return {.rule = name, .states = 2, .other_state = "Product"};
  if (name == "ftml") return {.rule = name, .states = 3};
  if (name == "dcasgd") return {.rule = name, .states = 1};
  if (name == "test") return {.rule = name, .lazy = true};
  if (name == "lamb") return whole(name, 2);
  if (name == "sgld") return whole(name, 0);
  if (name == "lars" || name == "groupadagrad") {
    Rule rule = name == "lars" ? whole(name, on("momentum")) : whole(name, 0, "History");
    rule.attrs = {{"eps", "epsilon"}};
    return rule;
  }
  return {.rule = name, .states = 2};  // adadelta, adamax
}

// MXNet's lars leaves out biases and the parameters of normalisations.
bool Adapts(const KeyOptimizer& optimizer, const std::string& key) {
  const auto named = optimizer.param_names.find(key);
  const std::string& name = named == optimizer.param_names.end() ? key : named->second;
  return !EndsWith(name, "gamma") && !EndsWith(name, "beta") && !EndsWith(name, "bias");
}

void SetAttrs(const KeyOptimizer& optimizer, const KeyFacts& key, const Rule& rule, Op& op) {
  op.Set("rule", rule.rule);
  if (rule.op == "keyed_update") op.Set("lazy", rule.lazy);
  // These are variables, or are handled here.
  static const std::set<std::string, std::less<>> kNoAttr = {
      "learning_rate", "wd", "rescale_grad", "multi_precision", "begin_num_update", "lazy_update", "seed"};
  static const std::set<std::string, std::less<>> kTruths = {"centered", "bias_correction",
                                                             "momentum_correction"};
  for (const auto& [argument, value] : optimizer.numbers) {
    if (kNoAttr.contains(argument)) continue;
    const auto renamed = rule.attrs.find(argument);
    const std::string& attr = renamed == rule.attrs.end() ? argument : renamed->second;
    if (attr == "momentum" && rule.rule == "dcasgd") continue;
    op.Set(attr, kTruths.contains(attr) ? Attr(value != 0) : Attr(static_cast<float>(value)));
  }
  if (rule.rule == "lars") op.Set("adapt", Adapts(optimizer, key.key));
  if (rule.rule == "sgld") {
    const auto seed = static_cast<std::uint64_t>(optimizer.Number("seed"));
    op.Set("noise_key", static_cast<std::int64_t>(Fnv1a64(key.key, kFnvOffset ^ seed)));
  }
}

Status CheckKey(const KeyOptimizer& optimizer, const KeyFacts& key) {
  if (key.dtype != DType::kFp16 && key.dtype != DType::kFp32 && key.dtype != DType::kFp64)
    return InvalidArgument("E-kv-optimizer-type", "key ", key.key, " is ", DTypeName(key.dtype),
                           "; an optimizer updates f16, f32 and f64");
  if (optimizer.name == "groupadagrad" && !key.rows)
    return Unimplemented("E-kv-optimizer-refused", "groupadagrad: key ", key.key,
                         " has dense gradients; it updates by rows only");
  if (optimizer.name == "adagrad" && key.rows && optimizer.Number("wd") != 0)
    return Unimplemented("E-kv-optimizer-refused", "adagrad: wd is ", optimizer.Number("wd"), ", and key ",
                         key.key, " has gradients of rows; it has no weight decay by rows");
  return OkStatus();
}

class UpdateBuilder {
 public:
  UpdateBuilder(const KeyOptimizer& optimizer, const KeyFacts& key)
      : key_(key), rule_(RuleOf(optimizer)), type_(key.dtype == DType::kFp16 ? DType::kFp32 : key.dtype) {}

  KeyUpdate Build(const KeyOptimizer& optimizer) {
    Block& start = made_.program.MutableBlock(KeyUpdate::kStart);
    made_.param = Declare(start, "", type_, key_.shape, true);
    made_.grad = Declare(start, "@GRAD", type_, key_.shape, false);
    if (key_.rows) {
      Var rows = *start.FindVar(made_.grad);
      rows.kind = VarKind::kSelectedRows;
      start.SetVar(std::move(rows));
    }
    Op op{Word(rule_.op)};
    op.AddInput("Param", {made_.param}).AddInput("Grad", {made_.grad});
    AddScalar(start, op, "LearningRate", "@RATE", made_.rate);
    AddScalar(start, op, "WeightDecay", "@DECAY", made_.decay);
    AddScalar(start, op, "Count", "@COUNT", made_.count);
    AddScalar(start, op, "Rescale", "@RESCALE", made_.rescale);
    op.AddOutput("ParamOut", {made_.param});
    for (int i = 1; i <= rule_.states; ++i) AddState(start, op, StrCat("State", i), type_, key_.shape, 0);
    if (rule_.other_state == "Product") AddState(start, op, "Product", DType::kFp64, {1}, 1);
    if (rule_.other_state == "History")
      AddState(start, op, "History", type_, {key_.shape.rank() == 0 ? 1 : key_.shape[0], 1}, 0);
    SetAttrs(optimizer, key_, rule_, op);
    op.SetRole(OpRole::kOptimize).SetRolePair(made_.param, made_.grad);
    made_.program.AddBlock(KeyUpdate::kStart).Append(std::move(op));
    return std::move(made_);
  }

 private:
  std::string Declare(Block& block, std::string_view suffix, DType type, const Shape& shape,
                      bool persistable) {
    Var var = TensorVar(StrCat(key_.variable.empty() ? key_.key : key_.variable, suffix), type, shape);
    var.persistable = persistable;
    std::string name = var.name;
    block.SetVar(std::move(var));
    return name;
  }
  void AddScalar(Block& block, Op& op, std::string_view slot, std::string_view suffix, std::string& name) {
    name = Declare(block, suffix, DType::kFp64, {1}, true);
    op.AddInput(slot, {name});
  }
  void AddState(Block& block, Op& op, const std::string& slot, DType type, const Shape& shape, float value) {
    const std::string name = Declare(block, StrCat("@", slot), type, shape, true);
    op.AddInput(slot, {name}).AddOutput(slot + "Out", {name});
    block.Append(Op("fill_constant")
                     .AddOutput("Out", {name})
                     .Set("shape", std::vector<std::int64_t>(shape.dims().begin(), shape.dims().end()))
                     .Set("dtype", static_cast<std::int32_t>(type))
                     .Set("value", value));
    made_.states.push_back(name);
  }

  const KeyFacts& key_;
  const Rule rule_;
  const DType type_;
  KeyUpdate made_;
};

}  // namespace

Result<KeyUpdate> UpdateProgram(const KeyOptimizer& optimizer, const KeyFacts& key) {
  PENSTOCK_RETURN_IF_ERROR(CheckKey(optimizer, key));
  if (optimizer.program != nullptr) return UpdateByProgram(*optimizer.program, key);
  return UpdateBuilder(optimizer, key).Build(optimizer);
}

bool KeepSameStates(const KeyOptimizer& a, const KeyOptimizer& b) {
  if (a.program != nullptr || b.program != nullptr)
    return a.program != nullptr && b.program != nullptr && a.program->states == b.program->states;
  const Rule one = RuleOf(a), other = RuleOf(b);
  return one.rule == other.rule && one.states == other.states && one.other_state == other.other_state;
}

void SetNumbers(const KeyUpdate& update, const KeyNumbers& numbers, Scope& scope) {
  if (update.rate.empty()) return;
  const auto set = [&scope](const std::string& name, double value) {
    Tensor& tensor = scope.FindOrCreate(name)->As<Tensor>();
    tensor.Refit(DType::kFp64, {1});
    *tensor.Data<double>() = value;
  };
  set(update.rate, numbers.rate);
  set(update.decay, numbers.decay);
  set(update.count, numbers.count);
  set(update.rescale, numbers.rescale);
}

}  // namespace penstock::kvstore
