// write_to_array, read_from_array, lod_array_length: access to the elements of an array of tensors.
#include <cstring>

#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "operators/common/add_gradient.h"
#include "operators/control_flow/array.h"

namespace penstock {
namespace {

constexpr char kWriteDoc[] = R"(
Sets Out[I] to a copy of X. The array grows as necessary; elements in between are empty. As the gradient of
read_from_array (role backward), the op adds to Out[I], because an element may have been read several
times.)";

constexpr char kReadDoc[] = R"(
Out is a copy of X[I]. As the gradient of write_to_array (X_W is the written value), the op yields zeros
shaped like X_W if no op has read that element. In a block that is the gradient of another, it also removes
the element, because the value before that write, in an earlier iteration, has a separate gradient.)";

constexpr char kLengthDoc[] = R"(
Out is the number of elements of X, including empty ones.)";

bool IsBackward(const Op& op) { return Has(op.role(), OpRole::kBackward); }

Status InferWrite(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Out", c.ShapeOf("X")));
  c.SetDType("Out", c.DTypeOf("X"));
  c.SetLodLevel("Out", c.Input("X").lod_level);
  c.SetKind("Out", VarKind::kTensorArray);
  return OkStatus();
}

class WriteKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    out_ = k.Output("Out");
    x_ = k.Input("X");
    index_ = k.Input("I");
    adds_ = IsBackward(k.op());
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const std::size_t index, ArrayIndex(k, index_, "write_to_array"));
    TensorArray& array = k.Var(out_).As<TensorArray>();
    if (array.size() <= index) array.resize(index + 1);
    if (adds_) return AddGradient(k[x_], array[index]);
    CopyTensor(k[x_], array[index]);
    return OkStatus();
  }

 private:
  NamedOperand x_;
  NamedOperand index_;
  NamedOperand out_;
  bool adds_ = false;
};

Result<std::vector<Op>> WriteGrad(const GradRequest& request) {
  const std::string dx = request.grad_of(request.forward.InputName("X"));
  if (dx.empty()) return std::vector<Op>();
  Op read("read_from_array");
  read.AddInput("I", request.forward.Input("I"));
  read.AddInput("X", {request.grad_of(request.forward.OutputName("Out"))});
  read.AddInput("X_W", request.forward.Input("X")).AddOutput("Out", {dx});
  for (const NamedAttr& attr : request.forward.attrs()) read.Set(attr.name, attr.value);
  return std::vector<Op>{std::move(read)};
}

Status InferRead(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Out", c.ShapeOf("X")));
  c.SetDType("Out", c.DTypeOf("X"));
  c.SetKind("Out", VarKind::kTensor);
  c.SetLodLevel("Out", c.Input("X").lod_level);
  return OkStatus();
}

class ReadKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    written_ = k.Input("X_W");
    out_ = k.Output("Out");
    array_ = k.Input("X");
    index_ = k.Input("I");
    const KernelSite& site = k.site();
    takes_ = site.program != nullptr && site.program->block(site.block).forward_block() >= 0;
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const std::size_t index, ArrayIndex(k, index_, "read_from_array"));
    if (written_) return TakeGradient(k, index);
    PENSTOCK_ASSIGN_OR_RETURN(TensorArray* const array, ArrayIn(k, array_, "read_from_array"));
    if (index >= array->size()) {
      return InvalidArgument("E-op-array-index", "read_from_array: the index ", index_.name, " is ", index,
                             "; ", array_.name, " has ", array->size(), " elements");
    }
    if (!(*array)[index].initialized()) {
      return FailedPrecondition("E-op-array", "read_from_array: element ", index, " of ", array_.name,
                                " is empty: nothing was written to it");
    }
    CopyTensor((*array)[index], k[out_]);
    return OkStatus();
  }

 private:
  Status TakeGradient(KernelRun& k, std::size_t index) {
    auto* array = k.Var(array_).If<TensorArray>();
    Tensor& out = k[out_];
    if (array != nullptr && index < array->size() && (*array)[index].initialized()) {
      CopyTensor((*array)[index], out);
      if (takes_) (*array)[index] = Tensor();
      return OkStatus();
    }
    const Tensor& written = k[written_];
    out.Reset(written.dtype(), written.shape());
    if (out.bytes() > 0) std::memset(out.raw(), 0, out.bytes());
    out.ShareLod(written);
    return OkStatus();
  }

  NamedOperand written_;
  NamedOperand out_;
  NamedOperand array_, index_;
  bool takes_ = false;
};

Result<std::vector<Op>> ReadGrad(const GradRequest& request) {
  const std::string dx = request.grad_of(request.forward.InputName("X"));
  if (dx.empty()) return std::vector<Op>();
  Op write("write_to_array");
  write.AddInput("I", request.forward.Input("I"));
  write.AddInput("X", {request.grad_of(request.forward.OutputName("Out"))}).AddOutput("Out", {dx});
  for (const NamedAttr& attr : request.forward.attrs()) write.Set(attr.name, attr.value);
  return std::vector<Op>{std::move(write)};
}

class LengthKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    out_ = k.Output("Out");
    x_ = k.Input("X");
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const TensorArray* const array, ArrayIn(k, x_, "lod_array_length"));
    *k[out_].Data<std::int64_t>() = static_cast<std::int64_t>(array->size());
    return OkStatus();
  }

 private:
  NamedOperand x_;
  NamedOperand out_;
};

}  // namespace

void RegisterTensorArray(OpRegistry& ops) {
  ops.Add("write_to_array")
      .Doc("Sets one element of a tensor array.", kWriteDoc)
      .Input("X", "the element", AnyType())
      .Input("I", "one integer: the index", Integers())
      .Output("Out", "the array; its other elements do not change", AnyType(), OfKind(VarKind::kTensorArray))
      .InferShape(InferWrite)
      .KernelForAnyType<Cpu, WriteKernel>()
      .GradMadeBy(WriteGrad);
  ops.Add("read_from_array")
      .Doc("Reads one element of a tensor array.", kReadDoc)
      .Input("X", "the array", AnyType(), OfKind(VarKind::kTensorArray))
      .Input("I", "one integer: the index", Integers())
      .Input("X_W", "in gradients: the value that was written to the element", AnyType(), Optional())
      .Output("Out", "the element", SameTypeAs("X"))
      .InferShape(InferRead)
      .ReadsOnlySome()
      .KernelForAnyType<Cpu, ReadKernel>()
      .GradMadeBy(ReadGrad);
  ops.Add("lod_array_length")
      .Doc("The number of elements of a tensor array.", kLengthDoc)
      .Input("X", "the array", AnyType(), OfKind(VarKind::kTensorArray))
      .Output("Out", "one integer", Only(DType::kInt64))
      .InferShape([](InferContext& c) { return c.SetShape("Out", {1}); })
      .KernelForAnyType<Cpu, LengthKernel>()
      .NoGrad();
}

}  // namespace penstock
