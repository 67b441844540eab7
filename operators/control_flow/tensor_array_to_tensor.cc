// tensor_array_to_tensor: concatenates or stacks the elements of an array.
#include <cstring>

#include "framework/op/op_registry.h"
#include "operators/control_flow/array.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out concatenates the elements of X along dimension `axis`, in which they may differ. With use_stack, it stacks
them along a new axis, and all shapes must be equal. OutIndex holds the size of dimension `axis` of each
element, or 1 if an element has no such dimension. A negative axis counts from the end. The gradient splits
Out@GRAD again.)";

class Joined : public Kernel {
 protected:
  Status PrepareJoined(KernelSetup& k) {
    x_ = k.Input("X");
    axis_ = k.Attr<int>("axis");
    stack_ = k.Attr<bool>("use_stack");
    return OkStatus();
  }

  // Computes the shape of the concatenation and the positions of the elements in it.
  Status Measure(const TensorArray& array) {
    if (array.empty() || !array.front().initialized()) return Empty(0);
    const Shape& first = array.front().shape();
    const int rank = first.rank() + (stack_ ? 1 : 0);
    const int axis = axis_ < 0 ? axis_ + rank : axis_;
    if (axis < 0 || axis >= rank) {
      return InvalidArgument("E-op-array-shape", "tensor_array_to_tensor: axis (", axis_,
                             ") is out of range; the elements have shape ", first);
    }
    Dim extent = 0;
    bytes_.clear();
    for (std::size_t i = 0; i < array.size(); ++i) {
      const Tensor& element = array[i];
      if (!element.initialized()) return Empty(i);
      bool alike = element.dtype() == array.front().dtype() && element.shape().rank() == first.rank();
      for (int d = 0; alike && d < first.rank(); ++d)
        alike = element.shape()[d] == first[d] || (!stack_ && d == axis);
      if (!alike) {
        return InvalidArgument("E-op-array-shape", "tensor_array_to_tensor: element ", i, " of ", x_.name,
                               " is ", DTypeName(element.dtype()), element.shape(), ", element 0 ",
                               DTypeName(array.front().dtype()), first, "; type and shape must agree",
                               stack_ ? "" : " except in dimension `axis`");
      }
      bytes_.push_back(static_cast<std::size_t>(element.shape().Product(axis, element.shape().rank())) *
                       SizeOf(element.dtype()));
      extent += stack_ ? 1 : element.shape()[axis];
    }
    outer_ = first.Product(0, axis);
    if (joined_.rank() != rank) joined_ = Shape(std::vector<Dim>(static_cast<std::size_t>(rank)));
    for (int d = 0; d < rank; ++d) joined_.Set(d, d == axis ? extent : first[stack_ && d > axis ? d - 1 : d]);
    return OkStatus();
  }

  // The elements are interleaved: `outer_` times a run of bytes of each element.
  std::int64_t outer_ = 1;
  std::vector<std::size_t> bytes_;
  Shape joined_;
  NamedOperand x_;
  int axis_ = 0;
  bool stack_ = false;

 private:
  Status Empty(std::size_t i) const {
    return FailedPrecondition("E-op-array", "tensor_array_to_tensor: element ", i, " of ", x_.name,
                              " is empty: nothing was written to it");
  }
};

class JoinElementsKernel : public Joined {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(out_, index_);
    return PrepareJoined(k);
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const TensorArray* const array, ArrayIn(k, x_, "tensor_array_to_tensor"));
    PENSTOCK_RETURN_IF_ERROR(Measure(*array));
    Tensor& out = k[out_];
    out.Reset(array->front().dtype(), joined_);
    std::byte* to = out.raw();
    for (std::int64_t o = 0; o < outer_; ++o) {
      for (std::size_t i = 0; i < array->size(); ++i) {
        const std::size_t bytes = bytes_[i];
        if (bytes > 0) std::memcpy(to, (*array)[i].raw() + static_cast<std::size_t>(o) * bytes, bytes);
        to += bytes;
      }
    }
    if (index_) WriteIndex(*array, k[index_]);
    return OkStatus();
  }

 private:
  void WriteIndex(const TensorArray& array, Tensor& index) {
    count_.Set(0, static_cast<Dim>(array.size()));
    index.Reset(DType::kInt32, count_);
    for (std::size_t i = 0; i < array.size(); ++i) {
      const Shape& shape = array[i].shape();
      const int axis = axis_ < 0 ? axis_ + joined_.rank() : axis_;
      index.Data<std::int32_t>()[i] = axis < shape.rank() ? static_cast<std::int32_t>(shape[axis]) : 1;
    }
  }

  Out<"Out"> out_;
  Out<"OutIndex"> index_;
  Shape count_ = {0};  // the shape of OutIndex
};

class CutElementsKernel : public Joined {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dx_);
    dout_ = k.Input("Out@GRAD");
    return PrepareJoined(k);
  }

  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    PENSTOCK_ASSIGN_OR_RETURN(const TensorArray* const array, ArrayIn(k, x_, "tensor_array_to_tensor_grad"));
    PENSTOCK_RETURN_IF_ERROR(Measure(*array));
    const Tensor& dout = k[dout_];
    if (dout.count() != joined_.Count() || dout.dtype() != array->front().dtype()) {
      return InvalidArgument("E-op-array-shape", "tensor_array_to_tensor_grad: Out@GRAD (", dout_.name, ", ",
                             dout.shape(), ") must have the shape of the joined elements (", joined_, ")");
    }
    TensorArray& grads = k.Var(dx_).As<TensorArray>();
    grads.resize(array->size());
    for (std::size_t i = 0; i < grads.size(); ++i) {
      grads[i].Reset(dout.dtype(), (*array)[i].shape());
      grads[i].ShareLod((*array)[i]);
    }
    const std::byte* from = dout.raw();
    for (std::int64_t o = 0; o < outer_; ++o) {
      for (std::size_t i = 0; i < grads.size(); ++i) {
        const std::size_t bytes = bytes_[i];
        if (bytes > 0) std::memcpy(grads[i].raw() + static_cast<std::size_t>(o) * bytes, from, bytes);
        from += bytes;
      }
    }
    return OkStatus();
  }

 private:
  Out<"X@GRAD"> dx_;
  NamedOperand dout_;
};

Status InferJoined(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  const bool stack = c.Attr<bool>("use_stack");
  const int rank = x.rank() + (stack ? 1 : 0);
  const int axis = c.Attr<int>("axis") < 0 ? c.Attr<int>("axis") + rank : c.Attr<int>("axis");
  c.SetDType("OutIndex", DType::kInt32);
  if (x.rank() == 0 && !stack) return OkStatus();
  if (axis < 0 || axis >= rank) return c.Error("axis (", c.Attr<int>("axis"), ") is out of range for ", x);
  Shape shape = x.First(axis);
  shape.Append(kUnknownDim);
  for (int d = stack ? axis : axis + 1; d < x.rank(); ++d) shape.Append(x[d]);
  c.SetKind("Out", VarKind::kTensor);
  return c.SetShape("Out", shape);
}

}  // namespace

void RegisterTensorArrayToTensor(OpRegistry& ops) {
  ops.Add("tensor_array_to_tensor")
      .Doc("Concatenates or stacks the elements of an array.", kDoc)
      .Input("X", "the array", AnyType(), OfKind(VarKind::kTensorArray))
      .Output("Out", "the result", SameTypeAs("X"))
      .Output("OutIndex", "the size of each element along the axis", Only(DType::kInt32))
      .Attr("axis", 0, "the axis along which to concatenate or stack")
      .Attr("use_stack", false, "whether to stack along a new axis")
      .InferShape(InferJoined)
      .KernelForAnyType<Cpu, JoinElementsKernel>()
      .Grad({.reads = {"X"}, .yields = {"X"}, .of = {"Out"}})
      .GradDef()
      .InferShape([](InferContext& c) {
        c.SetKind("X@GRAD", VarKind::kTensorArray);
        c.SetDType("X@GRAD", c.DTypeOf("X"));
        return c.SetShape("X@GRAD", c.ShapeOf("X"));
      })
      .KernelForAnyType<Cpu, CutElementsKernel>();
}

}  // namespace penstock
