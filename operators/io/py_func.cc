// py_func: calls a function of the user.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "framework/runtime/host_functions.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out is the result of function number forward_callable_id for X, one tensor per variable. A program holds only
the numbers, so it must run in a process that has made the same py_func layers in the same order. The function
gets copies, and nothing for an argument without a variable.

The gradient is also a py_func, with number backward_callable_id (negative: there is no gradient). It gets X,
Out and Out@GRAD in this order, without the variables in backward_skip_vars, and returns a gradient for each
of X; gradients that no op reads are dropped.)";

Status InferPyFunc(InferContext& c) {
  if (c.HasInput("X") || c.HasOutput("Out")) return OkStatus();
  return c.Error("it must have an input or an output");
}

class PyFuncKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    const int number = k.Attr<std::int32_t>("forward_callable_id");
    function_ = HostFunctions::Find(number);
    if (function_ == nullptr) {
      return FailedPrecondition("E-py-func-gone", "py_func: this process has no function ", number,
                                "; it has made ", HostFunctions::count())
          .With("note: a program with py_func runs only where the script has called the same layers.py_func");
    }
    in_.assign(k.Inputs("X").begin(), k.Inputs("X").end());
    out_.assign(k.Outputs("Out").begin(), k.Outputs("Out").end());
    return OkStatus();
  }

  // Allocates: what the function gets is its own to keep, while the memory behind a variable serves others
  // later in the step.
  Status Run(KernelRun& k) override {
    std::vector<Tensor> arguments;
    for (const Argument& in : in_) arguments.push_back(in ? k[in].Clone() : Tensor());
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<Tensor> made, function_->call(std::move(arguments)));
    const bool nothing = std::ranges::none_of(made, &Tensor::initialized);
    if (out_.empty() && nothing) return OkStatus();
    if (made.size() != out_.size()) {
      return InvalidArgument("E-py-func-count", "py_func: ", function_->name, " returned ", made.size(),
                             " values for ", out_.size(), " outputs");
    }
    for (std::size_t i = 0; i < out_.size(); ++i) PENSTOCK_RETURN_IF_ERROR(Take(k, out_[i], made[i]));
    return OkStatus();
  }

 private:
  Status Take(KernelRun& k, const Argument& out, const Tensor& made) const {
    if (!out) return OkStatus();  // a gradient that nobody reads
    if (!made.initialized()) {
      return InvalidArgument("E-py-func-none", "py_func: ", function_->name, " returned no value for ",
                             out.name);
    }
    if (made.dtype() != out.dtype || !Compatible(made.shape(), out.shape)) {
      return InvalidArgument("E-py-func-type", "py_func: ", function_->name, " returned ",
                             DTypeName(made.dtype()), made.shape(), " for ", out.name, ", which is declared ",
                             DTypeName(out.dtype), out.shape);
    }
    Tensor& tensor = k[out];
    tensor.Reset(made.dtype(), made.shape());
    if (made.bytes() > 0) tensor.CopyFrom(made);
    tensor.ShareLod(made);
    return OkStatus();
  }

  const HostFunction* function_ = nullptr;
  std::vector<Argument> in_, out_;
};

Result<std::vector<Op>> PyFuncGrad(const GradRequest& request) {
  const Op& forward = request.forward;
  const auto number = forward.GetOr<std::int32_t>("backward_callable_id", -1);
  if (number < 0) return std::vector<Op>();
  const auto skipped = forward.GetOr("backward_skip_vars", std::vector<std::string>());
  std::vector<std::string> reads, yields;
  for (const ArgList& names : {forward.Input("X"), forward.Output("Out")}) {
    std::ranges::copy_if(names, std::back_inserter(reads), [&](const std::string& name) {
      return std::ranges::find(skipped, name) == skipped.end();
    });
  }
  for (const std::string& out : forward.Output("Out")) reads.push_back(request.grad_of(out));
  bool any = false;
  for (const std::string& x : forward.Input("X")) {
    yields.push_back(request.grad_of(x));
    any = any || !yields.back().empty();
    if (yields.back().empty()) yields.back() = kEmptyVarName;
  }
  if (!any) return std::vector<Op>();
  Op grad("py_func");
  grad.AddInput("X", std::move(reads)).AddOutput("Out", std::move(yields));
  grad.Set("forward_callable_id", number).Set("backward_callable_id", std::int32_t{-1});
  return std::vector<Op>{std::move(grad)};
}

}  // namespace

void RegisterPyFunc(OpRegistry& ops) {
  ops.Add("py_func")
      .Doc("A function of the user's.", kDoc)
      .Input("X", "what the function is given", AnyType(), Optional() | Repeated())
      .Output("Out", "what it returns, as declared", AnyType(), Optional() | Repeated() | InPlaceInAnySize())
      .Attr("forward_callable_id", 0, "the function's number", AtLeast(0))
      .Attr("backward_callable_id", -1, "the number of the function that gives the gradient; -1: none")
      .Attr("backward_skip_vars", std::vector<std::string>(), "of X and Out, what that one is not given")
      .InferShape(InferPyFunc)
      .KernelForAnyType<Cpu, PyFuncKernel>()
      .Affects({Effect::kHost})
      .GradMadeBy(PyFuncGrad);
}

}  // namespace penstock
