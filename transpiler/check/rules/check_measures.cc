// Measures of gradients on pservers before updates: a slice is not mistaken for the whole, and all pservers
// that exchange measures exchange the same ones.
#include <algorithm>

#include "framework/op/slices.h"
#include "framework/text/printer.h"
#include "transpiler/check/facts/facts.h"

namespace penstock::check {
namespace {

class MeasureRules {
 public:
  MeasureRules(const RoleFacts& facts, const OpRegistry& ops, Findings& findings)
      : facts_(facts), ops_(ops), findings_(findings) {}

  void Run() {
    const PserverFacts* first = nullptr;
    for (const PserverFacts& pserver : facts_.pservers) {
      for (const UpdateBlock& update : pserver.updates) {
        if (!facts_.trainers.empty() && !IsPlain(pserver, update) &&
            IsSliced({pserver.address, update.param}))
          CheckSlice(pserver, update);
      }
      CheckPlace(pserver);
      if (pserver.exchange == nullptr) continue;
      CheckPeers(pserver);
      CheckOwners(pserver);
      if (first == nullptr) first = &pserver;
      CompareExchanges(*first, pserver);
    }
  }

 private:
  void Error(const PserverFacts& pserver, std::string message) {
    findings_.Error("E-check-exchange", *pserver.file, std::move(message), pserver.exchange);
  }

  // Whether the gradient is used only for its mean and the update.
  static bool IsPlain(const PserverFacts& pserver, const UpdateBlock& update) {
    const std::size_t known =
        (update.merge != nullptr ? 1 : 0) + update.scales.size() + update.optimizers.size();
    return update.merge_block == update.block &&
           pserver.file->program.block(update.block).ops().size() == known;
  }

  // The pieces of sliced parameters. All trainers slice alike, so the first one suffices.
  bool IsSliced(const Place& piece) {
    if (!sliced_) {
      sliced_.emplace();
      for (const Transfer& recv : facts_.trainers.front().recvs) {
        if (recv.pieces.size() < 2) continue;
        for (const Piece& one : recv.pieces) sliced_->insert({one.pserver, one.remote});
      }
    }
    return sliced_->contains(piece);
  }

  // Examines values computed from the merged gradient or the parameter. Selected rows are left out: an op on
  // rows reads them by their numbers.
  void CheckSlice(const PserverFacts& pserver, const UpdateBlock& update) {
    const Program& program = pserver.file->program;
    std::set<std::string> made(update.consumes.begin(), update.consumes.end());
    std::set<std::string> of_param = {std::string(update.param)};
    for (const int block : update.blocks()) {
      for (const OpEntry& entry : program.block(block).ops()) {
        const Op& op = *entry.op;
        if (&op == update.optimizer && !update.by_hand) continue;
        const std::vector<std::string> inputs = op.InputNames();
        const auto any_in = [&](const std::set<std::string>& names) {
          return std::ranges::any_of(inputs, [&](const auto& name) { return names.contains(name); });
        };
        const bool reads_param = any_in(of_param);
        if (!reads_param && !any_in(made)) continue;
        const bool rows = std::ranges::any_of(
            inputs, [&](const auto& name) { return roles::IsRows(program, block, name); });
        if (rows || ops_.Find(op.type()) == nullptr) continue;
        for (std::string& name : op.OutputNames()) (reads_param ? of_param : made).insert(std::move(name));
        if (WhatOnSlices(ops_, op) != OnSlices::kNeedsWhole) continue;
        findings_.Warning(
            "W-check-norms", *pserver.file,
            StrCat(op.type(),
                   reads_param ? " needs a whole parameter" : " needs the gradient of a whole parameter",
                   ", but ", update.param, " is a slice of one"),
            &op);
      }
    }
  }

  void CheckPlace(const PserverFacts& pserver) {
    const Program& program = pserver.file->program;
    int exchanges = 0;
    for (int b = 0; b < program.block_count(); ++b) {
      for (const OpEntry& entry : program.block(b).ops()) {
        if (roles::CommOf(*entry.op) != roles::Comm::kExchange) continue;
        ++exchanges;
        if (b == pserver.shared_block) continue;
        findings_.Error("E-check-exchange", *pserver.file,
                        StrCat("exchanges measures in block ", b,
                               ", which is not run between all that measures and all that updates"),
                        entry.op.get());
      }
    }
    if (exchanges > 1) Error(pserver, StrCat("exchanges measures ", exchanges, " times a step"));
  }

  const PserverFacts* Partner(const std::string& address) const {
    const PserverFacts* pserver = facts_.FindPserver(address);
    return pserver == nullptr || pserver->exchange == nullptr ? nullptr : pserver;
  }

  // If one pserver waits for another, the other waits for it too.
  void CheckPeers(const PserverFacts& pserver) {
    const roles::Names peers = roles::ExchangeView(*pserver.exchange).peers();
    for (const std::string& peer : peers) {
      if (Partner(peer) == nullptr) {
        Error(pserver, StrCat("exchanges measures with ", peer, ", which takes no part in it"));
      }
    }
    for (const PserverFacts& other : facts_.pservers) {
      const auto named = std::count(peers.begin(), peers.end(), other.address);
      if (other.exchange == nullptr || named == 1) continue;
      Error(pserver, named == 0 ? StrCat("does not exchange measures with ", other.address, ", which does")
                                : StrCat("exchanges measures with ", other.address, " ", named, " times"));
    }
  }

  // Each value comes from the server that has it, and each server sends its own values.
  void CheckOwners(const PserverFacts& pserver) {
    const roles::Names all = roles::ExchangeView(*pserver.exchange).all();
    const roles::Names owners = roles::ExchangeView(*pserver.exchange).owners();
    if (all.size() != owners.size()) {
      Error(pserver, StrCat("takes ", all.size(), " measures, but says of ", owners.size(), " who has them"));
      return;
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      const PserverFacts* owner = Partner(owners[i]);
      const roles::Names given =
          owner == nullptr ? roles::Names() : roles::ExchangeView(*owner->exchange).own();
      if (std::find(given.begin(), given.end(), all[i]) == given.end()) {
        Error(pserver, StrCat("waits for ", all[i], " of ", owners[i], ", which does not give it"));
        continue;
      }
      const Var* here = pserver.file->program.main().FindVar(all[i]);
      const Var* there = owner->file->program.main().FindVar(all[i]);
      if (here == nullptr || there == nullptr || !here->type || !there->type ||
          (here->shape() == there->shape() && here->type->dtype == there->type->dtype))
        continue;
      Error(pserver, StrCat("takes ", all[i], " as ", PrintVarType(*here), ", but ", owners[i], " gives ",
                            PrintVarType(*there)));
    }
    for (const std::string& own : roles::ExchangeView(*pserver.exchange).own()) {
      bool taken = false;
      for (std::size_t i = 0; i < all.size(); ++i) taken |= all[i] == own && owners[i] == pserver.address;
      if (!taken) Error(pserver, StrCat("gives ", own, ", but does not take it into account itself"));
    }
  }

  // The order must be equal too, so that sums have the same bytes everywhere.
  void CompareExchanges(const PserverFacts& first, const PserverFacts& pserver) {
    const roles::ExchangeView one(*first.exchange), other(*pserver.exchange);
    if (std::ranges::equal(one.all(), other.all()) && std::ranges::equal(one.owners(), other.owners()))
      return;
    Error(pserver, StrCat("exchanges other measures than ", first.file->file, ", or in another order"));
    findings_.Detail(StrCat(first.file->file, ":  ", PrintOp(*first.exchange)));
  }

  const RoleFacts& facts_;
  const OpRegistry& ops_;
  Findings& findings_;
  std::optional<PlaceSet> sliced_;
};

}  // namespace

void CheckMeasures(const RoleFacts& facts, const OpRegistry& ops, Findings& findings) {
  MeasureRules(facts, ops, findings).Run();
}

}  // namespace penstock::check
