// multiplex: selects each row from one of several tensors.
#include <algorithm>
#include <cstring>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Row i of Out is row i of X[Ids[i]]. All X have the same shape. An index outside [0, number of X) is an error.
The gradient of a row that is not selected is 0.)";

Status InferMultiplex(InferContext& c) {
  const Shape &first = c.ShapeOf("X"), &ids = c.ShapeOf("Ids");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 0));
  for (int i = 1; i < c.InputCount("X"); ++i) {
    if (Compatible(c.ShapeOf("X", i), first) && c.DTypeOf("X", i) == c.DTypeOf("X")) continue;
    return c.Error("X[", i, "] (", DTypeName(c.DTypeOf("X", i)), c.ShapeOf("X", i),
                   ") must have the type and shape of X[0] (", DTypeName(c.DTypeOf("X")), first, ")");
  }
  const bool is_column = ids.rank() == 2 && Compatible(ids[1], 1);
  if (!(is_column || ids.rank() == 1) || !Compatible(ids[0], first[0]))
    return c.Error("Ids (", ids, ") must be [n, 1], a number for each row of X (", first, ")");
  return c.ShareAll("X", "Out");
}

Status InferMultiplexGrad(InferContext& c) {
  for (int i = 0; i < static_cast<int>(c.op().Output("X@GRAD").size()); ++i) {
    PENSTOCK_RETURN_IF_ERROR(c.SetShape("X@GRAD", i, c.ShapeOf("Out@GRAD")));
    c.SetDType("X@GRAD", c.DTypeOf("Out@GRAD"), i);
  }
  return OkStatus();
}

class MultiplexKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    const bool is_grad = static_cast<bool>(k.Input("Out@GRAD"));
    k.Bind(ids_);
    const Argument& whole = is_grad ? k.Input("Out@GRAD") : k.Output("Out");
    whole_ = whole;
    const auto parts = is_grad ? k.Outputs("X@GRAD") : k.Inputs("X");
    parts_.assign(parts.begin(), parts.end());
    is_grad_ = is_grad;
    if (k[ids_].dtype != DType::kInt32 && k[ids_].dtype != DType::kInt64)
      return k.Error("Ids must be i32 or i64");
    if (whole.shape.rank() == 0 || k[ids_].shape.Count() != whole.shape[0])
      return k.Error("Ids (", k[ids_].shape, ") must hold a number for each row of ", whole.shape);
    row_bytes_ = static_cast<std::size_t>(whole.shape.RowWidth()) * SizeOf(whole.dtype);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (is_grad_) {
      for (const Operand& part : parts_) {
        if (part && k[part].bytes() > 0) std::memset(k[part].raw(), 0, k[part].bytes());
      }
    }
    std::byte* row = k[whole_].raw();
    std::size_t offset = 0;
    const Tensor& ids = k[ids_];
    const Dim rows = k[whole_].shape()[0];
    for (Dim i = 0; i < rows; ++i) {
      const std::int64_t at =
          ids.dtype() == DType::kInt32 ? ids.Data<std::int32_t>()[i] : ids.Data<std::int64_t>()[i];
      if (at < 0 || at >= static_cast<std::int64_t>(parts_.size()))
        return InvalidArgument("E-op-index", "multiplex: ", at, " must be in [0, ", parts_.size(), ")");
      if (const Operand& part = parts_[static_cast<std::size_t>(at)]; part && row_bytes_ > 0) {
        std::byte* const other = k[part].raw() + offset;
        std::memcpy(is_grad_ ? other : row, is_grad_ ? row : other, row_bytes_);
      }
      row += row_bytes_;
      offset += row_bytes_;
    }
    return OkStatus();
  }

 private:
  In<"Ids"> ids_;
  Operand whole_;
  std::vector<Operand> parts_;
  bool is_grad_ = false;
  std::size_t row_bytes_ = 0;
};

}  // namespace

void RegisterMultiplex(OpRegistry& ops) {
  ops.Add("multiplex")
      .Doc("Selects each row from one of several tensors.", kDoc)
      .Input("Ids", "[n, 1], the index of the tensor for each row", Integers())
      .Input("X", "tensors of the same shape with n rows", AnyType(), Repeated())
      .Output("Out", "shaped like each X", SameTypeAs("X"), Apart())
      .InferShape(InferMultiplex)
      .KernelForAnyType<Cpu, MultiplexKernel>()
      .Grad({.reads = {"Ids"}, .yields = {"X"}, .apart = {"X"}})
      .GradDef()
      .InferShape(InferMultiplexGrad)
      .KernelForAnyType<Cpu, MultiplexKernel>();
}

}  // namespace penstock
