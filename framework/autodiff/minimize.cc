#include "framework/autodiff/minimize.h"

#include <algorithm>

#include "framework/autodiff/op_writer.h"
#include "framework/autodiff/regularize.h"
#include "framework/op/conform.h"

namespace penstock {
namespace {

constexpr char kScope[] = "optimizer";  // the name scope of each update

// The ops of an optimizer over one program pair.
class Application {
 public:
  Application(const OpRegistry& ops, Program& main, Program& startup, Naming naming,
              const OptimizerSpec& spec, const OpDef& def)
      : startup_(startup),
        naming_(naming),
        spec_(spec),
        def_(def),
        out_(ops, main, naming.scopes),
        initial_out_(ops, startup, naming.scopes),
        prototype_(def.type()) {}

  Result<MinimizeResult> Run(std::vector<ParamGrad> params_grads) {
    MinimizeResult result;
    result.params_grads = params_grads;
    for (const StateDef& state : optimizer().states) result.accumulators.push_back(state.accumulator);
    PENSTOCK_RETURN_IF_ERROR(SetAttrs());
    std::sort(params_grads.begin(), params_grads.end(),
              [](const ParamGrad& a, const ParamGrad& b) { return a.first < b.first; });
    PENSTOCK_RETURN_IF_ERROR(AddRegularization(out_, naming_.names, naming_.scopes, spec_, params_grads));
    std::erase_if(params_grads, [&](const ParamGrad& pair) { return !Declared(pair.first).facts.trainable; });
    const bool sharded = PutShardedTablesFirst(params_grads);

    const std::size_t begin = out_.program().main().ops().size();
    const std::map<std::string, std::string> devices = DevicesOf(params_grads);
    if (sharded) PENSTOCK_RETURN_IF_ERROR(MakeLearningRateInFirstUpdate());
    for (const auto& [param, grad] : params_grads) {
      PENSTOCK_ASSIGN_OR_RETURN(result.states[param], MakeStates(Declared(param), devices.at(param)));
    }
    if (!sharded) PENSTOCK_RETURN_IF_ERROR(MakeLearningRate());
    result.learning_rate = learning_rate_;
    for (const ParamGrad& pair : params_grads) {
      out_.SetDevice(devices.at(pair.first));
      PENSTOCK_RETURN_IF_ERROR(AppendUpdate(pair, result.states[pair.first]));
    }
    out_.SetDevice("");
    for (const ParamGrad& pair : params_grads) {
      PENSTOCK_RETURN_IF_ERROR(AdvanceStates(pair, result.states[pair.first]));
    }
    const std::vector<OpEntry>& ops = out_.program().main().ops();
    for (std::size_t i = begin; i < ops.size(); ++i) result.optimizer_ops.push_back(ops[i].id);
    PlaceInitializers();
    return result;
  }

 private:
  const OptimizerDef& optimizer() const { return *def_.optimizer(); }
  Var Declared(const std::string& name) { return *out_.program().FindVar(0, name); }

  Status SetAttrs() {
    for (const NamedAttr& attr : spec_.attrs) {
      if (def_.FindAttr(attr.name) == nullptr) {
        return InvalidArgument("E-optimizer-attr", "optimizer ", def_.type(), " has no attribute ",
                               attr.name);
      }
      prototype_.Set(attr.name, attr.value);
    }
    for (const auto& [slot, name] : spec_.inputs) {
      if (def_.FindInput(slot) == nullptr || out_.program().FindVar(0, name) == nullptr) {
        return InvalidArgument("E-optimizer-attr", "optimizer ", def_.type(), " cannot take ", slot, " from ",
                               name, ", which must be a variable of the program");
      }
    }
    return OkStatus();
  }

  // Moves the updates of tables sharded by id to the front, as Fluid does. Returns whether there is such a
  // table.
  bool PutShardedTablesFirst(std::vector<ParamGrad>& params_grads) {
    NameSet tables;
    for (const OpEntry& entry : out_.program().main().ops()) {
      const Attr* sharded = entry.op->FindAttr("is_distributed");
      if (sharded == nullptr || ConvertAttr(*sharded, AttrKind::kBool) != Attr(true)) continue;
      for (std::string& name : entry.op->InputNames()) tables.insert(std::move(name));
    }
    const auto others =
        std::stable_partition(params_grads.begin(), params_grads.end(),
                              [&](const ParamGrad& pair) { return tables.contains(pair.first); });
    return others != params_grads.begin();
  }

  // The device of the first op that reads each parameter; the parameter's state and update are placed there.
  std::map<std::string, std::string> DevicesOf(const std::vector<ParamGrad>& params_grads) {
    std::map<std::string, std::string> devices;
    for (const ParamGrad& pair : params_grads) devices[pair.first];
    NameSet found;
    for (const OpEntry& entry : out_.program().main().ops()) {
      for (const std::string& name : entry.op->InputNames()) {
        const auto it = devices.find(name);
        if (it == devices.end() || !found.insert(name).second) continue;
        it->second = entry.op->GetOr<std::string>(kDeviceAttr, "");
      }
    }
    return devices;
  }

  Result<double> InitialOf(const StateDef& state) const {
    if (const auto given = spec_.initial.find(state.accumulator); given != spec_.initial.end())
      return given->second;
    if (state.initial_attr.empty()) return state.initial;
    if (const float* value = prototype_.Get<float>(state.initial_attr)) return static_cast<double>(*value);
    const AttrDef* attr = def_.FindAttr(state.initial_attr);
    if (attr != nullptr && attr->default_value && std::holds_alternative<float>(*attr->default_value)) {
      return static_cast<double>(std::get<float>(*attr->default_value));
    }
    return InvalidArgument("E-optimizer-attr", "optimizer ", def_.type(), " needs attribute ",
                           state.initial_attr, ", from which its state ", state.slot, " starts");
  }

  Result<std::vector<std::string>> MakeStates(const Var& param, const std::string& device) {
    std::vector<std::string> names;
    for (const StateDef& state : optimizer().states) {
      PENSTOCK_ASSIGN_OR_RETURN(const double initial, InitialOf(state));
      const std::string prefix = spec_.name.empty() ? "" : spec_.name + "_";
      names.push_back(naming_.names.Generate(StrCat(param.name, "_", prefix, state.accumulator)));
      const Shape shape = state.slicing == StateSlicing::kWhole ? Shape({1}) : param.type->shape;
      const std::string& on = state.device.empty() ? device : state.device;
      PENSTOCK_RETURN_IF_ERROR(MakePersistable(names.back(), param.type->dtype, shape, initial, on));
    }
    return names;
  }

  Status MakeLearningRate() {
    if (const auto* name = std::get_if<std::string>(&spec_.learning_rate)) {
      if (out_.program().FindVar(0, *name) == nullptr) {
        return InvalidArgument("E-optimizer-rate", "the learning rate ", *name,
                               " is no variable of the program");
      }
      learning_rate_ = *name;
      return OkStatus();
    }
    learning_rate_ = naming_.names.Generate("learning_rate");
    PENSTOCK_RETURN_IF_ERROR(MakePersistable(learning_rate_, spec_.learning_rate_type, Shape({1}),
                                             std::get<float>(spec_.learning_rate), ""));
    Var rate = Declared(learning_rate_);
    rate.facts.stop_gradient = true;
    out_.program().MutableBlock(0).SetVar(std::move(rate));
    return OkStatus();
  }

  // For a program with a table sharded by id, Fluid makes the learning rate in the name scope of the table's
  // update, before all state.
  Status MakeLearningRateInFirstUpdate() {
    const int entered = naming_.scopes.Count(kScope);
    Status status;
    {
      const NameScopes::Guard guard(naming_.scopes, kScope);
      status = MakeLearningRate();
    }
    naming_.scopes.SetCount(kScope, entered);
    return status;
  }

  // Declares the variable in both programs and gives it its initial value in the startup program.
  Status MakePersistable(const std::string& name, DType dtype, const Shape& shape, double initial,
                         const std::string& device) {
    Var var = TensorVar(name, dtype, shape);
    var.persistable = true;
    out_.program().MutableBlock(0).SetVar(var);
    startup_.MutableBlock(0).SetVar(var);
    Op fill("fill_constant");
    fill.AddOutput("Out", {name}).Set("dtype", static_cast<std::int32_t>(dtype));
    fill.Set("shape", shape.dims());
    fill.Set("value", static_cast<float>(initial)).Set("force_cpu", false);
    initial_out_.SetDevice(device);
    PENSTOCK_ASSIGN_OR_RETURN(Op complete, initial_out_.Complete(std::move(fill)));
    initializers_.push_back(std::move(complete));
    return OkStatus();
  }

  // As in Fluid, each initializer is placed before the earlier ones.
  void PlaceInitializers() {
    Block& block = startup_.MutableBlock(0);
    std::vector<OpEntry> entries;
    for (auto it = initializers_.rbegin(); it != initializers_.rend(); ++it) {
      entries.push_back({block.NewId(), std::make_shared<const Op>(std::move(*it))});
    }
    entries.insert(entries.end(), block.ops().begin(), block.ops().end());
    block.SetOps(std::move(entries));
  }

  Status AppendUpdate(const ParamGrad& pair, const std::vector<std::string>& states) {
    const NameScopes::Guard guard(naming_.scopes, kScope);
    const auto& [param, grad] = pair;
    Op op = prototype_;
    op.AddInput(optimizer().param_slot, {param}).AddInput(optimizer().grad_slot, {grad});
    if (def_.FindInput(optimizer().rate_slot) != nullptr) {
      PENSTOCK_ASSIGN_OR_RETURN(const std::string rate, RateOf(Declared(param)));
      op.AddInput(optimizer().rate_slot, {rate});
    }
    op.AddOutput(optimizer().param_slot + "Out", {param});
    for (std::size_t i = 0; i < states.size(); ++i) {
      const StateDef& state = optimizer().states[i];
      op.AddInput(state.slot, {states[i]});
      if (state.output != "-") op.AddOutput(state.output, {states[i]});
    }
    for (const auto& [slot, name] : spec_.inputs) op.AddInput(slot, {name});
    out_.SetRole(OpRole::kOptimize, {param, grad});
    return out_.Append(std::move(op));
  }

  // Returns the learning rate of a parameter: the optimizer's, multiplied by the parameter's factor if it has
  // one.
  Result<std::string> RateOf(const Var& param) {
    const float factor = param.facts.learning_rate;
    if (factor == 1.0f) return learning_rate_;
    const NameScopes::Guard guard(naming_.scopes, "scale_with_param_lr");
    out_.SetRole(OpRole::kLrSched | OpRole::kOptimize);
    std::string name = naming_.names.Generate("tmp");
    out_.program().MutableBlock(0).SetVar(TensorVar(name, spec_.learning_rate_type, Shape({1})));
    Op scale("scale");
    scale.AddInput("X", {learning_rate_}).AddOutput("Out", {name}).Set("scale", factor).Set("bias", 0.0f);
    PENSTOCK_RETURN_IF_ERROR(out_.Append(std::move(scale)));
    return name;
  }

  // Adds the op that multiplies a state after all updates, for states that the update reads but does not
  // write.
  Status AdvanceStates(const ParamGrad& pair, const std::vector<std::string>& states) {
    for (std::size_t i = 0; i < states.size(); ++i) {
      const StateDef& state = optimizer().states[i];
      if (state.advance_attr.empty()) continue;
      const NameScopes::Guard guard(naming_.scopes, state.advance_scope);
      out_.SetRole(OpRole::kOptimize, {pair.first, pair.second});
      const float* given = prototype_.Get<float>(state.advance_attr);
      const float factor =
          given != nullptr ? *given : std::get<float>(*def_.FindAttr(state.advance_attr)->default_value);
      Op scale("scale");
      scale.AddInput("X", {states[i]}).AddOutput("Out", {states[i]}).Set("scale", factor);
      PENSTOCK_RETURN_IF_ERROR(out_.Append(std::move(scale)));
    }
    return OkStatus();
  }

  Program& startup_;
  Naming naming_;
  const OptimizerSpec& spec_;
  const OpDef& def_;
  OpWriter out_;
  OpWriter initial_out_;
  Op prototype_;  // the optimizer's op with its hyperparameters
  std::string learning_rate_;
  std::vector<Op> initializers_;
};

}  // namespace

Result<BackwardResult> OptimizerBackward(const OpRegistry& ops, Program& main, UniqueNames& names,
                                         BackwardOptions options) {
  options.no_grad.merge(FrozenParameters(main));
  return AppendBackward(ops, main, names, options);
}

Result<MinimizeResult> ApplyGradients(const OpRegistry& ops, Program& main, Program& startup, Naming naming,
                                      const OptimizerSpec& spec, std::vector<ParamGrad> params_grads) {
  const OpDef* def = ops.Find(spec.op_type);
  if (def == nullptr || !def->optimizer()) {
    return InvalidArgument("E-optimizer-type", spec.op_type, " is no optimizer's op");
  }
  for (const auto& [param, grad] : params_grads) {
    for (const std::string& name : {param, grad}) {
      const Var* var = main.FindVar(0, name);
      if (var != nullptr && var->type) continue;
      return InvalidArgument("E-optimizer-param", "optimizer ", spec.op_type, ": ", name,
                             " is no tensor of the program");
    }
  }
  Program changed_main = main;
  Program changed_startup = startup;
  Application application(ops, changed_main, changed_startup, naming, spec, *def);
  PENSTOCK_ASSIGN_OR_RETURN(MinimizeResult result, application.Run(std::move(params_grads)));
  main = std::move(changed_main);
  startup = std::move(changed_startup);
  return result;
}

Result<MinimizeResult> Minimize(const OpRegistry& ops, Program& main, Program& startup, Naming naming,
                                const OptimizerSpec& spec, const BackwardOptions& options) {
  Program changed = main;
  PENSTOCK_ASSIGN_OR_RETURN(BackwardResult backward, OptimizerBackward(ops, changed, naming.names, options));
  OptimizerSpec typed = spec;
  typed.learning_rate_type = changed.FindVar(0, options.loss)->type->dtype;
  PENSTOCK_ASSIGN_OR_RETURN(MinimizeResult result, ApplyGradients(ops, changed, startup, naming, typed,
                                                                  std::move(backward.params_grads)));
  main = std::move(changed);
  return result;
}

}  // namespace penstock
