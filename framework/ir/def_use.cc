#include "framework/ir/def_use.h"

namespace penstock {
namespace {
const std::vector<OpId> kNone;
}  // namespace

void DefUse::Note(Table& table, const std::vector<Slot>& slots, OpId id) {
  for (const Slot& slot : slots) {
    for (const std::string& arg : slot.args) {
      std::vector<OpId>& ids = table[arg];
      if (ids.empty() || ids.back() != id) ids.push_back(id);
    }
  }
}

const std::vector<OpId>& DefUse::Look(const Table& table, std::string_view var) {
  const auto it = table.find(var);
  return it == table.end() ? kNone : it->second;
}

DefUse::DefUse(const Block& block) {
  for (const OpEntry& entry : block.ops()) {
    Note(readers_, entry.op->inputs(), entry.id);
    Note(writers_, entry.op->outputs(), entry.id);
  }
}

const std::vector<OpId>& DefUse::Writers(std::string_view var) const { return Look(writers_, var); }
const std::vector<OpId>& DefUse::Readers(std::string_view var) const { return Look(readers_, var); }

}  // namespace penstock
