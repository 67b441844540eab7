#include "executor/graph/explain.h"

#include "framework/text/printer.h"

namespace penstock::exec {
namespace {

std::string Wrapped(VarKind kind, const std::string& type) {
  switch (kind) {
    case VarKind::kSelectedRows:
      return StrCat("rows<", type, ">");
    case VarKind::kTensorArray:
      return StrCat("array<", type, ">");
    default:
      return type;
  }
}

}  // namespace

std::string TypeText(const TensorDesc& info) {
  if (!info.has_type) return "control";
  return Wrapped(info.kind, StrCat(DTypeName(info.dtype), info.shape));
}

std::string TypeText(const Var& var) {
  if (!var.type) return "control";
  return Wrapped(var.kind, StrCat(DTypeName(var.type->dtype), var.type->shape));
}

Status ExplainOp(Status status, const Program& program, int block, int position,
                 std::span<const std::string> facts) {
  const Op& op = *program.block(block).ops()[static_cast<std::size_t>(position)].op;
  status.With(StrCat("op ", position, " of block ", block, ":  ", PrintOp(op)));
  for (const std::string& fact : facts) status.With(StrCat("  ", fact));
  if (!op.location().empty()) status.With(StrCat("written at ", op.location()));
  return status;
}

}  // namespace penstock::exec
