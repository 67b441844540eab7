// conv2d_grad, depthwise_conv2d_grad and conv3d_grad: the gradients of Input, Filter and Bias, each only if
// the op has that output.
#include <utility>

#include "operators/nn/conv2d.h"
#include "operators/nn/point_products.h"

namespace penstock {
namespace {

template <typename Device, typename T>
class Conv2dGradKernel;

template <>
class Conv2dGradKernel<Cpu, float> : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const ConvArguments a, ConvArgumentsOf(k, k.Input("Output@GRAD")));
    if (steps_.NothingToDo(k)) return OkStatus();
    return OnednnTry(k, [&] {
      const ConvDescs descs(a);
      const Argument& doutput = k.Input("Output@GRAD");
      const Operand &dfilter = k.Output("Filter@GRAD"), &dbias = k.Output("Bias@GRAD");
      if (!products_.TakeFilterGradient(k, a) && (dfilter || dbias))
        AddFilterGradient(k, steps_, descs, k.Input("Input"), doutput, dfilter, dbias);
      if (!products_.TakeInputGradient(k, a) && k.Output("Input@GRAD"))
        AddInputGradient(k, steps_, descs, k.Input("Filter"), doutput, k.Output("Input@GRAD"));
    });
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(steps_.Run(k));
    return products_.Run(k);
  }

 private:
  OnednnSequence steps_;
  PointProducts products_;
};

template <>
class Conv2dGradKernel<Cpu, double> : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(input_, filter_, doutput_, dinput_, dfilter_, dbias_);
    PENSTOCK_ASSIGN_OR_RETURN(a_, ConvArgumentsOf(k, k[doutput_]));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const double* input = k[input_].Data<double>();
    const double* filter = k[filter_].Data<double>();
    const double* doutput = k[doutput_].Data<double>();
    double* dinput = ClearedDoubles(k, dinput_);
    double* dfilter = ClearedDoubles(k, dfilter_);
    double* dbias = ClearedDoubles(k, dbias_);
    VisitOutputs(a_, [&](Dim n, Dim o, const std::array<Dim, 3>& at, Dim element) {
      const double d = doutput[element];
      if (dbias != nullptr) dbias[o] += d;
      VisitWindow(a_, n, o, at, [&](Dim in, Dim f) {
        if (dinput != nullptr) dinput[in] += d * filter[f];
        if (dfilter != nullptr) dfilter[f] += d * input[in];
      });
    });
    return OkStatus();
  }

 private:
  In<"Input"> input_;
  In<"Filter"> filter_;
  In<"Output@GRAD"> doutput_;
  Out<"Input@GRAD"> dinput_;
  Out<"Filter@GRAD"> dfilter_;
  Out<"Bias@GRAD"> dbias_;
  ConvArguments a_;
};

}  // namespace

void AddConv2dGrad(OpDef& convolution) {
  GradSpec spec = {.reads = {"Input", "Filter"}, .yields = {"Input", "Filter"}, .apart = {"Input", "Filter"}};
  if (convolution.FindInput("Bias") != nullptr) {
    spec.reads.emplace_back("Bias");
    spec.yields.emplace_back("Bias");
  } else {
    spec.reads.emplace_back("ResidualData");
  }
  convolution.Grad(std::move(spec)).GradKernel<Cpu, Conv2dGradKernel, float, double>();
}

}  // namespace penstock
