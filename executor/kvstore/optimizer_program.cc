// ProgramOptimizer: which programs a store can apply to every key.
#include "executor/kvstore/optimizer_program.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "framework/base/strings.h"
#include "framework/ir/block_uses.h"
#include "framework/op/slices.h"
#include "framework/text/describe.h"
#include "framework/text/lexer.h"
#include "framework/text/printer.h"
#include "framework/verify/verifier.h"

namespace penstock::kvstore {
namespace {

template <typename... Parts>
Status Refused(const Parts&... parts) {
  return InvalidArgument("E-kv-program", "the optimizer's program: ", StrCat(parts...));
}

bool HasOneElement(const Var& var) {
  return var.HasShape() && var.shape().IsKnown() && var.shape().Count() == Dim{1};
}

// Whether the op reduces all elements at once, in whatever shape they are.
bool UsesAllElements(const OpDef& def, const Op& op) {
  constexpr std::array<std::string_view, 3> kOfAll = {"mean", "squared_l2_norm", "clip_by_norm"};
  constexpr std::array<std::string_view, 4> kReduce = {"reduce_sum", "reduce_mean", "reduce_max",
                                                       "reduce_min"};
  if (def.optimizer() || std::ranges::count(kOfAll, op.type()) > 0) return true;
  return std::ranges::count(kReduce, op.type()) > 0 && op.GetOr("reduce_all", false);
}

// Without what a program says beside its blocks.
Program Plain(const Program& given) {
  Program plain = given;
  plain.mutable_meta() = {};
  return plain;
}

class ProgramChecker {
 public:
  ProgramChecker(OptimizerProgram& made, const OpRegistry& ops) : made_(made), ops_(ops) {}

  Status Check() {
    PENSTOCK_RETURN_IF_ERROR(CheckParam());
    PENSTOCK_RETURN_IF_ERROR(VerifyProgram(made_.update, {.ops = &ops_}));
    PENSTOCK_RETURN_IF_ERROR(VerifyProgram(made_.start, {.ops = &ops_}));
    for (const int block : ReachedBlocks(made_.update)) {
      for (std::size_t i = 0; i < made_.update.block(block).ops().size(); ++i)
        PENSTOCK_RETURN_IF_ERROR(CheckUpdateOp(block, static_cast<int>(i)));
    }
    if (!written_.contains(made_.param))
      return Refused("no op writes ", SpellName(made_.param), ", the parameter");
    PENSTOCK_RETURN_IF_ERROR(KeepStartOfStates());
    return CheckReads();
  }

 private:
  Status CheckParam() {
    Block& main = made_.update.MutableBlock(0);
    for (const std::string& name : {made_.param, made_.grad}) {
      const Var* const var = main.FindVar(name);
      if (var == nullptr) return Refused("it has no variable ", SpellName(name));
      const bool is_dense = var->kind == VarKind::kTensor && var->HasShape() && var->shape().IsKnown();
      const DType type = is_dense ? var->type->dtype : DType::kBool;
      if (!is_dense || (type != DType::kFp32 && type != DType::kFp64))
        return Refused(PrintVar(*var), " must be a tensor of f32 or f64, whose shape is known");
    }
    if (made_.param == made_.grad) return Refused(SpellName(made_.param), " is its own gradient");
    const Var& param = *main.FindVar(made_.param);
    const Var& grad = *main.FindVar(made_.grad);
    if (param.shape().Count() < 2)
      return Refused(PrintVar(param), " stands for keys of any shape, so it needs two elements or more");
    if (grad.shape() != param.shape() || grad.type->dtype != param.type->dtype)
      return Refused(PrintVar(grad), " must have the type of ", PrintVar(param));
    Var kept = param, fed = grad;
    kept.persistable = fed.facts.is_data = true;
    fed.persistable = false;
    kept.wire_bytes = fed.wire_bytes = Word();
    shape_ = kept.shape();
    main.SetVar(std::move(kept));
    main.SetVar(std::move(fed));
    return OkStatus();
  }

  Status RefuseOp(const Program& program, int block, int position, const std::string& why) const {
    const Op& op = *program.block(block).ops()[static_cast<std::size_t>(position)].op;
    return AtOp(Refused(op.type(), " ", why), program, block, position, op);
  }

  // What any op of either program must satisfy.
  Status CheckOp(const Program& program, int block, int position) const {
    const Op& op = *program.block(block).ops()[static_cast<std::size_t>(position)].op;
    const OpDef* const def = ops_.Find(op.type());
    if (def == nullptr) return RefuseOp(program, block, position, "is no op that this process knows");
    if (def->effects().AnyOf({Effect::kStep, Effect::kRing, Effect::kHost, Effect::kQueue}))
      return RefuseOp(program, block, position,
                      "does more than to compute: it uses files, functions, other processes or queues");
    if (def->effects().Has(Effect::kRandom))
      return RefuseOp(program, block, position,
                      "draws random numbers, which would depend on where a key lies");
    return OkStatus();
  }

  Status CheckUpdateOp(int block, int position) {
    const Program& program = made_.update;
    PENSTOCK_RETURN_IF_ERROR(CheckOp(program, block, position));
    const Op& op = *program.block(block).ops()[static_cast<std::size_t>(position)].op;
    for (const std::string& name : op.OutputNames()) written_.insert(name);
    for (const std::string& name : op.InputNames()) read_.try_emplace(name, Place{block, position});
    if (op.may_name_blocks() && !StartedBlocks(op).empty()) return OkStatus();  // its ops are checked
    const auto find = [&](const std::string& name) { return program.FindVar(block, name); };
    if (WorksByRows(ops_, op, shape_, find)) return OkStatus();
    bool uses_elements = false;
    for (const std::vector<std::string>& names : {op.InputNames(), op.OutputNames()}) {
      for (const std::string& name : names) {
        const Var* const var = name == kEmptyVarName ? nullptr : find(name);
        if (var == nullptr || !var->HasShape() || HasOneElement(*var)) continue;
        if (var->shape() != shape_)
          return RefuseOp(program, block, position,
                          StrCat("uses ", PrintVar(*var), ", which has neither the parameter's shape, ",
                                 shape_, ", nor one element"));
        uses_elements = true;
      }
    }
    const bool fills = op.type() == "fill_constant";  // in the parameter's shape, which each key replaces
    if (!uses_elements || fills) return OkStatus();
    if (!UsesAllElements(*ops_.Find(op.type()), op))
      return RefuseOp(program, block, position,
                      "depends on how the elements of the parameter lie; only ops that work element by "
                      "element, or on all elements at once, do not");
    made_.needs_whole = true;
    return OkStatus();
  }

  // A variable that no op writes has a value only if it is the gradient or lives in the key's scope.
  Status CheckReads() const {
    const std::set<std::string> states(made_.states.begin(), made_.states.end());
    for (const auto& [name, place] : read_) {
      const bool has_value = written_.contains(name) || states.contains(name) || name == made_.param ||
                             name == made_.grad || name == kEmptyVarName || name.empty();
      if (!has_value)
        return RefuseOp(made_.update, place.block, place.position,
                        StrCat("reads ", SpellName(name), ", to which nothing gives a value"));
    }
    return OkStatus();
  }

  // The variables that keep their values from one update to the next.
  Status FindStates(std::set<std::string>& states) const {
    const Block& main = made_.update.block(0);
    for (const VarRef& var : main.vars()) {
      const bool is_used = read_.contains(var->name) || written_.contains(var->name);
      if (var->name == made_.param || var->name == made_.grad || !var->persistable || !is_used) continue;
      if (var->kind != VarKind::kTensor || (var->shape() != shape_ && !HasOneElement(*var)))
        return Refused(PrintVar(*var), " keeps its value, so it must be a tensor of the parameter's shape, ",
                       shape_, ", or of one element");
      states.insert(var->name);
    }
    return OkStatus();
  }

  Status KeepStartOfStates() {
    std::set<std::string> states;
    PENSTOCK_RETURN_IF_ERROR(FindStates(states));
    Block& start = made_.start.MutableBlock(0);
    std::set<std::string> needed = states, filled;
    std::vector<OpEntry> kept;
    for (int i = static_cast<int>(start.ops().size()) - 1; i >= 0; --i) {
      const OpEntry& entry = start.ops()[static_cast<std::size_t>(i)];
      const std::vector<std::string> outputs = entry.op->OutputNames();
      if (std::ranges::none_of(outputs, [&](const auto& name) { return needed.contains(name); })) continue;
      PENSTOCK_RETURN_IF_ERROR(CheckOp(made_.start, 0, i));
      if (entry.op->may_name_blocks() && !StartedBlocks(*entry.op).empty())
        return RefuseOp(made_.start, 0, i, "runs a block, which the start of a state cannot do");
      filled.insert(outputs.begin(), outputs.end());
      for (const std::string& name : entry.op->InputNames()) {
        if (name != kEmptyVarName) needed.insert(name);
      }
      kept.insert(kept.begin(), entry);
    }
    for (const std::string& name : needed) {
      if (!filled.contains(name))
        return Refused(SpellName(name), " has no first value; the startup program must fill it",
                       name == made_.param ? ", and cannot use the parameter" : "");
    }
    for (const OpEntry& entry : kept) {
      for (const std::string& name : entry.op->OutputNames()) {
        if (states.erase(name) > 0) made_.states.push_back(name);
      }
    }
    start.SetOps(std::move(kept));
    DropUnusedVars(start, needed);
    return OkStatus();
  }

  static void DropUnusedVars(Block& block, const std::set<std::string>& used) {
    std::set<std::string, std::less<>> unused;
    for (const VarRef& var : block.vars()) {
      if (!used.contains(var->name)) unused.insert(var->name);
    }
    for (const OpEntry& entry : block.ops()) {
      for (const std::string& name : entry.op->OutputNames()) unused.erase(name);
    }
    block.RemoveVars(unused);
  }

  struct Place {
    int block = 0, position = 0;
  };

  OptimizerProgram& made_;
  const OpRegistry& ops_;
  Shape shape_;
  std::set<std::string> written_;
  std::map<std::string, Place> read_;  // by its first reader
};

}  // namespace

Result<KeyOptimizer> ProgramOptimizer(OptimizerProgram program, const OpRegistry& ops) {
  program.update = Plain(program.update);
  program.start = Plain(program.start);
  program.states.clear();
  program.needs_whole = false;
  program.ops = &ops;
  PENSTOCK_RETURN_IF_ERROR(ProgramChecker(program, ops).Check());
  KeyOptimizer made;
  made.name = "program";
  made.program = std::make_shared<const OptimizerProgram>(std::move(program));
  return made;
}

std::string TextOf(const OptimizerProgram& program) {
  const PrintOptions options{.defaults = true, .forward_role = true};
  return StrCat("param ", SpellName(program.param), " grad ", SpellName(program.grad), " update ",
                Quote(PrintProgram(program.update, options)), " start ",
                Quote(PrintProgram(program.start, options)));
}

}  // namespace penstock::kvstore
