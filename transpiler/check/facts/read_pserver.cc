// A pserver's programs, read: what arrives, which block consumes it, and what each block updates.
#include <algorithm>
#include <charconv>

#include "transpiler/check/facts/facts.h"

namespace penstock::check {
namespace {

// Everything that may come in: what the op lists, what it maps to blocks, and what a trainer sends here.
ViewSet Arriving(const PserverFacts& facts, const std::vector<Sent>& sent) {
  ViewSet names(facts.received.begin(), facts.received.end());
  for (const std::string& entry : StringsOf(*facts.serve, "grad_to_block_id")) {
    const std::size_t colon = entry.rfind(':');
    if (colon != std::string::npos) names.insert(std::string_view(entry).substr(0, colon));
  }
  for (const Sent& one : sent) names.insert(one.piece->remote);
  return names;
}

// Reads one optimize block in the order of its ops.
class UpdateReader {
 public:
  UpdateReader(const ViewSet& arriving, const OpRegistry& ops, UpdateBlock& update)
      : arriving_(arriving), ops_(ops), update_(update) {}

  void Read(const Op& op) {
    const bool fresh = NoteConsumed(op);
    if (update_.merge == nullptr && op.type() == "sum" && !Has(op.role(), Role::kOptimize) && fresh) {
      update_.merge = &op;
      update_.merge_inputs = op.Input("X");
      update_.merged = op.OutputName("Out");
      // Also of trainers that are not in the folder.
      update_.consumes.assign(update_.merge_inputs.begin(), update_.merge_inputs.end());
      in_merge_ = true;
    } else if (in_merge_ && op.type() == "scale" && !Has(op.role(), Role::kOptimize) &&
               op.InputName("X") == update_.merged && op.OutputName("Out") == update_.merged) {
      update_.scales.push_back(&op);
    } else {
      in_merge_ = false;
    }
    if (const auto slots = FindOptimizerSlots(op, ops_)) {
      update_.optimizers.push_back(&op);
      if (update_.optimizer == nullptr) {
        update_.optimizer = &op;
        update_.param = op.InputName(slots->param);
        update_.grad = op.InputName(slots->grad);
      }
    }
    for (const Slot& slot : op.outputs()) written_.insert(slot.args.begin(), slot.args.end());
  }

 private:
  // Notes what arrives and is read before this block writes it; whether this op did so.
  bool NoteConsumed(const Op& op) {
    bool any = false;
    for (const Slot& slot : op.inputs()) {
      for (const std::string& name : slot.args) {
        if (written_.contains(name) || !arriving_.contains(name)) continue;
        any = true;
        auto& consumes = update_.consumes;
        if (std::find(consumes.begin(), consumes.end(), name) == consumes.end()) consumes.emplace_back(name);
      }
    }
    return any;
  }

  const ViewSet& arriving_;
  const OpRegistry& ops_;
  UpdateBlock& update_;
  ViewSet written_;
  bool in_merge_ = false;
};

// Geo: P = sum(P, delta), where the delta arrives.
void ReadDelta(const Program& program, UpdateBlock& update) {
  const auto& ops = program.block(update.block).ops();
  if (ops.size() != 1 || ops.front().op->type() != "sum") return;
  const Op& op = *ops.front().op;
  const auto& inputs = op.Input("X");
  const std::string& out = op.OutputName("Out");
  if (inputs.size() != 2 || std::count(inputs.begin(), inputs.end(), out) != 1) return;
  update.consumes = {inputs[inputs.front() == out ? 1 : 0]};
  update.delta = true;
  update.merge = nullptr;
  update.merge_inputs = {};
  update.merged = {};
  update.optimizer = &op;
  update.optimizers = {&op};
  update.param = out;
  update.grad = update.consumes.front();
}

class PserverReader {
 public:
  PserverReader(const OpRegistry& ops, const SentTo& sent, PserverFacts& facts,
                std::vector<Finding>& findings)
      : ops_(ops), program_(facts.file->program), all_sent_(sent), facts_(facts), findings_(findings) {}

  void Read() {
    const Op& serve = *facts_.serve;
    facts_.address = serve.GetOr<std::string>("endpoint", "");
    facts_.trainers = serve.GetOr<std::int32_t>("Fanin", 1);
    facts_.mode = static_cast<ServeMode>(serve.GetOr<std::int32_t>("distributed_mode", 0));
    facts_.received = serve.Input("X");
    facts_.lr_block = serve.GetOr<std::int32_t>("lr_decay_block_id", -1);
    facts_.checkpoint_block = serve.GetOr<std::int32_t>("checkpint_block_id", -1);
    for (const std::string& entry : StringsOf(serve, "prefetch_var_name_to_block_id")) {
      const auto pair = DividePair(entry);
      if (!pair) continue;
      if (const auto block = ParseBlock(pair->second))
        facts_.prefetch_blocks.insert_or_assign(std::string(pair->first), *block);
    }
    const auto sent = all_sent_.find(facts_.address);
    if (sent != all_sent_.end()) sent_ = &sent->second;
    arriving_ = Arriving(facts_, *sent_);
    facts_.blocks = serve.GetOr<std::vector<BlockRef>>("optimize_blocks", {});
    std::set<int> seen;
    for (const BlockRef ref : facts_.blocks) ReadBlock(ref.index, seen);
    if (facts_.lr_block > 0 && facts_.lr_block < program_.block_count()) ReadCounters();
    if (facts_.mode == ServeMode::kSync) FindPrelude();
    Index();
    LookUpUpdates();
  }

 private:
  void ReadBlock(int block, std::set<int>& seen) {
    if (block < 1 || block >= program_.block_count()) {
      findings_.push_back(
          MakeFinding(Severity::kError, "E-check-block", *facts_.file,
                      StrCat("optimize block ", block, " does not exist; the program has blocks 0 to ",
                             program_.block_count() - 1),
                      facts_.serve));
      return;
    }
    if (!seen.insert(block).second) {
      findings_.push_back(MakeFinding(Severity::kError, "E-check-block", *facts_.file,
                                      StrCat("optimize block ", block, " is listed twice: its parameter ",
                                             "would be updated twice a step"),
                                      facts_.serve));
      return;
    }
    if (block == facts_.lr_block) return;
    UpdateBlock update;
    update.block = update.merge_block = block;
    UpdateReader reader(arriving_, ops_, update);
    for (const OpEntry& entry : program_.block(block).ops()) reader.Read(*entry.op);
    if (facts_.mode == ServeMode::kGeo) ReadDelta(program_, update);
    facts_.updates.push_back(std::move(update));
  }

  using Readers = std::unordered_map<std::string_view, UpdateBlock*>;  // of a name, the first update

  // Blocks without an optimizer that stand before the updates: one that measures what arrives belongs to the
  // update that reads what it merges; one that is given nothing computes for all of them.
  void FindPrelude() {
    const bool any = std::any_of(facts_.updates.begin(), facts_.updates.end(), [&](const UpdateBlock& block) {
      return block.optimizer == nullptr && !program_.block(block.block).ops().empty();
    });
    if (!any) return;
    Readers readers;
    for (UpdateBlock& update : facts_.updates) {
      for (const OpEntry& entry : program_.block(update.block).ops()) {
        if (entry.op->type() == "exchange_sums") facts_.exchange = entry.op.get();
        if (update.optimizer == nullptr) continue;
        for (const Slot& slot : entry.op->inputs()) {
          for (const std::string& name : slot.args) readers.try_emplace(name, &update);
        }
      }
    }
    std::set<int> prelude;
    for (const UpdateBlock& block : facts_.updates) {
      if (block.optimizer != nullptr) continue;
      if (block.consumes.empty() ? IsShared(block, readers) : JoinsUpdate(block, readers))
        prelude.insert(block.block);
    }
    std::erase_if(facts_.updates, [&](const UpdateBlock& block) { return prelude.contains(block.block); });
  }

  bool IsShared(const UpdateBlock& block, const Readers& readers) {
    for (const OpEntry& entry : program_.block(block.block).ops()) {
      const auto& outputs = entry.op->outputs();
      const bool read = std::any_of(outputs.begin(), outputs.end(), [&](const Slot& slot) {
        return std::any_of(slot.args.begin(), slot.args.end(),
                           [&](const std::string& name) { return readers.contains(name); });
      });
      if (read && facts_.shared_block < 0) facts_.shared_block = block.block;
    }
    return facts_.shared_block == block.block;
  }

  static bool JoinsUpdate(const UpdateBlock& block, const Readers& readers) {
    const std::string_view merged = block.merge != nullptr ? block.merged : block.consumes.front();
    const auto reader = readers.find(merged);
    if (reader == readers.end()) return false;
    UpdateBlock& update = *reader->second;
    // Its name may be among those that listen_and_serv maps to blocks, as if it arrived.
    if (!update.consumes.empty() && update.consumes != std::vector{merged}) return false;
    update.merge_block = block.block;
    update.consumes = block.consumes;
    update.merge_inputs = block.merge_inputs;
    update.merge = block.merge;
    update.merged = block.merged;
    update.scales = block.scales;
    return true;
  }

  // The counter of a trainer that is not in the folder stands beside one that arrives.
  void ReadCounters() {
    ViewSet written;
    for (const OpEntry& entry : program_.block(facts_.lr_block).ops()) {
      std::vector<std::string> counted = entry.op->InputNames();
      std::erase_if(counted, [&](const std::string& name) { return written.contains(name); });
      const bool arrives = std::any_of(counted.begin(), counted.end(),
                                       [&](const std::string& name) { return arriving_.contains(name); });
      if (arrives) facts_.counters.insert(counted.begin(), counted.end());
      for (const Slot& slot : entry.op->outputs()) written.insert(slot.args.begin(), slot.args.end());
    }
  }

  // Whether the block has nothing but the sum of what arrives, where it is merged, and the update with that.
  bool UpdatesAlone(const UpdateBlock& update) const {
    std::vector<const Op*> expected = {update.optimizer};
    if (update.merge != nullptr) expected.insert(expected.begin(), update.merge);
    const auto& ops = program_.block(update.block).ops();
    return std::equal(ops.begin(), ops.end(), expected.begin(), expected.end(),
                      [](const OpEntry& entry, const Op* op) { return entry.op.get() == op; }) &&
           update.grad == (update.merge != nullptr ? update.merged : update.consumes.front());
  }

  void Index() {
    ViewSet dealt_by_id;
    for (const Sent& one : *sent_) {
      if (one.cut == Cut::kById) dealt_by_id.insert(one.piece->remote);
    }
    for (std::size_t i = 0; i < facts_.updates.size(); ++i) {
      UpdateBlock& update = facts_.updates[i];
      for (const std::string_view name : update.consumes) {
        facts_.consumer.emplace(name, i);
        update.by_id |= dealt_by_id.contains(name);
      }
      update.plain = update.by_id && UpdatesAlone(update);
      if (!update.param.empty()) facts_.updated_by.emplace(update.param, i);
    }
  }

  void LookUpUpdates() {
    std::vector<InBlock> names;
    for (const UpdateBlock& update : facts_.updates)
      names.insert(names.end(), {{update.block, update.param}, {update.block, update.grad}});
    const std::vector<const Var*> vars = FindVars(program_, names);
    auto next = vars.begin();
    for (UpdateBlock& update : facts_.updates) {
      update.param_var = *next++;
      update.grad_var = *next++;
    }
  }

  const OpRegistry& ops_;
  const Program& program_;
  const SentTo& all_sent_;
  PserverFacts& facts_;
  std::vector<Finding>& findings_;
  const std::vector<Sent> none_;
  const std::vector<Sent>* sent_ = &none_;  // to this pserver
  ViewSet arriving_;
};

}  // namespace

std::optional<std::pair<std::string_view, std::string_view>> DividePair(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  return std::pair(text.substr(0, colon), text.substr(colon + 1));
}

std::optional<int> ParseBlock(std::string_view text) {
  int block = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), block);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return block;
}

std::optional<PserverFacts> ReadPserver(const RoleFiles& roles, std::size_t index, const OpRegistry& ops,
                                        const SentTo& sent, std::vector<Finding>& findings) {
  PserverFacts facts;
  facts.file = &roles.pservers[index];
  if (index < roles.pserver_startups.size()) facts.startup = &roles.pserver_startups[index];
  int servers = 0;
  for (const OpEntry& entry : facts.file->program.main().ops()) {
    if (entry.op->type() != "listen_and_serv") continue;
    facts.serve = entry.op.get();
    ++servers;
  }
  if (servers != 1) {
    findings.push_back(MakeFinding(Severity::kError, "E-check-no-server", *facts.file,
                                   StrCat("has ", servers, " listen_and_serv ops; a pserver has one")));
    if (servers == 0) return std::nullopt;
  }
  PserverReader(ops, sent, facts, findings).Read();
  return facts;
}

const UpdateBlock* PserverFacts::UpdateOf(std::string_view piece) const {
  const auto it = updated_by.find(piece);
  return it == updated_by.end() ? nullptr : &updates[it->second];
}

const UpdateBlock* PserverFacts::ConsumerOf(std::string_view name) const {
  const auto it = consumer.find(name);
  return it == consumer.end() ? nullptr : &updates[it->second];
}

}  // namespace penstock::check
