// All trainers compute alike, all slices of a parameter are updated alike, and all pservers have the same
// learning rate.
#include <algorithm>
#include <unordered_set>

#include "transpiler/check/meaning/composition.h"

namespace penstock::check {
namespace {

class AlikeRules {
 public:
  AlikeRules(Composition& set, Findings& findings) : set_(set), findings_(findings) {}

  void Run() {
    for (std::size_t t = 1; t < set_.trainers.size(); ++t) CompareTrainers(t);
    for (const auto& [param, slices] : set_.slices) CompareSlices(param, slices);
    CompareRates();
    CompareShards();
  }

 private:
  void Explain(ExprId a, ExprId b, std::string_view first, std::string_view second) {
    const auto [left, right] = set_.table.Difference(a, b);
    findings_.Detail(StrCat(first, ":  ", left));
    findings_.Detail(StrCat(second, ":  ", right));
  }

  void CompareTrainers(std::size_t t) {
    const TrainerFacts& reference = set_.facts.trainers.front();
    const TrainerFacts& trainer = set_.facts.trainers[t];
    differs_ = false;
    for (const Transfer& send : trainer.sends) {
      const Transfer* other = reference.FindSend(send.param);
      if (send.counts_steps) continue;
      if (other == nullptr) {
        findings_.Error("E-check-trainers-differ", *trainer.file,
                        StrCat("sends a gradient of ", send.param, ", ", reference.file->file, " does not"),
                        send.op);
        continue;
      }
      Compare(t, send.op, StrCat("the gradient of ", send.param), set_.trainers.front()->Get(other->whole),
              set_.trainers[t]->Get(send.whole));
    }
    if (trainer.send_barriers.size() != reference.send_barriers.size() ||
        trainer.fetch_barriers.size() != reference.fetch_barriers.size()) {
      findings_.Error("E-check-trainers-differ", *trainer.file,
                      StrCat("ends its steps by ", trainer.send_barriers.size(), " send_barriers and ",
                             trainer.fetch_barriers.size(), " fetch_barriers, ", reference.file->file, " by ",
                             reference.send_barriers.size(), " and ", reference.fetch_barriers.size()));
    }
    // Trainers also compute persistable variables alike.
    for (const VarRef& var : trainer.file->program.main().vars()) {
      const Var* other = reference.file->program.main().FindVar(var->name);
      if (!var->persistable || other == nullptr) continue;
      const ExprId* here = set_.trainers[t]->Find(var->name);
      const ExprId* there = set_.trainers.front()->Find(var->name);
      if (here == nullptr && there == nullptr) continue;
      Compare(t, nullptr, var->name, set_.trainers.front()->Get(var->name), set_.trainers[t]->Get(var->name));
    }
    if (differs_) return;  // dependent values differ too
    for (const std::string_view name : ResultsOf(reference.file->program)) {
      Compare(t, nullptr, name, set_.trainers.front()->Get(name), set_.trainers[t]->Get(name));
    }
    if (!differs_) CompareComputed(t);
  }

  // Trainers compute the same from the same values, even if no gradient needs it. Other rules check how
  // messages are cut.
  void CompareComputed(std::size_t t) {
    using Computed = std::vector<std::pair<const Op*, ExprId>>;
    const Computed& reference = set_.trainers.front()->computed();
    const Computed& own = set_.trainers[t]->computed();
    const auto same = [](const auto& a, const auto& b) { return a.second == b.second; };
    if (std::equal(own.begin(), own.end(), reference.begin(), reference.end(), same)) return;
    const auto missing = [](const Computed& from, const Computed& in) -> const Op* {
      std::unordered_set<ExprId> known;
      for (const auto& [op, value] : in) known.insert(value);
      for (const auto& [op, value] : from) {
        if (!known.contains(value) && !Has(op->role(), OpRole::kDist)) return op;
      }
      return nullptr;
    };
    const RoleProgram& first = *set_.facts.trainers.front().file;
    const RoleProgram& trainer = *set_.facts.trainers[t].file;
    if (const Op* op = missing(reference, own)) {
      findings_.Error(
          "E-check-trainers-differ", trainer,
          StrCat("does not compute what ", op->type(), " of ", first.file, " does, from the same values"),
          op);
    } else if (const Op* more = missing(own, reference)) {
      findings_.Error("E-check-trainers-differ", trainer,
                      StrCat("computes by ", more->type(), " what ", first.file, " does not"), more);
    }
  }

  void Compare(std::size_t t, const Op* op, std::string_view what, ExprId reference, ExprId own) {
    if (reference == own) return;
    differs_ = true;
    const TrainerFacts& first = set_.facts.trainers.front();
    const TrainerFacts& trainer = set_.facts.trainers[t];
    findings_.Error("E-check-trainers-differ", *trainer.file,
                    StrCat("computes ", what, " otherwise than ", first.file->file), op);
    Explain(reference, own, first.file->file, trainer.file->file);
  }

  void CompareSlices(std::string_view param, const std::vector<UpdatedSlice>& slices) {
    const UpdatedSlice& first = slices.front();
    for (const UpdatedSlice& slice : slices) {
      CheckPairs(slice);
      ExprId a = first.value;
      ExprId b = slice.value;
      for (std::size_t i = 0; a == b && i < std::min(first.state.size(), slice.state.size()); ++i) {
        a = first.state[i].second;
        b = slice.state[i].second;
      }
      if (a == b && first.state.size() == slice.state.size()) continue;
      findings_.Error("E-check-slices-differ", *slice.pserver->file,
                      StrCat("updates slice ", slice.index, " of ", param, " otherwise than ",
                             first.pserver->file->file, " its slice ", first.index),
                      slice.update->optimizer);
      Explain(a, b, first.pserver->file->file, slice.pserver->file->file);
    }
  }

  // The role pairs of an update's ops name the parameter whose gradient arrives.
  void CheckPairs(const UpdatedSlice& slice) {
    for (const OpEntry& entry : slice.pserver->file->program.block(slice.update->block).ops()) {
      const auto pairs = entry.op->RolePairs();
      if (pairs.empty() || (pairs.size() == 1 && pairs.front().first == slice.param)) continue;
      findings_.Error("E-check-pair", *slice.pserver->file,
                      StrCat(entry.op->type(), " says that it is for ", pairs.front().first, ", but updates ",
                             slice.param),
                      entry.op.get());
    }
  }

  void CompareRates() {
    std::map<std::string, std::pair<std::size_t, ExprId>> known;
    for (std::size_t i = 0; i < set_.lr_blocks.size(); ++i) {
      const PserverFacts& pserver = set_.facts.pservers[i];
      const int block = pserver.lr_block;
      if (block < 1 || block >= pserver.file->program.block_count()) continue;
      for (const OpEntry& entry : pserver.file->program.block(block).ops()) {
        for (const std::string& name : entry.op->OutputNames()) {
          const ExprId* value = set_.lr_blocks[i]->Find(name);
          if (value == nullptr) continue;
          const auto [it, fresh] = known.emplace(name, std::pair(i, *value));
          if (fresh || it->second.second == *value) continue;
          const PserverFacts& other = set_.facts.pservers[it->second.first];
          findings_.Error("E-check-rate-differs", *pserver.file,
                          StrCat("computes ", name, " otherwise than ", other.file->file), entry.op.get());
          Explain(it->second.second, *value, other.file->file, pserver.file->file);
          return;  // dependent values differ too
        }
      }
    }
  }

  // The same ops look up, update and save all shards of a table.
  void CompareShards() {
    const PserverFacts* first = nullptr;
    for (const PserverFacts& pserver : set_.facts.pservers) {
      if (pserver.prefetch_blocks.empty()) continue;
      if (first == nullptr) first = &pserver;
      CompareBlocks(*first, first->prefetch_blocks.begin()->second, pserver,
                    pserver.prefetch_blocks.begin()->second, "answers for");
      CompareBlocks(*first, first->checkpoint_block, pserver, pserver.checkpoint_block, "saves");
      const std::vector<int> updates = UpdatesById(*first), own = UpdatesById(pserver);
      for (std::size_t i = 0; i < std::min(updates.size(), own.size()); ++i) {
        CompareBlocks(*first, updates[i], pserver, own[i], "updates");
      }
    }
  }

  static std::vector<int> UpdatesById(const PserverFacts& pserver) {
    std::vector<int> blocks;
    for (const UpdateBlock& update : pserver.updates) {
      if (update.by_id) blocks.push_back(update.block);
    }
    return blocks;
  }

  void CompareBlocks(const PserverFacts& first, int reference, const PserverFacts& pserver, int block,
                     std::string_view verb) {
    if (Labels(first, reference) == Labels(pserver, block)) return;
    findings_.Error("E-check-slices-differ", *pserver.file,
                    StrCat(verb, " its shard of the table otherwise than ", first.file->file), pserver.serve);
    findings_.Detail(StrCat(first.file->file, ":  ", Join(Labels(first, reference), "; ")));
    findings_.Detail(StrCat(pserver.file->file, ":  ", Join(Labels(pserver, block), "; ")));
  }

  std::vector<std::string> Labels(const PserverFacts& pserver, int block) const {
    std::vector<std::string> labels;
    if (block < 1 || block >= pserver.file->program.block_count()) return labels;
    for (const OpEntry& entry : pserver.file->program.block(block).ops()) {
      labels.push_back(StrCat(set_.table.codes().Label(*entry.op, true), " of ",
                              entry.op->InputNames().size(), " into ", entry.op->OutputNames().size()));
    }
    return labels;
  }

  Composition& set_;
  Findings& findings_;
  bool differs_ = false;  // whether the compared trainer differs
};

}  // namespace

void CheckAlike(Composition& set, Findings& findings) { AlikeRules(set, findings).Run(); }

}  // namespace penstock::check
