// select_input: reads one of several variables, selected by an index. select_output: writes one of several.
#include <cstring>

#include "framework/op/op_registry.h"
#include "operators/common/add_gradient.h"

namespace penstock {
namespace {

constexpr char kInputDoc[] = R"(
Out = X[n], where n is the one element of Mask. The op follows the two blocks of a condition, one of which has
run; the other variables of X need not have a value. Its gradient is select_output.)";

constexpr char kOutputDoc[] = R"(
Out[n] = X, where n is the one element of Mask; the other variables of Out do not change. As the gradient of
select_input (role backward), the op sets to zeros those other variables that hold a tensor.)";

// Properties in which the variables of X differ are known only at run time. If the ranks differ, the shape of
// the first is declared.
Status InferSelectInput(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "Out"));
  c.SetLodLevel("Out", c.Input("X").lod_level);  // the offsets are those of the selected variable
  Shape shape = c.ShapeOf("X");
  for (int i = 1; i < c.InputCount("X"); ++i) {
    const Shape& other = c.ShapeOf("X", i);
    for (int d = 0; d < shape.rank(); ++d) {
      if (other.rank() != shape.rank() || shape[d] != other[d]) shape.Set(d, kUnknownDim);
    }
  }
  return c.SetShape("Out", shape);
}

Status InferSelectOutput(InferContext& c) {
  const TensorDesc& x = c.Input("X");
  for (int i = 0; i < static_cast<int>(c.op().Output("Out").size()); ++i) {
    c.SetKind("Out", x.kind, i);
    c.SetLodLevel("Out", x.lod_level, i);
    PENSTOCK_RETURN_IF_ERROR(c.SetShape("Out", i, x.shape));
  }
  return OkStatus();
}

// Returns the index in the mask, below `choices`.
Result<std::size_t> Chosen(KernelRun& k, const NamedOperand& mask, std::size_t choices, const char* op) {
  const Tensor* tensor = k.Var(mask).If<Tensor>();
  if (tensor == nullptr || !tensor->initialized() || tensor->count() != 1 ||
      tensor->dtype() != DType::kInt32) {
    return InvalidArgument("E-op-select", op, ": Mask (", mask.name, ") must hold one i32");
  }
  const std::int32_t n = *tensor->Data<std::int32_t>();
  if (n < 0 || static_cast<std::size_t>(n) >= choices) {
    return InvalidArgument("E-op-select", op, ": Mask (", mask.name, ") is ", n, "; there are ", choices,
                           " variables to choose from");
  }
  return static_cast<std::size_t>(n);
}

class SelectInputKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    choices_.assign(k.Inputs("X").begin(), k.Inputs("X").end());
    k.Bind(out_);
    mask_ = k.Input("Mask");
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const std::size_t n, Chosen(k, mask_, choices_.size(), "select_input"));
    const bool named = static_cast<bool>(choices_[n]);
    if (!named || !k.Var(choices_[n]).initialized()) {
      return FailedPrecondition("E-op-no-value", "select_input: X[", n, "] (", choices_[n].name,
                                ") was chosen, but has no value");
    }
    if (choices_[n].index != out_.index) CopyVariable(k.Var(choices_[n]), k.Var(out_));
    return OkStatus();
  }

 private:
  std::vector<NamedOperand> choices_;
  NamedOperand mask_;
  Out<"Out"> out_;
};

class SelectOutputKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_);
    mask_ = k.Input("Mask");
    choices_.assign(k.Outputs("Out").begin(), k.Outputs("Out").end());
    clears_ = Has(k.op().role(), OpRole::kBackward);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const std::size_t n, Chosen(k, mask_, choices_.size(), "select_output"));
    if (choices_[n]) CopyVariable(k.Var(x_), k.Var(choices_[n]));
    for (std::size_t i = 0; clears_ && i < choices_.size(); ++i) {
      Tensor* other = i == n || !choices_[i] ? nullptr : k.Var(choices_[i]).If<Tensor>();
      if (other != nullptr && other->initialized() && other->bytes() > 0)
        std::memset(other->raw(), 0, other->bytes());
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  NamedOperand mask_;
  std::vector<NamedOperand> choices_;
  bool clears_ = false;
};

Result<std::vector<Op>> SelectInputGrad(const GradRequest& request) {
  Op grad("select_output");
  std::vector<std::string> outs;
  bool any = false;
  for (const std::string& x : request.forward.Input("X")) {
    const std::string dx = request.grad_of(x);
    any = any || !dx.empty();
    outs.push_back(dx.empty() ? kEmptyVarName : dx);
  }
  if (!any) return std::vector<Op>();
  grad.AddInput("X", {request.grad_of(request.forward.OutputName("Out"))});
  grad.AddInput("Mask", request.forward.Input("Mask")).AddOutput("Out", std::move(outs));
  for (const NamedAttr& attr : request.forward.attrs()) grad.Set(attr.name, attr.value);
  return std::vector<Op>{std::move(grad)};
}

Result<std::vector<Op>> SelectOutputGrad(const GradRequest& request) {
  const std::string dx = request.grad_of(request.forward.InputName("X"));
  if (dx.empty()) return std::vector<Op>();
  Op grad("select_input");
  std::vector<std::string> douts;
  for (const std::string& out : request.forward.Output("Out")) douts.push_back(request.grad_of(out));
  grad.AddInput("X", std::move(douts)).AddInput("Mask", request.forward.Input("Mask"));
  grad.AddOutput("Out", {dx});
  for (const NamedAttr& attr : request.forward.attrs()) grad.Set(attr.name, attr.value);
  return std::vector<Op>{std::move(grad)};
}

}  // namespace

void RegisterSelect(OpRegistry& ops) {
  ops.Add("select_input")
      .Doc("Reads one of several variables, selected by an index.", kInputDoc)
      .Input("X", "the variables to select from", AnyType(),
             Repeated() | OfKind(VarKind::kTensor, VarKind::kSelectedRows, VarKind::kTensorArray))
      .Input("Mask", "one element: the index", Only(DType::kInt32))
      .Output("Out", "the selected variable", SameTypeAs("X"),
              OfKind(VarKind::kTensor, VarKind::kSelectedRows, VarKind::kTensorArray))
      .InferShape(InferSelectInput)
      .ReadsOnlySome()
      .Elementwise()
      .KernelForAnyType<Cpu, SelectInputKernel>()
      .GradMadeBy(SelectInputGrad);
  ops.Add("select_output")
      .Doc("Writes one of several variables, selected by an index.", kOutputDoc)
      .Input("X", "the value to write", AnyType(),
             OfKind(VarKind::kTensor, VarKind::kSelectedRows, VarKind::kTensorArray))
      .Input("Mask", "one element: the index", Only(DType::kInt32))
      .Output(
          "Out", "the variables to select from", SameTypeAs("X"),
          Optional() | Repeated() | OfKind(VarKind::kTensor, VarKind::kSelectedRows, VarKind::kTensorArray))
      .InferShape(InferSelectOutput)
      .KernelForAnyType<Cpu, SelectOutputKernel>()
      .GradMadeBy(SelectOutputGrad);
}

}  // namespace penstock
