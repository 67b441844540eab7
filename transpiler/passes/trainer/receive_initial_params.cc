// Receives every parameter's initial value from the pservers, at the end of the trainer's startup program.
//
//   before  (Out=w) = uniform_random()
//   after   (Out=w) = uniform_random()
//           [w.block0, w.block1] = recv() {epmap=[second server, first]}
//           __control_var@0.fetch_barrier = fetch_barrier() {endpoints=[all]}
//           w = concat(X=[w.block0, w.block1])
//
// The trainer's own initializers stay, as in Fluid; the received values overwrite theirs. Ops that compute
// other lasting values from theirs run again, unless all processes draw the same random numbers. Prefetched
// tables are not received; in compat neither are those that Fluid mistakes for prefetched ones.
#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/view_map.h"
#include "framework/ir/def_use.h"
#include "framework/ir/edit.h"
#include "framework/ir/mentions.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/passes/spell/initial_values.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {
namespace {

// Finds the startup ops that compute other values from parameters whose random numbers have no seed: pservers
// draw other ones, so these ops run again after the recv.
class DependentOps {
 public:
  DependentOps(const PassContext& context, const Program& startup)
      : context_(context), startup_(startup), writers_(startup.main()) {
    for (const plan::ParamPlacement& param : context.plan.params) received_.insert(param.param);
    for (const plan::StartValue& value : context.plan.start_values) sent_.insert(value.name);
  }

  // kUnimplemented E-pass-initial-value: trainer 0 sends such a value before it has the parameter, or the op
  // reads a version of a variable that a later op changes.
  Result<std::vector<OpRef>> Find() {
    std::vector<OpEntry> found;
    for (const OpEntry& entry : startup_.main().ops()) {
      const std::string_view source = SourceOf(*entry.op);
      bool is_other = false;
      for (const std::string& name : entry.op->OutputNames()) {
        const auto param = received_.find(name);
        if (param != received_.end()) {
          if (!source.empty() || HasNoSeed(*entry.op, context_.ops)) drawn_[*param] = *param;
        } else if (!source.empty()) {
          if (sent_.contains(name)) return NoSeed(*entry.op, name, source);
          is_other = true;
        }
      }
      if (!is_other) continue;
      found.push_back(entry);
      for (const Slot& slot : entry.op->outputs()) {
        for (const std::string& name : slot.args) drawn_[name] = source;
      }
    }
    return Lasting(found);
  }

 private:
  // The parameter on whose random numbers the op's result depends; empty if there is none.
  std::string_view SourceOf(const Op& op) const {
    for (const Slot& slot : op.inputs()) {
      for (const std::string& name : slot.args) {
        if (const auto from = drawn_.find(name); from != drawn_.end()) return from->second;
      }
    }
    return {};
  }

  // Those on which a lasting value depends.
  Result<std::vector<OpRef>> Lasting(const std::vector<OpEntry>& found) const {
    std::vector<OpRef> lasting;
    ViewSet needed;
    for (auto entry = found.rbegin(); entry != found.rend(); ++entry) {
      const std::vector<std::string> outputs = entry->op->OutputNames();
      const bool lasts = std::any_of(outputs.begin(), outputs.end(), [&](const std::string& name) {
        const Var* var = startup_.main().FindVar(name);
        return needed.contains(name) || (var != nullptr && var->persistable);
      });
      if (!lasts) continue;
      PENSTOCK_RETURN_IF_ERROR(RequireLast(*entry));
      for (const Slot& slot : entry->op->inputs()) needed.insert(slot.args.begin(), slot.args.end());
      lasting.push_back(entry->op);
    }
    std::reverse(lasting.begin(), lasting.end());
    return lasting;
  }

  // An op that runs twice must read what it read the first time, parameters aside.
  Status RequireLast(const OpEntry& entry) const {
    const int position = startup_.main().PositionOf(entry.id);
    for (const auto* slots : {&entry.op->inputs(), &entry.op->outputs()}) {
      for (const Slot& slot : *slots) {
        for (const std::string& name : slot.args) {
          const std::vector<OpId>& writers = writers_.Writers(name);
          const bool changes = std::any_of(writers.begin(), writers.end(), [&](OpId id) {
            const bool in_place = id == entry.id && Reads(*entry.op, name);
            return in_place || startup_.main().PositionOf(id) > position;
          });
          if (changes) return NoSeed(*entry.op, entry.op->OutputNames().front(), SourceOf(*entry.op));
        }
      }
    }
    return OkStatus();
  }

  static Status NoSeed(const Op& op, std::string_view name, std::string_view source) {
    return Unimplemented("E-pass-initial-value", "receive_initial_params: ", op.type(),
                         " computes the initial value of ", name, " from ", source,
                         ", of which pservers draw other random numbers than trainers")
        .With(StrCat("note: ", kGiveASeed));
  }

  const PassContext& context_;
  const Program& startup_;
  const DefUse writers_;
  std::set<std::string_view, std::less<>> received_, sent_;
  ViewMap<std::string_view> drawn_;  // variables that depend on such random numbers, and of which parameter
};

}  // namespace

Result<Program> ReceiveInitialParams(const Program& in, const PassContext& context) {
  constexpr char kPass[] = "receive_initial_params";
  std::vector<OpRef> dependent;
  if (context.plan.conventions().derives_from_received) {
    PENSTOCK_ASSIGN_OR_RETURN(dependent, DependentOps(context, in).Find());
  }
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  std::vector<Op> joins;
  const std::vector<std::string>& tables = context.analysis.forgotten_tables;
  const std::set<std::string_view> forgotten(tables.begin(), tables.end());
  for (const plan::ParamPlacement& param : context.plan.params) {
    if (param.prefetched || forgotten.contains(param.param)) continue;
    RecvSpec recv{.after = {},
                  .pieces = {},
                  .messages = {},
                  .addresses = context.plan.AddressesOf(param),
                  .trainer_id = context.self.index,
                  .role_pair = {}};
    for (std::size_t i = 0; i < param.slices.size(); ++i) {
      recv.pieces.push_back(plan::ParamPieceName(param, static_cast<int>(i)));
      if (param.sliced())
        main.SetVar(TensorVar(recv.pieces.back(), param.dtype, param.ShapeOf(param.slices[i])));
    }
    main.Append(MakeRecv(recv).SetMadeBy(kPass));
    if (param.sliced())
      joins.push_back(MakeJoinRows(recv.pieces, param.param, OpRole::kForward).SetMadeBy(kPass));
  }
  const std::string done = plan::ControlName("fetch_barrier");
  main.SetVar(ControlVar(done));
  main.Append(MakeStartupFetchBarrier(context.plan.pservers, context.self.index, done).SetMadeBy(kPass));
  for (Op& join : joins) main.Append(std::move(join));
  for (const OpRef& op : dependent) main.Append(Op(*op).SetMadeBy(kPass));
  return edit.Apply();
}

}  // namespace penstock::passes
