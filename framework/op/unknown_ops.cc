#include "framework/op/unknown_ops.h"

#include <map>
#include <string_view>
#include <vector>

#include "framework/base/strings.h"

namespace penstock {

std::string UnknownOps(const OpRegistry& ops, const Program& program) {
  std::map<std::string_view, int> counts;
  for (int b = 0; b < program.block_count(); ++b) {
    for (const OpEntry& entry : program.block(b).ops()) {
      if (ops.Find(entry.op->type()) == nullptr) ++counts[entry.op->type()];
    }
  }
  std::vector<std::string> parts;
  parts.reserve(counts.size());
  for (const auto& [type, count] : counts)
    parts.push_back(StrCat(type, " (", count, count == 1 ? " op)" : " ops)"));
  return Join(parts, ", ");
}

}  // namespace penstock
