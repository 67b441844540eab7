#include "transpiler/check/facts/facts.h"

#include <algorithm>
#include <iterator>

#include "transpiler/check/facts/rank_ops.h"

namespace penstock::check {
namespace {

SentTo SentBy(const std::vector<TrainerFacts>& trainers) {
  SentTo sent;
  for (const TrainerFacts& trainer : trainers) {
    for (const Transfer& send : trainer.sends) {
      for (const Piece& piece : send.pieces) sent[piece.pserver].push_back({&piece, send.cut});
    }
  }
  return sent;
}

struct Moved {
  Piece* piece;
  bool sent;
};

// Collects the pieces that trainers exchange with each pserver.
std::vector<std::vector<Moved>> MovedBy(RoleFacts& facts) {
  std::vector<std::vector<Moved>> moved(facts.pservers.size());
  const auto add = [&](std::vector<Piece>& pieces, bool sent) {
    for (Piece& piece : pieces) {
      const auto at = facts.by_address.find(piece.pserver);
      if (piece.has_address && at != facts.by_address.end()) moved[at->second].push_back({&piece, sent});
    }
  };
  for (TrainerFacts& trainer : facts.trainers) {
    for (Transfer& send : trainer.sends) add(send.pieces, true);
    for (auto* recvs : {&trainer.recvs, &trainer.startup_recvs}) {
      for (Transfer& recv : *recvs) add(recv.pieces, false);
    }
    for (Lookup& lookup : trainer.lookups) add(lookup.pieces, false);
  }
  return moved;
}

// Looks up the declarations on the pserver.
void LookUpServers(RoleFacts& facts, ThreadPool* threads) {
  const std::vector<std::vector<Moved>> pieces = MovedBy(facts);
  ForEach(threads, pieces.size(), [&](std::size_t i) {
    const PserverFacts& pserver = facts.pservers[i];
    std::vector<std::string_view> names;
    for (const Moved& one : pieces[i]) names.push_back(one.piece->remote);
    std::vector<const Var*> vars(names.size());
    pserver.file->program.FindVars(0, names, vars);
    for (std::size_t k = 0; k < vars.size(); ++k) {
      const auto& [piece, sent] = pieces[i][k];
      piece->to = &pserver;
      piece->there = vars[k];
      if (sent) piece->reader = pserver.ConsumerOf(piece->remote);
    }
  });
}

}  // namespace

const std::vector<std::string>& StringsOf(const Op& op, std::string_view attr) {
  static const std::vector<std::string> kNone;
  const auto* value = op.Get<std::vector<std::string>>(attr);
  return value == nullptr ? kNone : *value;
}

std::vector<std::int64_t> LongsOf(const Op& op, std::string_view attr) {
  const Attr* value = op.FindAttr(attr);
  if (value == nullptr) return {};
  return AttrAs<std::vector<std::int64_t>>(*value).value_or(std::vector<std::int64_t>());
}

std::vector<const Var*> FindVars(const Program& program, std::span<const InBlock> names) {
  std::vector<std::string_view> texts;
  texts.reserve(names.size());
  for (const InBlock& one : names) texts.push_back(one.name);
  std::vector<const Var*> found(names.size());
  program.FindVars(0, texts, found);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].block == 0) continue;
    // Most blocks declare nothing, and see the variables of block 0.
    const Block& block = program.block(names[i].block);
    if (block.vars().empty() && block.parent() == 0 && !block.has_forward_block()) continue;
    found[i] = program.FindVar(names[i].block, names[i].name);
  }
  return found;
}

const PserverFacts* RoleFacts::FindPserver(std::string_view address) const {
  const auto it = by_address.find(address);
  return it == by_address.end() ? nullptr : &pservers[it->second];
}

bool RoleFacts::sync() const {
  return std::all_of(pservers.begin(), pservers.end(),
                     [](const PserverFacts& p) { return p.mode == ServeMode::kSync; }) &&
         std::none_of(trainers.begin(), trainers.end(),
                      [](const TrainerFacts& t) { return t.by_communicator; });
}

bool RoleFacts::ranks() const {
  if (pservers.empty()) return true;
  return std::any_of(trainers.begin(), trainers.end(), [](const TrainerFacts& trainer) {
    if (!AddedUp(trainer.file->program).empty()) return true;
    if (trainer.startup == nullptr) return false;
    const auto& ops = trainer.startup->program.main().ops();
    return std::any_of(ops.begin(), ops.end(),
                       [](const OpEntry& entry) { return entry.op->type() == "c_comm_init"; });
  });
}

bool RoleFacts::geo() const {
  return std::any_of(pservers.begin(), pservers.end(),
                     [](const PserverFacts& p) { return p.mode == ServeMode::kGeo; });
}

bool RoleFacts::async_called_sync() const {
  const bool steps_end = std::any_of(trainers.begin(), trainers.end(),
                                     [](const TrainerFacts& t) { return !t.send_barriers.empty(); });
  const bool merged = std::any_of(pservers.begin(), pservers.end(), [](const PserverFacts& p) {
    return std::any_of(p.updates.begin(), p.updates.end(),
                       [](const UpdateBlock& update) { return update.merge != nullptr; });
  });
  return sync() && !trainers.empty() && !pservers.empty() && !steps_end && !merged;
}

RoleFacts ReadFacts(const RoleFiles& roles, const OpRegistry& ops, ThreadPool* threads,
                    std::vector<Finding>& findings) {
  RoleFacts facts;
  facts.trainers.resize(roles.trainers.size());
  ForEach(threads, roles.trainers.size(),
          [&](std::size_t i) { facts.trainers[i] = ReadTrainer(roles, i, ops); });
  const SentTo sent = SentBy(facts.trainers);
  std::vector<std::optional<PserverFacts>> pservers(roles.pservers.size());
  std::vector<std::vector<Finding>> found(roles.pservers.size());
  ForEach(threads, roles.pservers.size(),
          [&](std::size_t i) { pservers[i] = ReadPserver(roles, i, ops, sent, found[i]); });
  for (std::size_t i = 0; i < pservers.size(); ++i) {
    if (pservers[i]) facts.pservers.push_back(*std::move(pservers[i]));
    std::ranges::move(found[i], std::back_inserter(findings));
  }
  for (std::size_t i = 0; i < facts.pservers.size(); ++i)
    facts.by_address.emplace(facts.pservers[i].address, i);
  LookUpServers(facts, threads);
  return facts;
}

}  // namespace penstock::check
