#include "operators/common/ring_sites.h"

#include <algorithm>
#include <limits>

#include "framework/base/view_map.h"
#include "framework/roles/collective_views.h"

namespace penstock {
namespace {

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

bool OrdersStreamsInPlace(const Op& op) {
  return (op.type() == "c_sync_comm_stream" || op.type() == "c_sync_calc_stream") &&
         op.InputName("X") == op.OutputName("Out");
}

bool IsOfRing(const Op& op) {
  return op.FindAttr("ring_id") != nullptr ||
         roles::CollectiveView(op).kind() != roles::CollectiveKind::kNone;
}

template <typename Visit>
void ForEachName(const std::vector<Slot>& slots, const Visit& visit) {
  for (const Slot& slot : slots) {
    for (const std::string& name : slot.args) {
      if (!name.empty()) visit(std::string_view(name));
    }
  }
}

std::string_view FirstName(const std::vector<Slot>& slots) {
  for (const Slot& slot : slots) {
    if (!slot.args.empty()) return slot.args.front();
  }
  return {};
}

}  // namespace

RingSites::RingSites(const Block& block) {
  FindLines(block);
  FindWaits(block);
}

const RingSites::Site* RingSites::Find(const Op& op) const {
  const auto at = sites_.find(&op);
  return at == sites_.end() ? nullptr : &at->second;
}

void RingSites::FindLines(const Block& block) {
  ViewMap<std::string_view> line_of;  // the line that led to the present value of each variable
  const auto known = [&line_of](std::string_view name) {
    const auto at = line_of.find(name);
    return at == line_of.end() ? std::string_view() : at->second;
  };
  for (const OpEntry& entry : block.ops()) {
    const Op& op = *entry.op;
    if (IsOfRing(op)) {
      const std::string_view own = op.location();
      sites_[&op].where = own.empty() ? known(op.InputName("X")) : own;
    }
    if (op.location().empty() && op.inputs().empty()) continue;
    const std::string_view line = op.location().empty() ? known(FirstName(op.inputs())) : op.location();
    ForEachName(op.outputs(), [&](std::string_view name) { line_of[name] = line; });
  }
}

void RingSites::FindWaits(const Block& block) {
  const auto& ops = block.ops();
  ViewMap<std::size_t> next_use;                   // the next op that uses the variable
  std::unordered_map<int, std::size_t> next_wait;  // the next wait for the ring
  std::size_t next_blocks = kNever;                // the next op with blocks
  const auto use_of = [&](const std::string& name) {
    const auto at = next_use.find(name);
    return name.empty() || at == next_use.end() ? kNever : at->second;
  };
  for (std::size_t i = ops.size(); i-- > 0;) {
    const Op& op = *ops[i].op;
    if (const auto site = sites_.find(&op); site != sites_.end()) {
      const auto wait = next_wait.find(roles::CollectiveView(op).ring());
      const std::size_t use =
          std::min({use_of(op.InputName("X")), use_of(op.OutputName("Out")), next_blocks});
      site->second.awaited_before_use = wait != next_wait.end() && wait->second <= use;
    }
    if (op.type() == "c_sync_comm_stream") next_wait[roles::CollectiveView(op).ring()] = i;
    if (OrdersStreamsInPlace(op)) continue;
    if (op.may_name_blocks()) next_blocks = i;
    ForEachName(op.inputs(), [&](std::string_view name) { next_use[name] = i; });
    ForEachName(op.outputs(), [&](std::string_view name) { next_use[name] = i; });
  }
}

}  // namespace penstock
