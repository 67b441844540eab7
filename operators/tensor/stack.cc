// stack: tensors of one shape become one tensor with an extent more.
#include <cstring>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Y has one extent more than each X: extent `axis`, along which X[0], X[1], ... lie. A negative axis counts from
the end of Y's extents.)";

// Where the new extent stands among those of Y, or an error.
template <typename Context>
Status ResolveAxis(const Context& c, int rank_of_x, int& axis) {
  axis = c.template Attr<int>("axis");
  if (axis < 0) axis += rank_of_x + 1;
  if (axis >= 0 && axis <= rank_of_x) return OkStatus();
  return c.Error("axis (", c.template Attr<int>("axis"), ") must be in [", -rank_of_x - 1, ", ", rank_of_x,
                 "]");
}

Status InferStack(InferContext& c) {
  const Shape& first = c.ShapeOf("X");
  int axis = 0;
  PENSTOCK_RETURN_IF_ERROR(ResolveAxis(c, first.rank(), axis));
  for (int i = 1; i < c.InputCount("X"); ++i) {
    if (!Compatible(c.ShapeOf("X", i), first)) {
      return c.Error("shape of X[", i, "] (", c.ShapeOf("X", i), ") must equal that of X[0] (", first, ")");
    }
    if (c.DTypeOf("X", i) != c.DTypeOf("X")) {
      return c.Error("element type of X[", i, "] (", DTypeName(c.DTypeOf("X", i)),
                     ") must equal that of X[0] (", DTypeName(c.DTypeOf("X")), ")");
    }
  }
  Shape y = first.First(axis);
  y.Append(c.InputCount("X"));
  return c.SetShape("Y", Concat(y, first.From(axis)));
}

Status InferStackGrad(InferContext& c) {
  const Shape& dy = c.ShapeOf("Y@GRAD");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("Y@GRAD", 0));
  int axis = 0;
  PENSTOCK_RETURN_IF_ERROR(ResolveAxis(c, dy.rank() - 1, axis));
  const int parts = static_cast<int>(c.op().Output("X@GRAD").size());  // also those that nobody reads
  if (!Compatible(dy[axis], parts)) {
    return c.Error("extent ", axis, " of Y@GRAD (", dy[axis], ") must equal the number of gradients (", parts,
                   ")");
  }
  for (int i = 0; i < parts; ++i) {
    PENSTOCK_RETURN_IF_ERROR(c.SetShape("X@GRAD", i, Concat(dy.First(axis), dy.From(axis + 1))));
    c.SetDType("X@GRAD", c.DTypeOf("Y@GRAD"), i);
  }
  return OkStatus();
}

// Y is `outer` groups of one strip of each part.
struct Strips {
  void Prepare(const Shape& y, int axis, DType type) {
    outer = static_cast<std::size_t>(y.Product(0, axis));
    bytes = static_cast<std::size_t>(y.Product(axis + 1, y.rank())) * SizeOf(type);
  }
  std::size_t outer = 0, bytes = 0;
};

class StackKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    parts_.assign(k.Inputs("X").begin(), k.Inputs("X").end());
    y_ = k.Output("Y");
    for (const Operand& part : parts_) {
      if (part.kind == VarKind::kTensor) continue;
      return Unimplemented("E-op-rows", "stack: selected rows are not supported; use dense tensors");
    }
    int axis = 0;
    PENSTOCK_RETURN_IF_ERROR(ResolveAxis(k, y_.shape.rank() - 1, axis));
    strips_.Prepare(y_.shape, axis, y_.dtype);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (strips_.bytes == 0) return OkStatus();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const std::byte* const x = k[parts_[i]].raw();
      std::byte* const y = k[y_].raw();
      for (std::size_t o = 0; o < strips_.outer; ++o) {
        std::memcpy(y + (o * parts_.size() + i) * strips_.bytes, x + o * strips_.bytes, strips_.bytes);
      }
    }
    return OkStatus();
  }

 private:
  std::vector<Operand> parts_;
  Operand y_;
  Strips strips_;
};

class StackGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    parts_.assign(k.Outputs("X@GRAD").begin(), k.Outputs("X@GRAD").end());
    dy_ = k.Input("Y@GRAD");
    int axis = 0;
    PENSTOCK_RETURN_IF_ERROR(ResolveAxis(k, dy_.shape.rank() - 1, axis));
    strips_.Prepare(dy_.shape, axis, dy_.dtype);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (strips_.bytes == 0) return OkStatus();
    const std::byte* const dy = k[dy_].raw();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (!parts_[i]) continue;
      std::byte* const dx = k[parts_[i]].raw();
      for (std::size_t o = 0; o < strips_.outer; ++o) {
        std::memcpy(dx + o * strips_.bytes, dy + (o * parts_.size() + i) * strips_.bytes, strips_.bytes);
      }
    }
    return OkStatus();
  }

 private:
  std::vector<Operand> parts_;
  Operand dy_;
  Strips strips_;
};

}  // namespace

void RegisterStack(OpRegistry& ops) {
  ops.Add("stack")
      .Doc("Tensors of one shape become one, with an extent more.", kDoc)
      .Input("X", "tensors of one shape and type", AnyType(), Repeated())
      .Output("Y", "all of them", SameTypeAs("X"))
      .Attr("axis", 0, "which extent of Y is the new one")
      .InferShape(InferStack)
      .KernelForAnyType<Cpu, StackKernel>()
      .Grad({.yields = {"X"}})
      .GradDef()
      .InferShape(InferStackGrad)
      .KernelForAnyType<Cpu, StackGradKernel>();
}

}  // namespace penstock
