// Reads a pserver's programs: the arriving variables, the block that consumes each, and what each block
// updates.
#include <algorithm>

#include "transpiler/check/facts/facts.h"

namespace penstock::check {
namespace {

// All variables that may arrive: those that the op lists, those that it maps to blocks, and those that a
// trainer sends here. The name in a map entry ends at the last colon, because names may contain colons, even
// if no block follows.
ViewSet Arriving(const PserverFacts& facts, const std::vector<Sent>& sent) {
  ViewSet names(facts.received.begin(), facts.received.end());
  for (const std::string& entry : facts.said().gradient_blocks()) {
    const std::size_t colon = entry.rfind(':');
    if (colon != std::string::npos) names.insert(std::string_view(entry).substr(0, colon));
  }
  for (const Sent& one : sent) names.insert(one.piece->remote);
  return names;
}

class PserverReader {
 public:
  PserverReader(const OpRegistry& ops, const SentTo& sent, PserverFacts& facts,
                std::vector<Finding>& findings)
      : ops_(ops), program_(facts.file->program), all_sent_(sent), facts_(facts), findings_(findings) {}

  void Read() {
    const roles::ServeView serve = facts_.said();
    facts_.address = serve.address();
    facts_.trainers = serve.trainers();
    facts_.mode = serve.mode();
    facts_.received = serve.received();
    facts_.lr_block = serve.lr_block();
    facts_.checkpoint_block = serve.save_block();
    for (const std::string& entry : serve.lookup_blocks()) {
      if (const auto named = roles::ParseNamedBlock(entry))
        facts_.prefetch_blocks.insert_or_assign(std::string(named->name), named->block);
    }
    const auto sent = all_sent_.find(facts_.address);
    if (sent != all_sent_.end()) sent_ = &sent->second;
    arriving_ = Arriving(facts_, *sent_);
    facts_.blocks = serve.blocks();
    ReadBlocks();
    if (facts_.lr_block > 0 && facts_.lr_block < program_.block_count()) {
      for (const std::string_view name : roles::ReadCounters(program_, facts_.lr_block, arriving_))
        facts_.counters.emplace(name);
    }
    Index();
    LookUpUpdates();
  }

 private:
  void ReadBlocks() {
    std::set<int> seen;
    std::vector<int> blocks;
    for (const BlockRef ref : facts_.blocks) {
      if (IsUsable(ref.index, seen) && ref.index != facts_.lr_block) blocks.push_back(ref.index);
    }
    roles::ServerWiring wiring = roles::ReadWiring(ops_, program_, facts_.mode, blocks, arriving_);
    for (roles::Update& update : wiring.updates) facts_.updates.push_back({std::move(update)});
    facts_.shared_block = wiring.shared_block;
    facts_.exchange = wiring.exchange;
  }

  bool IsUsable(int block, std::set<int>& seen) {
    const auto error = [&](const auto&... message) {
      findings_.push_back(
          MakeFinding(Severity::kError, "E-check-block", *facts_.file, StrCat(message...), facts_.serve));
      return false;
    };
    if (block < 1 || block >= program_.block_count()) {
      return error("optimize block ", block, " does not exist; the program has blocks 0 to ",
                   program_.block_count() - 1);
    }
    if (!seen.insert(block).second) {
      return error("optimize block ", block, " is listed twice: its parameter ",
                   "would be updated twice a step");
    }
    return true;
  }

  // Whether the block contains only the optimizer and, if gradients are merged, their sum.
  bool UpdatesAlone(const UpdateBlock& update) const {
    std::vector<const Op*> expected = {update.optimizer};
    if (update.merge != nullptr) expected.insert(expected.begin(), update.merge);
    const auto& ops = program_.block(update.block).ops();
    return std::equal(ops.begin(), ops.end(), expected.begin(), expected.end(),
                      [](const OpEntry& entry, const Op* op) { return entry.op.get() == op; }) &&
           update.grad == (update.merge != nullptr ? update.merged : update.consumes.front());
  }

  void Index() {
    ViewSet sharded;
    for (const Sent& one : *sent_) {
      if (one.cut == Cut::kById) sharded.insert(one.piece->remote);
    }
    for (std::size_t i = 0; i < facts_.updates.size(); ++i) {
      UpdateBlock& update = facts_.updates[i];
      for (const std::string_view name : update.consumes) {
        facts_.consumer.emplace(name, i);
        update.by_id |= sharded.contains(name);
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

std::optional<PserverFacts> ReadPserver(const RoleFiles& roles, std::size_t index, const OpRegistry& ops,
                                        const SentTo& sent, std::vector<Finding>& findings) {
  PserverFacts facts;
  facts.file = &roles.pservers[index];
  if (index < roles.pserver_startups.size()) facts.startup = &roles.pserver_startups[index];
  int servers = 0;
  for (const OpEntry& entry : facts.file->program.main().ops()) {
    if (roles::CommOf(*entry.op) != roles::Comm::kServe) continue;
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
