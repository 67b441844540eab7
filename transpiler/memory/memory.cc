#include "transpiler/memory/memory.h"

#include <string_view>
#include <unordered_set>
#include <utility>

#include "framework/base/strings.h"
#include "framework/op/unknown_ops.h"
#include "framework/text/describe.h"
#include "transpiler/memory/require_declared.h"

namespace penstock::memory {

std::string MemorySize::ToString() const {
  std::vector<std::string> parts;
  if (bytes != 0) parts.push_back(StrCat(bytes, " bytes"));
  for (const auto& [what, each] : bytes_for_each) parts.push_back(StrCat(each, " bytes for each ", what));
  if (parts.empty()) return "nothing";
  const std::string last = std::move(parts.back());
  parts.pop_back();
  return parts.empty() ? last : StrCat(Join(parts, ", "), " and ", last);
}

std::string MemoryRewrite::Report() const {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  text += summary + "\n";
  if (!unknown_ops.empty())
    text += StrCat("ops that are not known, whose variables are not moved: ", unknown_ops, "\n");
  return text;
}

Status RequireDeclared(const Program& program, const NameSet& keep) {
  if (keep.empty()) return OkStatus();
  std::unordered_set<std::string_view> declared;
  for (int b = 0; b < program.block_count(); ++b) {
    for (const VarRef& var : program.block(b).vars()) declared.insert(var->name);
  }
  for (const std::string& name : keep) {
    if (declared.contains(name)) continue;
    return InvalidArgument("E-memory-keep", "memory: ", Quote(name),
                           " is to be kept, and the program does not declare it");
  }
  return OkStatus();
}

Status RequireSchemas(const OpRegistry& ops, const Program& program) {
  for (int b = 0; b < program.block_count(); ++b) {
    const std::vector<OpEntry>& entries = program.block(b).ops();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const Op& op = *entries[i].op;
      const OpDef* def = ops.Find(op.type());
      if (def == nullptr) continue;
      if (Status status = def->CheckOp(op); !status.ok())
        return AtOp(std::move(status), program, b, static_cast<int>(i), op);
    }
  }
  return OkStatus();
}

}  // namespace penstock::memory
