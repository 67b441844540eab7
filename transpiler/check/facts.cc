#include "transpiler/check/facts.h"

#include <algorithm>
#include <iterator>

namespace penstock {
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

}  // namespace

void ForEach(ThreadPool* threads, std::size_t count, const std::function<void(std::size_t)>& work) {
  if (threads != nullptr) return threads->ForEach(count, work);
  for (std::size_t i = 0; i < count; ++i) work(i);
}

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

std::optional<OptimizerSlots> FindOptimizerSlots(const Op& op, const OpRegistry& ops) {
  if (!Has(op.role(), Role::kOptimize) && !op.HasInputSlot("Param")) return std::nullopt;
  const OpDef* def = ops.Find(op.type());
  if (def != nullptr) {
    if (!def->optimizer()) return std::nullopt;
    return OptimizerSlots{def->optimizer()->param_slot, def->optimizer()->grad_slot};
  }
  const bool fluid = op.HasInputSlot("Param") && op.HasInputSlot("Grad") && op.HasOutputSlot("ParamOut");
  return fluid ? std::optional(OptimizerSlots{"Param", "Grad"}) : std::nullopt;
}

const PserverFacts* RoleFacts::FindPserver(const std::string& address) const {
  const auto it = by_address.find(address);
  return it == by_address.end() ? nullptr : &pservers[it->second];
}

bool RoleFacts::sync() const {
  return std::all_of(pservers.begin(), pservers.end(),
                     [](const PserverFacts& p) { return p.mode == ServeMode::kSync; }) &&
         std::none_of(trainers.begin(), trainers.end(),
                      [](const TrainerFacts& t) { return t.by_communicator; });
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
  return facts;
}

}  // namespace penstock
