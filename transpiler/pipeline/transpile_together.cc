#include "transpiler/pipeline/transpile_together.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "framework/ir/edit.h"
#include "framework/text/describe.h"
#include "framework/text/other_starts.h"

namespace penstock {
namespace {

using Names = std::set<std::string>;

Names UpdatedBy(const plan::PlacementPlan& plan) {
  Names names;
  for (const plan::ParamPlacement& param : plan.params) names.insert(param.param);
  for (const plan::TablePlacement& table : plan.tables) names.insert(table.table);
  return names;
}

// Adds the last op of block 0 that writes the variable, with the user's line.
Status AtWriter(Status status, const Program& program, const std::string& name) {
  const std::vector<OpEntry>& ops = program.main().ops();
  for (std::size_t i = ops.size(); i-- > 0;) {
    const auto& outputs = ops[i].op->outputs();
    const bool writes = std::any_of(outputs.begin(), outputs.end(), [&](const Slot& slot) {
      return std::find(slot.args.begin(), slot.args.end(), name) != slot.args.end();
    });
    if (writes) return AtOp(std::move(status), program, 0, static_cast<int>(i), *ops[i].op);
  }
  return status;
}

// A process has one communicator. In mode completely_not_async it changes no byte, so sync is the same.
Status LeaveCommunicator(plan::TranspileConfig& config) {
  PENSTOCK_ASSIGN_OR_RETURN(const plan::Mode mode, plan::ResolveMode(config));
  if (mode != plan::Mode::kNotAsync) return OkStatus();
  config.runtime_split_send_recv = config.half_async = config.completely_not_async = false;
  config.sync_mode_argument = true;
  config.sync_mode_field.reset();
  return OkStatus();
}

Status RequireMode(const JobProgram& program, const RoleSet& roles) {
  const plan::Mode mode = roles.plan.mode;
  const bool alone = mode == plan::Mode::kSync || mode == plan::Mode::kAsync || mode == plan::Mode::kDcAsgd;
  if (!alone || roles.plan.dialect != plan::Dialect::kDefault) {
    return InvalidArgument("E-plan-programs", "plan: several programs train in one job in the modes sync, ",
                           "async and DC-ASGD, whose trainers have no communicator and no ring, not in mode ",
                           plan::ModeName(mode))
        .With(
            "transpile each program with sync_mode=True (Fleet: create_sync_strategy()), or with "
            "sync_mode=False and without runtime_split_send_recv");
  }
  if (program.config.on_uneven == OnUneven::kNone && program.config.bn_sync == plan::BnSync::kNone)
    return OkStatus();
  return InvalidArgument("E-plan-programs", "plan: on_uneven and bn_sync need a ring of trainers, and each ",
                         "of several programs in one job would have its own; leave them out");
}

// Each parameter is updated by one program.
Status RequireOwners(const std::vector<JobProgram>& programs, const std::vector<RoleSet>& roles) {
  std::map<std::string, std::size_t> owners;
  for (std::size_t p = 0; p < programs.size(); ++p) {
    PENSTOCK_RETURN_IF_ERROR(RequireMode(programs[p], roles[p]));
    if (programs[p].config.trainers != programs[0].config.trainers) {
      return InvalidArgument("E-plan-programs", "plan: a program of the job has ",
                             programs[p].config.trainers, " trainers, the first one has ",
                             programs[0].config.trainers);
    }
    for (const std::string& name : UpdatedBy(roles[p].plan)) {
      const auto [owner, first] = owners.emplace(name, p);
      if (first) continue;
      Status status =
          InvalidArgument("E-plan-programs", "plan: ", name, " is updated by two programs of one ",
                          "job, and each would keep a value of its own")
              .With(
                  "give minimize() of one program a parameter_list without it, or build both "
                  "updates in one program");
      return AtWriter(AtWriter(std::move(status), programs[owner->second].main, name), programs[p].main,
                      name);
    }
  }
  return OkStatus();
}

// The persistable variables that the blocks of a pserver's program write, without what trainers send.
Names StateOf(const Program& pserver) {
  Names sent, state;
  for (const OpEntry& entry : pserver.main().ops()) {
    for (const Slot& slot : entry.op->inputs()) sent.insert(slot.args.begin(), slot.args.end());
  }
  for (int block = 1; block < pserver.block_count(); ++block) {
    for (const OpEntry& entry : pserver.block(block).ops()) {
      for (const Slot& slot : entry.op->outputs()) {
        for (const std::string& name : slot.args) {
          const Var* var = pserver.FindVar(0, name);
          if (var != nullptr && var->persistable && !sent.contains(name)) state.insert(name);
        }
      }
    }
  }
  return state;
}

// State that several programs write, such as the counter of their schedules, is one variable of a pserver. It
// is as on one machine only if every pserver that has it runs all of these programs, one after the other.
Status RequireCommonState(const std::vector<JobProgram>& programs, const std::vector<RoleSet>& roles) {
  std::map<std::string, std::set<std::size_t>> writers;                            // by name
  std::map<std::pair<std::string, std::string>, std::set<std::size_t>> on_server;  // by (name, address)
  for (std::size_t p = 0; p < roles.size(); ++p) {
    for (const PserverPrograms& pserver : roles[p].pservers) {
      for (const std::string& name : StateOf(pserver.main)) {
        writers[name].insert(p);
        on_server[{name, pserver.address}].insert(p);
      }
    }
  }
  for (const auto& [place, present] : on_server) {
    const auto& [name, address] = place;
    const std::set<std::size_t>& all = writers[name];
    if (all.size() == 1) continue;
    const bool in_turns = std::all_of(all.begin(), all.end(), [&](std::size_t p) {
      return roles[p].plan.mode == plan::Mode::kSync && roles[p].plan.backup_trainers == 0;
    });
    if (in_turns && present == all) continue;
    const std::string why = in_turns ? StrCat("pserver ", address, " has parameters of only some of them")
                                     : "their steps are not in turns, as those of mode sync are";
    Status status = InvalidArgument("E-plan-programs", "plan: ", name, " is written by the updates of ",
                                    all.size(), " programs of one job, and ", why)
                        .With(
                            "give only one of the programs a schedule with this variable, or use fewer "
                            "pservers in mode sync");
    return AtWriter(std::move(status), programs[*all.rbegin()].main, name);
  }
  return OkStatus();
}

Names MentionedIn(const Program& program) {
  Names names;
  for (int block = 0; block < program.block_count(); ++block) {
    for (const OpEntry& entry : program.block(block).ops()) {
      for (const auto* slots : {&entry.op->inputs(), &entry.op->outputs()}) {
        for (const Slot& slot : *slots) names.insert(slot.args.begin(), slot.args.end());
      }
    }
  }
  return names;
}

// What program `p` neither shares nor, if its trainers start another program's parameters too, starts itself.
Names OthersOf(std::size_t p, const std::vector<RoleSet>& roles) {
  Names others;
  for (std::size_t other = 0; other < roles.size(); ++other) {
    if (other == p) continue;
    others.merge(UpdatedBy(roles[other].plan));
    if (other > p) continue;
    for (const plan::StartValue& value : roles[other].plan.start_values) others.insert(value.name);
  }
  for (const std::string& name : UpdatedBy(roles[p].plan)) others.erase(name);
  return others;
}

// The state of the other programs' updates that only their pservers need.
Names StateOfOthers(std::size_t p, const std::vector<JobProgram>& programs,
                    const std::vector<RoleSet>& roles) {
  Names state;
  for (std::size_t other = 0; other < roles.size(); ++other) {
    if (other == p) continue;
    Names needed;
    for (std::size_t user = 0; user < roles.size(); ++user)
      if (user != other) needed.merge(MentionedIn(programs[user].main));
    for (const std::string& name : roles[other].server_vars)
      if (!needed.contains(name)) state.insert(name);
  }
  return state;
}

bool WritesOnly(const Op& op, const Names& names) {
  const std::vector<std::string> outputs = op.OutputNames();
  return std::all_of(outputs.begin(), outputs.end(),
                     [&](const std::string& name) { return names.contains(name); });
}

// Removes the user's ops that another program's startup runs, and records what they started.
template <typename Keeps>
Result<Program> WithoutStarts(const Program& startup, const Keeps& keeps) {
  ProgramEdit edit(startup);
  Names left;
  for (const OpEntry& entry : startup.main().ops()) {
    if (!entry.op->made_by().empty() || keeps(*entry.op)) continue;
    edit.main().Remove(entry.id);
    for (const std::string& name : entry.op->OutputNames()) left.insert(name);
  }
  PENSTOCK_ASSIGN_OR_RETURN(Program out, edit.Apply());
  for (const OpEntry& entry : out.main().ops())
    for (const std::string& name : entry.op->OutputNames()) left.erase(name);
  for (const std::string& name : left) LeaveStartToAnother(name, out.mutable_meta());
  return out;
}

// Programs with one startup program initialize its variables once, in the trainers' startup program of the
// first; those of the others receive their parameters. A startup program of its own does not initialize what
// other programs start.
Status DivideStarts(const std::vector<JobProgram>& programs, std::vector<RoleSet>& roles) {
  std::set<std::uint64_t> started;
  for (std::size_t p = 0; p < programs.size(); ++p) {
    const std::uint64_t startup = programs[p].startup.content_id();
    const bool first = started.insert(startup).second;
    Names others = OthersOf(p, roles);
    for (std::size_t other = 0; other < programs.size(); ++other) {
      if (programs[other].startup.content_id() != startup) continue;
      for (const std::string& name : UpdatedBy(roles[other].plan)) others.erase(name);
    }
    others.merge(StateOfOthers(p, programs, roles));
    const auto keeps = [&](const Op& op) { return first && !WritesOnly(op, others); };
    for (TrainerPrograms& role : roles[p].trainers) {
      PENSTOCK_ASSIGN_OR_RETURN(role.startup, WithoutStarts(role.startup, keeps));
    }
  }
  return OkStatus();
}

}  // namespace

Result<std::vector<RoleSet>> TranspileTogether(const OpRegistry& ops, const std::vector<JobProgram>& given,
                                               const PassOptions& options) {
  std::vector<JobProgram> programs = given;
  for (JobProgram& each : programs) {
    PENSTOCK_RETURN_IF_ERROR(plan::ValidateConfig(each.config));
    if (programs.size() > 1) PENSTOCK_RETURN_IF_ERROR(LeaveCommunicator(each.config));
  }
  std::vector<RoleSet> apart, roles;
  for (const JobProgram& each : programs) {
    PENSTOCK_ASSIGN_OR_RETURN(RoleSet made, Transpile(ops, each.main, each.startup, each.config, options));
    apart.push_back(std::move(made));
  }
  if (programs.size() == 1) return apart;
  PENSTOCK_RETURN_IF_ERROR(RequireOwners(programs, apart));
  PENSTOCK_RETURN_IF_ERROR(RequireCommonState(programs, apart));
  for (std::size_t p = 0; p < programs.size(); ++p) {
    plan::TranspileConfig config = programs[p].config;
    const Names others = OthersOf(p, apart);
    config.others.assign(others.begin(), others.end());
    PENSTOCK_ASSIGN_OR_RETURN(RoleSet made,
                              Transpile(ops, programs[p].main, programs[p].startup, config, options));
    roles.push_back(std::move(made));
  }
  PENSTOCK_RETURN_IF_ERROR(DivideStarts(programs, roles));
  return roles;
}

std::optional<Program> WithAdded(const Program& source, const Program& made, const Program& now) {
  if (now.block_count() != 1 || made.block_count() != 1) return std::nullopt;
  const std::vector<OpEntry>&before = made.main().ops(), &after = now.main().ops();
  const std::size_t first = static_cast<std::size_t>(
      std::find_if(after.begin(), after.end(),
                   [&](const OpEntry& entry) { return !before.empty() && entry.id == before.front().id; }) -
      after.begin());
  if (first + before.size() > after.size()) return std::nullopt;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!after[first + i].op->SameAs(*before[i].op)) return std::nullopt;
  }
  Program out = source;
  Block& block = out.MutableBlock(0);
  for (const VarRef& var : now.main().vars()) {
    if (made.FindVar(0, var->name) == nullptr && source.FindVar(0, var->name) == nullptr) block.SetVar(*var);
  }
  for (std::size_t i = 0; i < first; ++i) block.Insert(static_cast<int>(i), *after[i].op);
  for (std::size_t i = first + before.size(); i < after.size(); ++i) block.Append(*after[i].op);
  return out;
}

}  // namespace penstock
