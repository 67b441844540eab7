// Shapes for ops that create a tensor, with one extent taken from another tensor.
#pragma once

#include "framework/op/op_def.h"
#include "operators/common/int_list.h"
#include "operators/common/lod.h"

namespace penstock {

// Out has the shape in attribute `shape`, except that extent output_dim_idx is Input's extent input_dim_idx.
// If Input has LoD and input_dim_idx is 0, the extent is the number of sequences of the innermost level
// instead, and Out's shape is known only when the op runs.
inline Status InferBatchSizeLike(InferContext& c) {
  Shape shape;
  for (const std::int32_t extent : c.Attr<std::vector<std::int32_t>>("shape")) shape.Append(extent);
  const int from = c.Attr<int>("input_dim_idx"), to = c.Attr<int>("output_dim_idx");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("Input", from));
  if (to >= shape.rank()) {
    return c.Error("output_dim_idx (", to, ") must be within the rank of shape ", shape);
  }
  for (int i = 0; i < shape.rank(); ++i) {
    if (i != to && shape[i] < 0) return c.Error("shape ", shape, " must say every extent but the batch's");
  }
  const bool counts_sequences = from == 0 && c.Input("Input").lod_level > 0;
  shape.Set(to, counts_sequences ? kUnknownDim : c.ShapeOf("Input")[from]);
  return c.SetShape("Out", shape);
}

// For the kernels of ops that use InferBatchSizeLike.
class BatchSizeLike {
 public:
  void Prepare(const KernelSetup& k) {
    input_.Prepare(k, "Input");
    out_ = k.Output("Out");
    shape_ = k.Output("Out").shape;
    counts_sequences_ = !shape_.IsKnown();
    to_ = k.Attr<int>("output_dim_idx");
  }
  // Allocates Out if its shape was not known in Prepare. Errors: an invalid LoD.
  Status Make(KernelRun& k) {
    if (!counts_sequences_) return OkStatus();
    PENSTOCK_ASSIGN_OR_RETURN(const LoD* const lod, input_.Levels(k, 0));
    shape_.Set(to_, lod->empty() ? k[input_.operand()].shape()[0] : Offsets(lod->back()).count());
    MakeShaped(k[out_], out_.dtype, shape_);
    return OkStatus();
  }

 private:
  SequenceInput input_;
  TypedOperand out_;
  Shape shape_;
  int to_ = 0;
  bool counts_sequences_ = false;
};

// Declares the slots, attributes and inference of those ops, without the attributes of their values.
inline OpDef& WithBatchSize(OpDef& def) {
  return def.Input("Input", "gives one extent", AnyType())
      .Output("Out", "the tensor", TypeFromAttr("dtype"))
      .RequiredAttr("shape", AttrKind::kInts, "Out's shape; the extent that Input gives may be anything")
      .Attr("input_dim_idx", 0, "the extent of Input", AtLeast(0))
      .Attr("output_dim_idx", 0, "the extent of Out that it gives", AtLeast(0))
      .InferShape(InferBatchSizeLike);
}

}  // namespace penstock
