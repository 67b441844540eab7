#include "operators/common/ring_sites.h"

#include "framework/base/view_map.h"
#include "framework/roles/collective_views.h"

namespace penstock {
namespace {

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

const std::string_view* RingSites::Find(const Op& op) const {
  const auto at = lines_.find(&op);
  return at == lines_.end() ? nullptr : &at->second;
}

RingSites::RingSites(const Block& block) {
  ViewMap<std::string_view> line_of;  // the line that led to the present value of each variable
  const auto known = [&line_of](std::string_view name) {
    const auto at = line_of.find(name);
    return at == line_of.end() ? std::string_view() : at->second;
  };
  for (const OpEntry& entry : block.ops()) {
    const Op& op = *entry.op;
    if (IsOfRing(op)) {
      const std::string_view own = op.location();
      lines_[&op] = own.empty() ? known(op.InputName("X")) : own;
    }
    if (op.location().empty() && op.inputs().empty()) continue;
    const std::string_view line = op.location().empty() ? known(FirstName(op.inputs())) : op.location();
    ForEachName(op.outputs(), [&](std::string_view name) { line_of[name] = line; });
  }
}

}  // namespace penstock
