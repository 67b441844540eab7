// The declarations of one op's arguments, as shape inference sees them. Inference runs when a program is
// built (extents may be unknown) and again for each specialisation (all extents known). It collects the
// inferred types of the outputs here; the caller writes them back.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/op.h"
#include "framework/op/tensor_desc.h"

namespace penstock {

class OpDef;

// An output that gets the LoD of an input. Slots are positions in op.inputs() and op.outputs().
struct LodShare {
  int input_slot = -1, input = -1;
  int output_slot = -1, output = -1;
};

class InferContext {
 public:
  // `lookup` returns the declaration of a variable by name, nullopt if it is not declared. It is called once
  // for each argument, in order: inputs, then outputs.
  using Lookup = std::function<std::optional<TensorDesc>(const std::string&)>;
  InferContext(const OpDef& def, const Op& op, const Lookup& lookup);

  const Op& op() const { return op_; }
  const OpDef& def() const { return def_; }
  bool HasInput(std::string_view slot) const;  // whether the slot names a variable
  bool HasOutput(std::string_view slot) const { return OutputCount(slot) > 0; }
  int InputCount(std::string_view slot) const;
  int OutputCount(std::string_view slot) const;

  const TensorDesc& Input(std::string_view slot, int i = 0) const;
  const TensorDesc& Output(std::string_view slot, int i = 0) const;  // as declared, or as set so far
  const Shape& ShapeOf(std::string_view slot, int i = 0) const { return Input(slot, i).shape; }
  DType DTypeOf(std::string_view slot, int i = 0) const { return Input(slot, i).dtype; }

  // The attribute, or the schema's default. CheckOp has verified that its kind is T's.
  template <typename T>
  T Attr(std::string_view name) const;

  // The Set functions do nothing for an absent output, such as a gradient that is not needed.
  Status SetShape(std::string_view slot, const Shape& shape) { return SetShape(slot, 0, shape); }
  Status SetShape(std::string_view slot, int i, const Shape& shape);
  void SetDType(std::string_view slot, DType dtype, int i = 0);
  void SetLodLevel(std::string_view slot, int level, int i = 0);
  // Gives `out` the LoD of `in`: the level now, the offsets when the op has run.
  void ShareLod(std::string_view in, std::string_view out) { ShareLod(in, 0, out, 0); }
  void ShareLod(std::string_view in, int i, std::string_view out, int j);
  // Gives `out` the offsets of `in` when the op has run, but declares `out` without LoD, as Fluid does for
  // the gradients of mul and similar ops.
  void ShareLodUndeclared(std::string_view in, int i, std::string_view out, int j);
  void SetKind(std::string_view slot, VarKind kind, int i = 0);
  // Replaces what is inferred of argument i of output slot `slot`, by positions.
  void SetOutput(std::size_t slot, std::size_t i, const TensorDesc& info) { outputs_[slot][i] = info; }
  // Gives `out` the shape, type and LoD of `in`.
  Status ShareAll(std::string_view in, std::string_view out);

  Status RequireRankAbove(std::string_view slot, int rank) const;
  Status RequireRank(std::string_view slot, int rank) const;
  // kInvalidArgument with id E-shape-<type>; the caller adds the op, its arguments and its place.
  template <typename... Parts>
  Status Error(const Parts&... parts) const {
    return InvalidArgument(StrCat("E-shape-", op_.type()), op_.type(), ": ", StrCat(parts...));
  }

  // Results, slot by slot as in op().outputs().
  const std::vector<std::vector<TensorDesc>>& outputs() const { return outputs_; }
  const std::vector<LodShare>& lod_shares() const { return lod_shares_; }

 private:
  friend class OpDef;
  TensorDesc* MutableOutput(std::string_view slot, int i);
  const penstock::Attr& AttrValue(std::string_view name) const;

  const OpDef& def_;
  const Op& op_;
  std::vector<std::vector<TensorDesc>> inputs_;
  std::vector<std::vector<TensorDesc>> outputs_;
  std::vector<LodShare> lod_shares_;
};

template <typename T>
T InferContext::Attr(std::string_view name) const {
  const penstock::Attr& value = AttrValue(name);
  std::optional<T> typed = AttrAs<T>(value);
  PENSTOCK_CHECK(typed.has_value(),
                 StrCat(op_.type(), ": attribute ", name, " has another kind than its reader expects"));
  return *std::move(typed);
}

}  // namespace penstock
