// assign: a copy. assign_value: a tensor whose elements are an attribute.
#include <algorithm>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/add_gradient.h"
#include "operators/common/copy.h"
#include "operators/common/rows.h"
#include "operators/common/shape_attr.h"

namespace penstock {
namespace {

constexpr char kAssignDoc[] = R"(
Out is a copy of X. Selected rows are copied with their row numbers, arrays tensor by tensor.)";

constexpr char kValueDoc[] = R"(
Out has the attributes' shape and element type dtype (f32, i32, i64 or bool); its elements are those of the
attribute of that type.)";

Status InferAssign(InferContext& c) {
  if (!c.HasInput("X")) return c.Error("input X is missing");
  return c.ShareAll("X", "Out");
}

Result<std::vector<Op>> AssignGrad(const GradRequest& request) {
  const std::string dx = request.grad_of(request.forward.InputName("X"));
  if (dx.empty()) return std::vector<Op>();
  Op grad("assign");
  grad.AddInput("X", {request.grad_of(request.forward.OutputName("Out"))}).AddOutput("Out", {dx});
  return std::vector<Op>{std::move(grad)};
}

class AssignKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(out_);
    x_ = k.Input("X");
    if (!x_) return k.Error("input X is missing");
    return x_.kind == VarKind::kTensor ? tensor_.Prepare(k) : OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (x_.kind == VarKind::kTensor) return tensor_.Run(k);
    if (x_.kind == VarKind::kSelectedRows) return CopyRows(k);
    if (x_.index != out_.index) CopyVariable(k.Var(x_), k.Var(out_));
    return OkStatus();
  }

 private:
  Status CopyRows(KernelRun& k) {
    const SelectedRows& x = k.Var(x_).As<SelectedRows>();
    PENSTOCK_RETURN_IF_ERROR(RequireRowValues("assign", "X", x, x_.dtype));
    SelectedRows& out = k.Var(out_).As<SelectedRows>();
    if (&out == &x) return OkStatus();
    out.rows = x.rows;
    out.height = x.height;
    out.ResetValue(x_.dtype, x.value.initialized() ? x.value.shape() : NoRows());
    if (out.value.bytes() > 0) out.value.CopyFrom(x.value);
    return OkStatus();
  }

  TypedOperand x_;
  Out<"Out"> out_;
  CopyXKernel tensor_;
};

class AssignValueKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(out_);
    switch (k[out_].dtype) {
      case DType::kFp32:
        return Take<float>(k, k.Attr<std::vector<float>>("fp32_values"));
      case DType::kInt32:
        return Take<std::int32_t>(k, k.Attr<std::vector<std::int32_t>>("int32_values"));
      case DType::kInt64:
        return Take<std::int64_t>(k, k.Attr<std::vector<std::int64_t>>("int64_values"));
      case DType::kBool:
        return Take<bool>(k, k.Attr<std::vector<std::int32_t>>("bool_values"));
      default:
        return k.Error("element type ", DTypeName(k[out_].dtype), " must be f32, i32, i64 or bool");
    }
  }
  Status Run(KernelRun& k) override {
    k[out_].CopyFrom(values_);
    return OkStatus();
  }

 private:
  template <typename T, typename Value>
  Status Take(const KernelSetup& k, const std::vector<Value>& all) {
    if (all.size() != static_cast<std::size_t>(k[out_].shape.Count())) {
      return k.Error("shape ", k[out_].shape, " needs ", k[out_].shape.Count(),
                     " values; the attribute holds ", all.size());
    }
    values_ = Tensor(k[out_].dtype, k[out_].shape);
    std::transform(all.begin(), all.end(), values_.Data<T>(),
                   [](Value value) { return static_cast<T>(value); });
    return OkStatus();
  }

  Out<"Out"> out_;
  Tensor values_;
};

}  // namespace

void RegisterAssign(OpRegistry& ops) {
  constexpr SlotFlags kCopied = OfKind(VarKind::kTensor, VarKind::kSelectedRows, VarKind::kTensorArray);
  ops.Add("assign")
      .Doc("Copies X.", kAssignDoc)
      .Input("X", "any shape, selected rows, or an array", AnyType(), Optional() | kCopied)
      .Output("Out", "the copy", SameTypeAs("X"), kCopied)
      .InferShape(InferAssign)
      .Elementwise()
      .KernelForAnyType<Cpu, AssignKernel>()
      .GradMadeBy(AssignGrad);
  ops.Add("assign_value")
      .Doc("A tensor whose elements are given by an attribute.", kValueDoc)
      .Output("Out", "the tensor", TypeFromAttr("dtype"))
      .RequiredAttr("shape", AttrKind::kInts, "Out's shape", AtLeast(0))
      .RequiredAttr("dtype", AttrKind::kInt, "the element type of Out, numbered as in Fluid")
      .Attr("bool_values", std::vector<std::int32_t>(), "the elements if dtype is bool")
      .Attr("fp32_values", std::vector<float>(), "the elements if dtype is f32")
      .Attr("int32_values", std::vector<std::int32_t>(), "the elements if dtype is i32")
      .Attr("int64_values", std::vector<std::int64_t>(), "the elements if dtype is i64")
      .InferShape(InferShapeFromAttr<std::int32_t>)
      .KernelForAnyType<Cpu, AssignValueKernel>()
      .NoGrad();
}

}  // namespace penstock
