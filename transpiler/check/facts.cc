#include "transpiler/check/facts.h"

#include <algorithm>

namespace penstock {
namespace {

using Strings = std::vector<std::string>;

const Strings& StringsOf(const Op& op, std::string_view attr) {
  static const Strings kNone;
  const Strings* value = op.Get<Strings>(attr);
  return value == nullptr ? kNone : *value;
}

std::string ParamOf(const Op& op) {
  const auto pairs = op.RolePairs();
  return pairs.empty() ? "" : pairs.front().first;
}

// A send's or recv's arguments with their servers. `remote_names` of an op replace its own (recv's varnames).
void AddMessages(const Op& op, int position, const Strings& locals, const Strings& remote_names,
                 std::vector<Message>& out) {
  const Strings& servers = StringsOf(op, "epmap");
  for (std::size_t i = 0; i < locals.size(); ++i) {
    Message message;
    message.local = locals[i];
    message.remote = i < remote_names.size() ? remote_names[i] : locals[i];
    message.pserver = i < servers.size() ? servers[i] : "";
    message.param = ParamOf(op);
    message.op = &op;
    message.position = position;
    out.push_back(std::move(message));
  }
}

void ReadTrainerOp(const Op& op, int position, const OpRegistry& ops, TrainerFacts& facts) {
  if (op.type() == "send") {
    AddMessages(op, position, op.Input("X"), {}, facts.sends);
  } else if (op.type() == "recv") {
    AddMessages(op, position, op.Output("Out"), StringsOf(op, "varnames"), facts.recvs);
  } else if (op.type() == "send_barrier") {
    facts.send_barriers.push_back({StringsOf(op, "endpoints"), &op, position});
  } else if (op.type() == "fetch_barrier") {
    facts.fetch_barriers.push_back({StringsOf(op, "endpoints"), &op, position});
  } else if (op.type() == "split_byref" || op.type() == "split_selected_rows") {
    facts.split[op.InputName("X")] = {op.Output("Out"), &op, position};
  } else if (op.type() == "concat") {
    facts.joined[op.OutputName("Out")] = {op.Input("X"), &op, position};
  } else if (op.type() == "distributed_lookup_table") {
    const Strings& pieces = StringsOf(op, "table_names");
    const Strings& servers = StringsOf(op, "endpoints");
    for (std::size_t i = 0; i < std::min(pieces.size(), servers.size()); ++i) {
      facts.prefetched.emplace(servers[i], pieces[i]);
    }
    facts.remote_tables.insert(op.InputName("W"));
  } else if (op.GetOr<bool>("remote_prefetch", false)) {
    for (const Slot& slot : op.inputs()) facts.remote_tables.insert(slot.args.begin(), slot.args.end());
  }
  if (Has(op.role(), Role::kBackward)) {
    for (const auto& [param, grad] : op.RolePairs()) facts.gradients.emplace(param, &op);
  }
  if (const auto slots = FindOptimizerSlots(op, ops)) facts.updated_here.insert(op.InputName(slots->param));
}

TrainerFacts ReadTrainer(const RoleFiles& roles, std::size_t index, const OpRegistry& ops) {
  TrainerFacts facts;
  facts.file = &roles.trainers[index];
  if (index < roles.trainer_startups.size()) {
    facts.startup_file = &roles.trainer_startups[index];
    facts.startup = &facts.startup_file->program;
  }
  facts.trainer_id = static_cast<int>(index);
  const auto& entries = facts.file->program.main().ops();
  for (std::size_t i = 0; i < entries.size(); ++i)
    ReadTrainerOp(*entries[i].op, static_cast<int>(i), ops, facts);
  // A barrier carries the id; Fluid's sends all say 0.
  if (!facts.send_barriers.empty()) {
    facts.trainer_id = facts.send_barriers.front().op->GetOr<std::int32_t>("trainer_id", facts.trainer_id);
  } else if (!facts.recvs.empty()) {
    facts.trainer_id = facts.recvs.front().op->GetOr<std::int32_t>("trainer_id", facts.trainer_id);
  }
  if (facts.startup != nullptr) {
    const auto& startup = facts.startup->main().ops();
    for (std::size_t i = 0; i < startup.size(); ++i) {
      const Op& op = *startup[i].op;
      if (op.type() != "recv") continue;
      AddMessages(op, static_cast<int>(i), op.Output("Out"), StringsOf(op, "varnames"), facts.startup_recvs);
    }
  }
  return facts;
}

UpdateBlock ReadUpdate(const Program& program, int block, const std::set<std::string>& received,
                       const OpRegistry& ops) {
  UpdateBlock update;
  update.block = block;
  for (const OpEntry& entry : program.block(block).ops()) {
    const Op& op = *entry.op;
    const auto is_received = [&](const std::string& name) { return received.contains(name); };
    const Strings& inputs = op.Input("X");
    if (update.merge == nullptr && op.type() == "sum" &&
        std::any_of(inputs.begin(), inputs.end(), is_received)) {
      update.merge = &op;
      update.merge_inputs = inputs;
    } else if (update.merge != nullptr && update.scale_op == nullptr && op.type() == "scale" &&
               op.InputName("X") == update.merge->OutputName("Out") &&
               op.OutputName("Out") == op.InputName("X")) {
      update.scale = op.GetOr<float>("scale", 1.0f);
      update.scale_op = &op;
    }
    if (const auto slots = FindOptimizerSlots(op, ops)) {
      update.optimizer = &op;
      update.param = op.InputName(slots->param);
      update.grad = op.InputName(slots->grad);
    }
  }
  return update;
}

std::optional<PserverFacts> ReadPserver(const RoleFiles& roles, std::size_t index, const OpRegistry& ops,
                                        std::vector<Finding>& findings) {
  PserverFacts facts;
  facts.file = &roles.pservers[index];
  if (index < roles.pserver_startups.size()) {
    facts.startup_file = &roles.pserver_startups[index];
    facts.startup = &facts.startup_file->program;
  }
  const Program& program = facts.file->program;
  for (const OpEntry& entry : program.main().ops()) {
    if (entry.op->type() == "listen_and_serv") facts.serve = entry.op.get();
  }
  if (facts.serve == nullptr) {
    findings.push_back(MakeFinding(Severity::kError, "E-check-no-server", *facts.file,
                                   "a pserver program without listen_and_serv"));
    return std::nullopt;
  }
  const Op& serve = *facts.serve;
  facts.address = serve.GetOr<std::string>("endpoint", "");
  facts.trainers = serve.GetOr<std::int32_t>("Fanin", 1);
  facts.mode = serve.GetOr<std::int32_t>("distributed_mode", 0);
  facts.received = serve.Input("X");
  for (const char* attr : {"lr_decay_block_id", "checkpint_block_id"}) {
    const auto block = serve.GetOr<std::int32_t>(attr, -1);
    if (block > 0) facts.other_blocks.insert(block);
  }
  const std::set<std::string> received(facts.received.begin(), facts.received.end());
  const auto blocks = serve.GetOr<std::vector<BlockRef>>("optimize_blocks", {});
  for (const BlockRef ref : blocks) {
    if (facts.other_blocks.contains(ref.index)) continue;
    if (ref.index < 1 || ref.index >= program.block_count()) {
      findings.push_back(
          MakeFinding(Severity::kError, "E-check-block", *facts.file,
                      StrCat("optimize block ", ref.index, " does not exist; the program has blocks 0 to ",
                             program.block_count() - 1),
                      &serve));
      continue;
    }
    facts.updates.push_back(ReadUpdate(program, ref.index, received, ops));
  }
  return facts;
}

}  // namespace

std::optional<OptimizerSlots> FindOptimizerSlots(const Op& op, const OpRegistry& ops) {
  const OpDef* def = ops.Find(op.type());
  if (def != nullptr) {
    if (!def->optimizer()) return std::nullopt;
    return OptimizerSlots{def->optimizer()->param_slot, def->optimizer()->grad_slot};
  }
  const bool fluid = op.role() == Role::kOptimize && op.HasInputSlot("Param") && op.HasInputSlot("Grad") &&
                     op.HasOutputSlot("ParamOut");
  return fluid ? std::optional(OptimizerSlots{"Param", "Grad"}) : std::nullopt;
}

const PserverFacts* RoleFacts::FindPserver(std::string_view address) const {
  const auto it = std::find_if(pservers.begin(), pservers.end(),
                               [&](const PserverFacts& pserver) { return pserver.address == address; });
  return it == pservers.end() ? nullptr : &*it;
}

bool RoleFacts::sync() const {
  return std::all_of(pservers.begin(), pservers.end(), [](const PserverFacts& p) { return p.mode == 0; });
}

RoleFacts ReadFacts(const RoleFiles& roles, const OpRegistry& ops, std::vector<Finding>& findings) {
  RoleFacts facts;
  for (std::size_t i = 0; i < roles.trainers.size(); ++i)
    facts.trainers.push_back(ReadTrainer(roles, i, ops));
  for (std::size_t i = 0; i < roles.pservers.size(); ++i) {
    if (auto pserver = ReadPserver(roles, i, ops, findings)) facts.pservers.push_back(*std::move(pserver));
  }
  return facts;
}

}  // namespace penstock
