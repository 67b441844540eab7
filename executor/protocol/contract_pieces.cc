#include "executor/protocol/contract_pieces.h"

#include <algorithm>

namespace penstock::protocol {

void SortByName(std::vector<ContractPiece>& pieces) {
  std::sort(pieces.begin(), pieces.end(),
            [](const ContractPiece& a, const ContractPiece& b) { return a.name < b.name; });
}

Status AddPlace(Status status, const Op& op) {
  return op.location().empty() ? std::move(status)
                               : std::move(status).With(StrCat("written at ", op.location()));
}

Result<ContractPiece> PieceOf(const Program& program, int block, const std::string& local,
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
  return ContractPiece{remote, var->type->dtype, var->shape(), var->kind == VarKind::kSelectedRows};
}

}  // namespace penstock::protocol
