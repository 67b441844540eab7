#include "framework/roles/piece.h"

#include "framework/ir/program.h"

namespace penstock::roles {

std::string PieceType::ToString() const {
  if (rows) return StrCat(name, " : rows<", DTypeName(dtype), shape, ">");
  std::string text = StrCat(name, " : ", DTypeName(dtype), shape);
  return compression.none() ? text : StrCat(text, " as ", compression);
}

Result<PieceType> PieceOf(const Program& program, int block, const std::string& local,
                          const std::string& remote) {
  const Var* var = program.FindVar(block, local);
  if (var == nullptr || !var->HasShape()) {
    return InvalidArgument("E-contract-var", "communication names ", Quote(local),
                           ", which is not declared as a tensor");
  }
  if (!var->shape().IsKnown() || var->shape().Count() == 0) {
    return InvalidArgument("E-contract-shape", "communication needs the whole shape of ", local,
                           ", which is declared ", var->shape());
  }
  return PieceType{remote, var->type->dtype, var->shape(), var->kind == VarKind::kSelectedRows};
}

Status AddPlace(Status status, const Op& op) {
  return op.location().empty() ? std::move(status)
                               : std::move(status).With(StrCat("written at ", op.location()));
}

}  // namespace penstock::roles
