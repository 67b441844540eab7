#include "transpiler/plan/conditional_updates.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/view_map.h"
#include "framework/ir/block_uses.h"
#include "framework/ir/def_use.h"
#include "framework/ir/edit.h"
#include "framework/ir/mentions.h"

namespace penstock::plan {
namespace {

constexpr char kConditional[] = "conditional_block";
constexpr char kCond[] = "Cond";
constexpr char kScope[] = "Scope";

int BlockOf(const Op& op) {
  const std::vector<int> blocks = StartedBlocks(op);
  return op.type() == kConditional && blocks.size() == 1 ? blocks.front() : -1;
}

// Whether all ops of the block may run when the condition does not hold.
bool MayAlwaysRun(const OpRegistry& ops, const Program& program, const Op& runner) {
  const int block = BlockOf(runner);
  if (block <= 0 || block >= program.block_count() || HasGradient(program, block)) return false;
  if (!runner.GetOr<bool>("is_scalar_condition", false) || runner.Input(kCond).size() != 1) return false;
  return std::ranges::all_of(program.block(block).ops(), [&](const OpEntry& entry) {
    const Op& op = *entry.op;
    if (op.type() == kConditional) return MayAlwaysRun(ops, program, op);
    const OpDef* def = ops.Find(op.type());
    return def != nullptr && def->effects().empty() && !def->optimizer() && StartedBlocks(op).empty();
  });
}

// What the ops of block 0 read and write. A block counts as part of the op that runs it; dependences follow
// the ops of conditional blocks one by one.
class Uses {
 public:
  using Names = std::set<std::string>;

  Uses(const OpRegistry& ops, const Program& program) : program_(program) {
    for (const OpEntry& entry : program.main().ops()) {
      const Op& op = *entry.op;
      whole_.push_back({op.InputNames(), op.OutputNames()});
      for (const int block : StartedBlocks(op)) {
        if (block <= 0 || block >= program_.block_count()) continue;
        if (const auto outer = OuterNames(program_, block); outer.ok())
          whole_.back().reads.insert(whole_.back().reads.end(), outer->begin(), outer->end());
        if (auto written = OuterNamesWritten(program_, block); written.ok())
          whole_.back().writes = *std::move(written);
      }
      if (op.type() == kConditional && MayAlwaysRun(ops, program, op)) {
        AddSteps(op, {});
      } else {
        steps_.push_back(whole_.back());
      }
    }
  }

  // The names of `names` and all that are computed from them, in the order of the ops.
  Names ComputedFrom(Names names) const {
    for (const Step& step : steps_) {
      if (Any(step.reads, names)) names.insert(step.writes.begin(), step.writes.end());
    }
    return names;
  }

  // All names on which those of `names` depend, in this step or in earlier ones.
  Names Needed(Names names) const {
    for (std::size_t before = 0; before != names.size();) {
      before = names.size();
      for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
        if (Any(step->writes, names)) names.insert(step->reads.begin(), step->reads.end());
      }
    }
    return names;
  }

  static bool Any(const std::vector<std::string>& of, const Names& names) {
    return std::ranges::any_of(of, [&](const std::string& name) { return names.contains(name); });
  }

  // Of the op at a position of block 0.
  const std::vector<std::string>& Reads(std::size_t op) const { return whole_[op].reads; }
  const std::vector<std::string>& Writes(std::size_t op) const { return whole_[op].writes; }

 private:
  struct Step {
    std::vector<std::string> reads, writes;
  };

  // What a block writes depends on the conditions too.
  void AddSteps(const Op& runner, std::vector<std::string> conditions) {
    conditions.push_back(runner.InputName(kCond));
    for (const OpEntry& entry : program_.block(BlockOf(runner)).ops()) {
      if (entry.op->type() == kConditional) {
        AddSteps(*entry.op, conditions);
        continue;
      }
      Step step{entry.op->InputNames(), entry.op->OutputNames()};
      step.reads.insert(step.reads.end(), conditions.begin(), conditions.end());
      steps_.push_back(std::move(step));
    }
  }

  const Program& program_;
  std::vector<Step> whole_;  // by the op of block 0
  std::vector<Step> steps_;
};

class Flattener {
 public:
  Flattener(const OpRegistry& ops, const Program& main, bool counts_steps)
      : ops_(ops),
        program_(main),
        main_(main.main()),
        uses_(ops, main),
        counts_steps_(counts_steps),
        edit_(main) {
    const std::vector<OpEntry>& entries = main_.ops();
    for (std::size_t i = 0; i < entries.size(); ++i) NoteGradients(*entries[i].op, i);
  }

  std::optional<Program> Run() {
    if (pairs_.empty()) return std::nullopt;
    FindUpdates();
    if (found_.empty()) return std::nullopt;
    MarkSchedule();
    for (const std::size_t at : found_) Flatten(at);
    Result<Program> out = edit_.Apply();
    if (!out.ok()) return std::nullopt;
    for (const int block : emptied_) {
      Block& rest = out->MutableBlock(block);
      rest.SetOps({});
      std::set<std::string, std::less<>> names;
      for (const VarRef& var : rest.vars()) names.insert(var->name);
      rest.RemoveVars(names);
    }
    return *std::move(out);
  }

 private:
  using Names = Uses::Names;
  using Aliases = std::map<std::string, std::string>;  // user's name -> its current value

  void NoteGradients(const Op& op, std::size_t at) {
    if (!Has(op.role(), OpRole::kBackward)) return;
    for (const auto& [param, grad] : op.RolePairs()) {
      const Var* var = main_.FindVar(param);
      if (var == nullptr || !var->persistable) continue;
      pairs_[param] = grad;
      complete_ = at;
    }
  }

  // The blocks that write a trained parameter, or a value that an update reads and that depends on parameters
  // or gradients.
  void FindUpdates() {
    Names params;
    for (const auto& [param, grad] : pairs_) params.insert(param);
    const Names needed = uses_.Needed(params);
    const Names varying = uses_.ComputedFrom(params);
    for (std::size_t at = complete_ + 1; at < main_.ops().size(); ++at) {
      const Op& op = *main_.ops()[at].op;
      if (op.type() != kConditional || Has(op.role(), OpRole::kLrSched)) continue;
      const std::vector<std::string>& written = uses_.Writes(at);
      const bool updates =
          std::ranges::any_of(written, [&](const auto& name) { return params.contains(name); });
      const bool is_read = Uses::Any(written, needed) && Uses::Any(uses_.Reads(at), varying);
      if (!(updates || is_read) || !MayAlwaysRun(ops_, program_, op)) continue;
      if (!counts_steps_ && DependsOnCounter(op.InputName(kCond), varying)) continue;
      found_.push_back(at);
    }
    varying_ = varying;
  }

  // Whether the value depends on a lasting variable that the program changes, other than parameters and what
  // is computed from them.
  bool DependsOnCounter(const std::string& condition, const Names& varying) const {
    const Names needed = uses_.Needed({condition});
    for (std::size_t at = 0; at < main_.ops().size(); ++at) {
      for (const std::string& name : uses_.Writes(at)) {
        const Var* var = main_.FindVar(name);
        if (var != nullptr && var->persistable && needed.contains(name) && !varying.contains(name))
          return true;
      }
    }
    return false;
  }

  bool IsOfSchedule(const Op& op, const std::vector<std::string>& reads) const {
    return op.role() == OpRole::kOptimize && op.RolePairs().empty() && !Uses::Any(reads, varying_) &&
           !Uses::Any(op.OutputNames(), varying_);
  }

  // Ops of the optimize role that belong to no parameter and on which the blocks depend, and others that are
  // computed from their results alone.
  void MarkSchedule() {
    Names read;
    for (const std::size_t at : found_) read.insert(uses_.Reads(at).begin(), uses_.Reads(at).end());
    const Names needed = uses_.Needed(read);
    Names computed;
    for (std::size_t at = 0; at < main_.ops().size(); ++at) {
      const OpEntry& entry = main_.ops()[at];
      const std::vector<std::string>& writes = uses_.Writes(at);
      if (!Uses::Any(writes, needed) && !Uses::Any(uses_.Reads(at), computed)) continue;
      if (!IsOfSchedule(*entry.op, uses_.Reads(at)) || std::ranges::find(found_, at) != found_.end())
        continue;
      computed.insert(writes.begin(), writes.end());
      Op marked = *entry.op;
      edit_.main().Replace(entry.id, std::move(marked.SetRole(OpRole::kLrSched | OpRole::kOptimize)));
    }
  }

  void Flatten(std::size_t at) {
    const OpEntry& entry = main_.ops()[at];
    at_ = entry.id;
    Aliases none;
    Conditional(*entry.op, main_, none);
    edit_.main().Remove(entry.id);
  }

  std::string NewName(const std::string& wanted) {
    std::string name = wanted;
    while (edit_.main().FindVar(name) != nullptr) name += "@IF";
    return name;
  }

  // Declares a temporary like the variable, and returns its name.
  std::string Temporary(const std::string& name, const Var* like) {
    std::string made = NewName(name);
    Var var = like != nullptr ? *like : Var();
    var.name = made;
    var.persistable = false;
    var.facts = {};
    var.wire_bytes.clear();
    edit_.main().SetVar(std::move(var));
    return made;
  }

  void Add(Op op) {
    if (op.role() == OpRole::kOptimize && op.RolePairs().empty() && IsOfSchedule(op, op.InputNames())) {
      op.SetRole(OpRole::kLrSched | OpRole::kOptimize);
    } else {
      const bool varies = Uses::Any(op.InputNames(), varying_);
      for (std::string& name : op.OutputNames()) {
        if (varies) varying_.insert(std::move(name));
      }
    }
    edit_.main().InsertBefore(at_, std::move(op));
  }

  static std::string Current(const std::string& name, const Aliases& aliases) {
    const auto known = aliases.find(name);
    return known == aliases.end() ? name : known->second;
  }

  std::string Mask(const Op& runner, const std::string& condition) {
    Var mask;
    if (const Var* var = edit_.main().FindVar(condition)) mask = *var;
    if (mask.type) mask.type->dtype = DType::kInt32;
    std::string name = Temporary(condition + "@MASK", &mask);
    Op cast("cast");
    cast.AddInput("X", {condition}).AddOutput("Out", {name});
    cast.Set("in_dtype", static_cast<std::int32_t>(DType::kBool));
    cast.Set("out_dtype", static_cast<std::int32_t>(DType::kInt32));
    cast.SetRole(runner.role()).SetLocation(runner.location());
    Add(std::move(cast));
    return name;
  }

  // Adds the ops of a conditional block of `outer`, whose values have these names.
  void Conditional(const Op& runner, const Block& outer, Aliases& names) {
    const Block& block = program_.block(BlockOf(runner));
    emptied_.insert(block.index());
    const std::string mask = Mask(runner, Current(runner.InputName(kCond), names));
    Aliases inside = names;
    for (const VarRef& var : block.vars()) inside[var->name] = Temporary(var->name, var.get());
    std::vector<std::string> written;
    std::map<std::string, Names> sources;  // the variables of `outer` on which each depends
    for (const OpEntry& entry : block.ops()) {
      const Op& op = *entry.op;
      Names from;
      for (const std::string& name : op.InputNames()) {
        const auto known = sources.find(name);
        if (known != sources.end()) from.insert(known->second.begin(), known->second.end());
        from.insert(name);
      }
      std::vector<std::string> results = op.OutputNames();
      if (op.type() == kConditional) {
        std::erase_if(results, [&](const auto& name) { return name == op.OutputName(kScope); });
        Conditional(op, block, inside);
      } else {
        AddInside(op, block, inside);
      }
      for (const std::string& name : results) {
        sources[name].insert(from.begin(), from.end());
        const bool is_new = std::ranges::find(written, name) == written.end();
        if (block.FindVar(name) == nullptr && is_new) written.push_back(name);
      }
    }
    for (const std::string& name : written) Select(runner, outer, name, mask, inside, sources[name], names);
  }

  // Whether the op copies a variable of the block, which has one value, to a variable outside of it.
  static bool OnlyNames(const Op& op, const Block& block) {
    if (op.type() != "assign" || op.InputNames().size() != 1 || op.OutputNames().size() != 1) return false;
    const std::string value = op.InputNames().front();
    if (block.FindVar(value) == nullptr || block.FindVar(op.OutputNames().front()) != nullptr) return false;
    return std::ranges::count_if(block.ops(), [&](const OpEntry& entry) {
             const std::vector<std::string> written = entry.op->OutputNames();
             return std::ranges::find(written, value) != written.end() || !StartedBlocks(*entry.op).empty();
           }) == 1;
  }

  void AddInside(const Op& op, const Block& block, Aliases& inside) {
    if (OnlyNames(op, block)) {
      inside[op.OutputNames().front()] = Current(op.InputNames().front(), inside);
      return;
    }
    Op copy = op;
    for (const Slot& slot : op.inputs()) {
      std::vector<std::string> args;
      for (const std::string& name : slot.args) args.push_back(Current(name, inside));
      copy.AddInput(slot.name.str(), std::move(args));
    }
    for (const Slot& slot : op.outputs()) {
      std::vector<std::string> args;
      for (const std::string& name : slot.args) {
        if (name != kEmptyVarName && block.FindVar(name) == nullptr)
          inside[name] = Temporary(name + "@IF", edit_.main().FindVar(Current(name, inside)));
        args.push_back(Current(name, inside));
      }
      copy.AddOutput(slot.name.str(), std::move(args));
    }
    Add(std::move(copy));
  }

  // Adds the op that gives a variable of `outer` the block's value if the condition holds.
  void Select(const Op& runner, const Block& outer, const std::string& name, const std::string& mask,
              const Aliases& inside, const Names& sources, Aliases& names) {
    const std::string old = Current(name, names);
    const std::string now = Current(name, inside);
    std::string result = name;
    if (&outer != &main_) {
      if (outer.FindVar(name) == nullptr) names[name] = Temporary(name + "@IF", edit_.main().FindVar(old));
      result = Current(name, names);
    }
    const bool has_old = old != name || HasValue(name);
    Op select(has_old ? "select_input" : "assign");
    if (has_old) {
      select.AddInput("X", {old, now}).AddInput("Mask", {mask});
    } else {
      select.AddInput("X", {now});
    }
    select.AddOutput("Out", {result}).SetRole(runner.role()).SetLocation(runner.location());
    if (&outer == &main_) {
      if (const std::string owner = OwnerOf(name, sources); !owner.empty())
        select.SetRole(OpRole::kOptimize).SetRolePair(owner, pairs_.at(owner));
    }
    Add(std::move(select));
  }

  // Whether the variable of block 0 has a value before the block runs.
  bool HasValue(const std::string& name) const {
    const Var* var = main_.FindVar(name);
    if (var != nullptr && var->persistable) return true;
    const int before = main_.PositionOf(at_);
    for (std::size_t at = 0; std::cmp_less(at, before); ++at) {
      if (std::ranges::find(uses_.Writes(at), name) != uses_.Writes(at).end()) return true;
    }
    return false;
  }

  // The parameter to whose update a lasting variable belongs: the only one on which its value depends, or
  // whose update depends on it. Empty if there is none, or several.
  std::string OwnerOf(const std::string& name, const Names& sources) const {
    if (pairs_.contains(name)) return name;
    const Var* var = main_.FindVar(name);
    if (var == nullptr || !var->persistable) return {};
    Names owners;
    for (const auto& [param, grad] : pairs_) {
      if (sources.contains(param) || sources.contains(grad)) owners.insert(param);
    }
    if (owners.size() == 1) return *owners.begin();
    return {};
  }

  const OpRegistry& ops_;
  const Program& program_;
  const Block& main_;
  const Uses uses_;
  const bool counts_steps_;
  ProgramEdit edit_;
  std::map<std::string, std::string> pairs_;  // trained parameters, with their gradients
  std::size_t complete_ = 0;        // position of the last op of the backward pass that completes one
  std::vector<std::size_t> found_;  // positions of the blocks to replace
  Names varying_;                   // parameters and all that is computed from them
  OpId at_ = OpId::kNone;           // the op that is being replaced
  std::set<int> emptied_;
};

}  // namespace

std::optional<Program> WithoutConditionalUpdates(const OpRegistry& ops, const Program& main,
                                                 bool counts_steps) {
  const bool any = std::ranges::any_of(main.main().ops(), [](const OpEntry& entry) {
    return entry.op->type() == kConditional && !Has(entry.op->role(), OpRole::kLrSched);
  });
  return any ? Flattener(ops, main, counts_steps).Run() : std::nullopt;
}

}  // namespace penstock::plan
