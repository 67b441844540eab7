// Rules that ask the registry: schemas and shapes.
#include <algorithm>
#include <optional>
#include <string>

#include "framework/op/conform.h"
#include "framework/op/infer_context.h"
#include "framework/op/tensor_desc.h"
#include "framework/text/lexer.h"
#include "framework/text/printer.h"
#include "framework/verify/scene.h"

namespace penstock {
namespace {

// Calls visit(def, block, position) for each op that must be checked and that the registry knows.
template <typename Visit>
void ForEachKnownOp(VerifyScene& scene, const Visit& visit) {
  if (scene.ops() == nullptr) return;
  for (int b = 0; b < scene.program().block_count() && !scene.Full(); ++b) {
    const Block& block = scene.program().block(b);
    for (std::size_t i = 0; i < block.ops().size(); ++i) {
      if (!scene.Touched(block, block.ops()[i])) continue;
      const OpDef* def = scene.ops()->Find(block.ops()[i].op->type());
      if (def != nullptr) visit(*def, block, i);
    }
  }
}

// The declaration of an array shows only the type that was written to it last; it may hold tensors of several
// shapes.
bool IsArray(const Declaration& argument) {
  return argument.var != nullptr && argument.var->kind == VarKind::kTensorArray;
}

// Whether the shape is unknown. Fluid has no tensors of rank 0: a declaration without extents means that the
// shape was not inferred, or was lost when a clipped gradient became selected rows.
bool IsOfUntoldShape(const Declaration& argument) {
  const Var* var = argument.var;
  const bool shaped =
      var != nullptr && (var->kind == VarKind::kTensor || var->kind == VarKind::kSelectedRows);
  return shaped && var->type && var->shape().rank() == 0;
}

// Whether the element type may be unknown: Fluid declares a temporary of unknown type as bool.
bool MayBeUntold(const Var& declared) {
  return declared.type && declared.type->dtype == DType::kBool && !declared.persistable &&
         !declared.facts.is_data;
}

bool IsOfUntoldType(const Var& declared, const TensorDesc& inferred) {
  return MayBeUntold(declared) && inferred.has_type && inferred.dtype != DType::kBool;
}

// Records that outputs of an unknown op, or of an op that reads such outputs, may hold any type.
void NoteUntold(std::span<const Declaration> outputs, VerifyScene& scene) {
  for (const Declaration& output : outputs) {
    if (output.var != nullptr && MayBeUntold(*output.var)) scene.NoteHeld(*output.var, std::nullopt);
  }
}

// The declaration of a variable. If it leaves the element type open, the result has the type that the
// variable is known to hold.
TensorDesc KnownOf(const Var& var, const VerifyScene& scene) {
  TensorDesc known = DescOf(var);
  if (MayBeUntold(var)) known.dtype = scene.HeldBy(var);
  return known;
}

// The inferred shape, as it is compared. Selected rows may list no rows, whatever the height of the whole.
Shape ComparedShape(const TensorDesc& inferred) {
  const Shape& shape = inferred.shape;
  const bool empty = inferred.kind == VarKind::kSelectedRows && shape.rank() > 0 && shape[0] == 0;
  return empty ? shape.WithRows(kUnknownDim) : shape;
}

// Empty if the inferred type agrees with the declared one; an unknown extent agrees with any.
std::string Disagreement(const Var& declared, const TensorDesc& inferred, bool compare_shapes) {
  if (!declared.type || !inferred.has_type || declared.kind != inferred.kind) return "";
  const bool fits = !compare_shapes || Compatible(declared.type->shape, ComparedShape(inferred));
  const bool same = declared.type->dtype == inferred.dtype || IsOfUntoldType(declared, inferred);
  if (same && fits) return "";
  return StrCat("is declared ", DTypeName(declared.type->dtype), declared.type->shape, ", but ",
                DTypeName(inferred.dtype), inferred.shape, " follows from the inputs");
}

bool Names(std::span<const Declaration> arguments, const Var& var) {
  return std::ranges::any_of(arguments, [&](const Declaration& argument) { return argument.var == &var; });
}

// Whether a variable may hold two shapes, of which its declaration shows one: an op writes it, and another op
// reads and writes it in place, as reshape(inplace=True) and its gradient do. Called only if an op disagrees
// with the declaration.
bool MayHaveTwoShapes(const Var& var, int block, VerifyScene& scene) {
  if (var.persistable || var.facts.is_data) return false;
  const Declarations& declarations = scene.DeclarationsIn(block);
  std::size_t writers = 0;
  bool in_place = false;
  for (std::size_t i = 0; i < scene.program().block(block).ops().size(); ++i) {
    if (!Names(declarations.OutputsOf(i), var)) continue;
    ++writers;
    in_place = in_place || Names(declarations.InputsOf(i), var);
  }
  return in_place && writers > 1;
}

bool AnyMayHaveTwoShapes(std::span<const Declaration> arguments, int block, VerifyScene& scene) {
  return std::ranges::any_of(arguments, [&](const Declaration& argument) {
    return argument.var != nullptr && MayHaveTwoShapes(*argument.var, block, scene);
  });
}

// Whether a tensor of one shape may be reshaped to the other.
bool MayBeReshaped(const Shape& a, const Shape& b) {
  return !a.IsKnown() || !b.IsKnown() || a.Count() == b.Count();
}

void CheckShapesOf(const OpDef& def, const Block& block, std::size_t position, VerifyScene& scene) {
  const Op& op = *block.ops()[position].op;
  if (!def.has_infer_shape() || !scene.WellFormed(op)) return;
  const Declarations& declarations = scene.DeclarationsIn(block.index());
  const auto arguments = declarations.ArgumentsOf(position);
  if (std::ranges::any_of(arguments, IsOfUntoldShape)) return;
  const bool untold = std::ranges::any_of(arguments, [&](const Declaration& argument) {
    if (argument.var == nullptr || !MayBeUntold(*argument.var)) return false;
    // After a pass, unchanged ops are not visited, so the types that their outputs hold are unknown.
    return !scene.Whole() || scene.IsUntold(*argument.var);
  });
  if (untold) return NoteUntold(declarations.OutputsOf(position), scene);
  auto next = arguments.begin();  // InferContext looks arguments up in this order
  const std::optional<Op> conformed = Conformed(def, op);
  InferContext context(def, conformed ? *conformed : op,
                       [&](const std::string&) -> std::optional<TensorDesc> {
                         const Var* var = (next++)->var;
                         return var == nullptr ? std::nullopt : std::optional(KnownOf(*var, scene));
                       });
  if (Status status = def.Infer(context); !status.ok()) {
    if (AnyMayHaveTwoShapes(arguments, block.index(), scene)) return;
    scene.AddAt(std::move(status), block, position);
    return;
  }
  const bool compare_shapes = std::ranges::none_of(arguments, IsArray);
  auto declared = declarations.OutputsOf(position).begin();
  for (std::size_t s = 0; s < op.outputs().size(); ++s) {
    const Slot& slot = op.outputs()[s];
    for (std::size_t a = 0; a < slot.args.size(); ++a) {
      const Var* var = (declared++)->var;
      if (var == nullptr) continue;
      const TensorDesc& inferred = context.outputs()[s][a];
      if (IsOfUntoldType(*var, inferred)) scene.NoteHeld(*var, inferred.dtype);
      const std::string disagreement = Disagreement(*var, inferred, compare_shapes);
      if (disagreement.empty()) continue;
      const bool reshaped = Disagreement(*var, inferred, /*compare_shapes=*/false).empty() &&
                            MayBeReshaped(var->type->shape, inferred.shape) &&
                            AnyMayHaveTwoShapes(arguments, block.index(), scene);
      if (reshaped) continue;
      scene.AddAt(InvalidArgument(StrCat("E-shape-", op.type()), SpellName(op.type()), ": ",
                                  SpellName(slot.name), " (", SpellName(slot.args[a]), ") ", disagreement),
                  block, position);
    }
  }
}

void NoteMadeByStrangers(VerifyScene& scene) {
  if (scene.ops() == nullptr || !scene.Whole()) return;
  for (int b = 0; b < scene.program().block_count(); ++b) {
    const std::vector<OpEntry>& ops = scene.program().block(b).ops();
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (scene.ops()->Find(ops[i].op->type()) != nullptr) continue;
      NoteUntold(scene.DeclarationsIn(b).OutputsOf(i), scene);
    }
  }
}

}  // namespace

void CheckSchemas(VerifyScene& scene) {
  ForEachKnownOp(scene, [&](const OpDef& def, const Block& block, std::size_t position) {
    const Op& op = *block.ops()[position].op;
    Status fits = def.CheckOp(op);
    if (fits.ok()) return;
    scene.NoteMalformed(op);
    scene.AddAt(std::move(fits), block, position);
  });
}

void CheckShapes(VerifyScene& scene) {
  NoteMadeByStrangers(scene);
  ForEachKnownOp(scene, [&](const OpDef& def, const Block& block, std::size_t position) {
    CheckShapesOf(def, block, position, scene);
  });
}

}  // namespace penstock
