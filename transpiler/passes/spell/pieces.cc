#include "transpiler/passes/spell/pieces.h"

#include "transpiler/plan/names.h"

namespace penstock::passes {
namespace {

template <typename NameOf>
NameList Pieces(const plan::ParamPlacement& param, NameOf name_of) {
  NameList pieces;
  for (std::size_t i = 0; i < param.slices.size(); ++i) {
    pieces.push_back(name_of(param, static_cast<int>(i)));
  }
  return pieces;
}

void Declare(const plan::ParamPlacement& param, const NameList& pieces, VarKind kind, BlockEdit& main) {
  if (!param.sliced()) return;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    Var piece = TensorVar(pieces[i], param.dtype, param.ShapeOf(param.slices[i]));
    piece.kind = kind;
    main.SetVar(std::move(piece));
  }
}

}  // namespace

Status RequireFreeName(const Program& main, const std::string& owner, const std::string& name) {
  if (main.main().FindVar(name) == nullptr) return OkStatus();
  return InvalidArgument("E-plan-name-clash", "plan: ", owner, " needs the name ", name,
                         ", which a variable of the program has")
      .With("note: rename that variable");
}

NameList ParamPieces(const plan::ParamPlacement& param) { return Pieces(param, plan::ParamPieceName); }
NameList GradPieces(const plan::ParamPlacement& param) { return Pieces(param, plan::MergedGradName); }

void DeclareParamPieces(const plan::ParamPlacement& param, BlockEdit& main) {
  Declare(param, ParamPieces(param), VarKind::kTensor, main);
}

void DeclareGradPieces(const plan::ParamPlacement& param, BlockEdit& main) {
  Declare(param, GradPieces(param), param.sparse ? VarKind::kSelectedRows : VarKind::kTensor, main);
}

}  // namespace penstock::passes
