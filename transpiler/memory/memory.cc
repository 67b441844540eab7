#include "transpiler/memory/memory.h"

#include "framework/base/strings.h"
#include "transpiler/memory/require_declared.h"

namespace penstock {

MemorySize SizeOfVar(const Var& var) {
  std::int64_t bytes = static_cast<std::int64_t>(SizeOf(var.type->dtype));
  int unknown = 0;
  for (const Dim extent : var.shape().dims()) {
    unknown += extent == kUnknownDim;
    // What does not fit 64 bits cannot be counted, nor allocated.
    if (extent != kUnknownDim && __builtin_mul_overflow(bytes, extent, &bytes)) return {.unknown = 1};
  }
  if (unknown > 1) return {.unknown = 1};
  return unknown == 1 ? MemorySize{.bytes_per_item = bytes} : MemorySize{.bytes = bytes};
}

std::string MemorySize::ToString() const {
  std::vector<std::string> parts;
  if (bytes != 0) parts.push_back(StrCat(bytes, " bytes"));
  if (bytes_per_item != 0) parts.push_back(StrCat(bytes_per_item, " bytes for each batch item"));
  if (unknown != 0) parts.push_back(StrCat("what ", unknown, " tensors of several unknown extents hold"));
  return parts.empty() ? "nothing" : Join(parts, " and ");
}

std::string MemoryRewrite::Report() const {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text + summary + "\n";
}

Status RequireDeclared(const Program& program, const NameSet& keep) {
  for (const std::string& name : keep) {
    bool declared = false;
    for (int b = 0; b < program.block_count(); ++b)
      declared = declared || program.block(b).FindVar(name) != nullptr;
    if (declared) continue;
    return InvalidArgument("E-memory-keep", "memory: ", Quote(name),
                           " is to be kept, and the program does not declare it");
  }
  return OkStatus();
}

}  // namespace penstock
