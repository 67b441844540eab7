// conv2d_grad_grad, conv3d_grad_grad: the second-order gradients of convolutions.
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/grad_args.h"
#include "operators/common/require_shape.h"
#include "operators/nn/conv2d.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
DDOutput = convolution(DDInput, Filter) + convolution(Input, DDFilter)
DInput   = the gradient of Input in a convolution with DDFilter, for Output@GRAD = DOutput
DFilter  = the gradient of Filter in a convolution of DDInput, for Output@GRAD = DOutput

All use the attributes of the convolution. An absent DDInput or DDFilter counts as 0.)";

// The arguments of the kernels of both element types.
struct SecondOrderArguments {
  In<"Input"> input;
  In<"Filter"> filter;
  In<"DOutput"> doutput;
  In<"DDInput"> ddinput;
  In<"DDFilter"> ddfilter;
  Out<"DDOutput"> ddoutput;
  Out<"DInput"> dinput;
  Out<"DFilter"> dfilter;

  Result<ConvArguments> Prepare(const KernelSetup& k) {
    k.Bind(input, filter, doutput, ddinput, ddfilter, ddoutput, dinput, dfilter);
    if (ddinput) PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "DDInput", k[input].shape));
    if (ddfilter) PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "DDFilter", k[filter].shape));
    return ConvArgumentsOf(k, k[doutput]);
  }
  // Zeros the outputs to which no input contributes.
  std::vector<Operand> Zeros() const {
    std::vector<Operand> zeros;
    if (ddoutput && !ddinput && !ddfilter) zeros.push_back(ddoutput);
    if (dinput && !ddfilter) zeros.push_back(dinput);
    if (dfilter && !ddinput) zeros.push_back(dfilter);
    return zeros;
  }
};

template <typename Device, typename T>
class Conv2dSecondOrderKernel;

template <>
class Conv2dSecondOrderKernel<Cpu, float> : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    SecondOrderArguments args;
    PENSTOCK_ASSIGN_OR_RETURN(const ConvArguments a, args.Prepare(k));
    zeros_ = args.Zeros();
    if (steps_.NothingToDo(k)) return OkStatus();
    return OnednnTry(k, [&] {
      const ConvDescs descs(a);
      if (args.ddoutput) AddOutput(k, descs, args);
      if (args.dinput && args.ddfilter)
        AddInputGradient(k, steps_, descs, args.ddfilter, args.doutput, args.dinput);
      if (args.dfilter && args.ddinput)
        AddFilterGradient(k, steps_, descs, args.ddinput, args.doutput, args.dfilter, Operand());
    });
  }
  Status Run(KernelRun& k) override {
    for (const Operand& zero : zeros_) std::ranges::fill(k[zero].Span<float>(), 0.0f);
    return steps_.Run(k);
  }

 private:
  void AddOutput(KernelSetup& k, const ConvDescs& d, const SecondOrderArguments& args) {
    const auto out = steps_.Tensor(args.ddoutput, d.output_plain);
    if (args.ddinput) AddConvolution(k, steps_, d, args.ddinput, args.filter, Operand(), out);
    if (!args.ddfilter) return;
    if (!args.ddinput) return AddConvolution(k, steps_, d, args.input, args.ddfilter, Operand(), out);
    const auto other = steps_.Scratch(k, d.output_plain);
    AddConvolution(k, steps_, d, args.input, args.ddfilter, Operand(), other);
    const dnnl::binary::primitive_desc sum(
        {dnnl::algorithm::binary_add, d.output_plain, d.output_plain, d.output_plain}, OnednnAttr(),
        OnednnEngine());
    steps_.Add(k, dnnl::binary(sum), sum.scratchpad_desc(),
               {{DNNL_ARG_SRC_0, out}, {DNNL_ARG_SRC_1, other}, {DNNL_ARG_DST, out}});
  }

  OnednnSequence steps_;
  std::vector<Operand> zeros_;
};

template <>
class Conv2dSecondOrderKernel<Cpu, double> : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(a_, args_.Prepare(k));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const double* const input = Read(k, args_.input);
    const double* const filter = Read(k, args_.filter);
    const double* const doutput = Read(k, args_.doutput);
    const double* const ddinput = Read(k, args_.ddinput);
    const double* const ddfilter = Read(k, args_.ddfilter);
    double* const ddoutput = ClearedDoubles(k, args_.ddoutput);
    double* const dinput = ClearedDoubles(k, args_.dinput);
    double* const dfilter = ClearedDoubles(k, args_.dfilter);
    VisitOutputs(a_, [&](Dim n, Dim o, const std::array<Dim, 3>& at, Dim element) {
      const double d = doutput[element];
      double sum = 0;
      VisitWindow(a_, n, o, at, [&](Dim in, Dim f) {
        if (ddinput != nullptr) sum += ddinput[in] * filter[f];
        if (ddfilter != nullptr) sum += input[in] * ddfilter[f];
        if (dinput != nullptr && ddfilter != nullptr) dinput[in] += d * ddfilter[f];
        if (dfilter != nullptr && ddinput != nullptr) dfilter[f] += d * ddinput[in];
      });
      if (ddoutput != nullptr) ddoutput[element] = sum;
    });
    return OkStatus();
  }

 private:
  static const double* Read(KernelRun& k, const Operand& operand) {
    return operand ? std::as_const(k[operand]).Data<double>() : nullptr;
  }

  SecondOrderArguments args_;
  ConvArguments a_;
};

Result<std::vector<Op>> MakeConvSecondOrder(const GradRequest& request) {
  const Op& forward = request.forward;
  const std::string ddoutput = request.grad_of(forward.InputName("Output@GRAD"));
  const std::string dinput = request.grad_of(forward.InputName("Input"));
  const std::string dfilter = request.grad_of(forward.InputName("Filter"));
  if (ddoutput.empty() && dinput.empty() && dfilter.empty()) return std::vector<Op>();
  Op op(forward.type() + "_grad");
  op.AddInput("Input", {forward.InputName("Input")}).AddInput("Filter", {forward.InputName("Filter")});
  op.AddInput("DOutput", {forward.InputName("Output@GRAD")});
  op.AddInput("DDInput", GradOfResult(request, "Input@GRAD"))
      .AddInput("DDFilter", GradOfResult(request, "Filter@GRAD"));
  op.AddOutput("DDOutput", OneOrNone(ddoutput))
      .AddOutput("DInput", OneOrNone(dinput))
      .AddOutput("DFilter", OneOrNone(dfilter));
  for (const NamedAttr& attr : forward.attrs()) op.Set(attr.name, attr.value);
  return std::vector<Op>{std::move(op)};
}

}  // namespace

OpDef& AddConvSecondOrder(OpRegistry& ops, OpDef& convolution) {
  convolution.GradDef().GradMadeBy(MakeConvSecondOrder);
  return ops.Add(convolution.type() + "_grad_grad")
      .Doc(StrCat("The gradient of ", convolution.type(), "_grad."), kDoc)
      .Input("Input", "the images", Floats())
      .Input("Filter", "the filters", SameTypeAs("Input"))
      .Input("DOutput", "the gradient of Output", SameTypeAs("Input"))
      .Input("DDInput", "the gradient of Input@GRAD", SameTypeAs("Input"), Optional())
      .Input("DDFilter", "the gradient of Filter@GRAD", SameTypeAs("Input"), Optional())
      .Output("DDOutput", "the gradient of Output@GRAD", SameTypeAs("Input"), Optional() | Apart())
      .Output("DInput", "the gradient of Input", SameTypeAs("Input"), Optional() | Apart())
      .Output("DFilter", "the gradient of Filter", SameTypeAs("Input"), Optional() | Apart())
      .InferShape([](InferContext& c) -> Status {
        PENSTOCK_RETURN_IF_ERROR(c.ShareAll("DOutput", "DDOutput"));
        PENSTOCK_RETURN_IF_ERROR(c.ShareAll("Input", "DInput"));
        return c.ShareAll("Filter", "DFilter");
      })
      .Kernel<Cpu, Conv2dSecondOrderKernel, float, double>();
}

}  // namespace penstock
