// conv2d_grad and depthwise_conv2d_grad: the gradients of Input, Filter and Bias, each only if somebody reads
// it.
#include <algorithm>

#include "operators/nn/conv2d.h"

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
      const auto forward = descs.Forward(false);
      doutput_ = steps_.Tensor(k.Input("Output@GRAD"), descs.output_plain);
      if (k.Output("Filter@GRAD") || k.Output("Bias@GRAD")) AddFilterGrad(k, descs, forward);
      if (k.Output("Input@GRAD")) AddInputGrad(k, descs, forward);
    });
  }
  Status Run(KernelRun& k) override { return steps_.Run(k); }

 private:
  using Forward = dnnl::convolution_forward::primitive_desc;

  void AddInputGrad(KernelSetup& k, const ConvDescs& d, const Forward& forward) {
    const dnnl::convolution_backward_data::primitive_desc pd(
        {dnnl::algorithm::convolution_direct, d.input, d.filter, d.output, d.strides, d.dilations,
         d.pad_begin, d.pad_end},
        OnednnAttr(), OnednnEngine(), forward);
    const auto doutput = steps_.Reordered(k, doutput_, pd.diff_dst_desc());
    const auto filter =
        steps_.Reordered(k, steps_.Tensor(k.Input("Filter"), d.filter_plain), pd.weights_desc());
    const auto dinput = steps_.Tensor(k.Output("Input@GRAD"), d.input_plain);
    const auto staged = steps_.Staged(k, dinput, pd.diff_src_desc());
    steps_.Add(k, dnnl::convolution_backward_data(pd), pd.scratchpad_desc(),
               {{DNNL_ARG_DIFF_DST, doutput}, {DNNL_ARG_WEIGHTS, filter}, {DNNL_ARG_DIFF_SRC, staged}});
    steps_.FlushTo(k, staged, dinput);
  }

  void AddFilterGrad(KernelSetup& k, const ConvDescs& d, const Forward& forward) {
    const bool with_bias = static_cast<bool>(k.Output("Bias@GRAD"));
    using Backward = dnnl::convolution_backward_weights;
    const auto algorithm = dnnl::algorithm::convolution_direct;
    const Backward::desc desc = with_bias ? Backward::desc(algorithm, d.input, d.filter, d.bias, d.output,
                                                           d.strides, d.dilations, d.pad_begin, d.pad_end)
                                          : Backward::desc(algorithm, d.input, d.filter, d.output, d.strides,
                                                           d.dilations, d.pad_begin, d.pad_end);
    const Backward::primitive_desc pd(desc, OnednnAttr(), OnednnEngine(),
                                      with_bias ? d.Forward(true) : forward);
    const auto input = steps_.Reordered(k, steps_.Tensor(k.Input("Input"), d.input_plain), pd.src_desc());
    const auto doutput = steps_.Reordered(k, doutput_, pd.diff_dst_desc());
    // Only the bias may be wanted; the primitive writes both.
    const Operand& wanted = k.Output("Filter@GRAD");
    const auto dfilter =
        wanted ? steps_.Tensor(wanted, d.filter_plain) : steps_.Scratch(k, pd.diff_weights_desc());
    const auto staged = steps_.Staged(k, dfilter, pd.diff_weights_desc());
    std::vector<std::pair<int, OnednnSequence::MemoryId>> arguments = {
        {DNNL_ARG_SRC, input}, {DNNL_ARG_DIFF_DST, doutput}, {DNNL_ARG_DIFF_WEIGHTS, staged}};
    if (with_bias) arguments.emplace_back(DNNL_ARG_DIFF_BIAS, steps_.Tensor(k.Output("Bias@GRAD"), d.bias));
    steps_.Add(k, Backward(pd), pd.scratchpad_desc(), arguments);
    steps_.FlushTo(k, staged, dfilter);
  }

  OnednnSequence::MemoryId doutput_ = -1;
  OnednnSequence steps_;
};

template <>
class Conv2dGradKernel<Cpu, double> : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    input_ = k.Input("Input");
    filter_ = k.Input("Filter");
    doutput_ = k.Input("Output@GRAD");
    dinput_ = k.Output("Input@GRAD");
    dfilter_ = k.Output("Filter@GRAD");
    dbias_ = k.Output("Bias@GRAD");
    PENSTOCK_ASSIGN_OR_RETURN(a_, ConvArgumentsOf(k, doutput_));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const double* input = k[input_].Data<double>();
    const double* filter = k[filter_].Data<double>();
    const double* doutput = k[doutput_].Data<double>();
    double* dinput = Cleared(k, dinput_);
    double* dfilter = Cleared(k, dfilter_);
    double* dbias = Cleared(k, dbias_);
    VisitOutputs(a_, [&](Dim n, Dim o, Dim y, Dim x) {
      const double d = doutput[a_.output.At(n, o, y, x)];
      if (dbias != nullptr) dbias[o] += d;
      VisitWindow(a_, n, o, y, x, [&](Dim in, Dim f) {
        if (dinput != nullptr) dinput[in] += d * filter[f];
        if (dfilter != nullptr) dfilter[f] += d * input[in];
      });
    });
    return OkStatus();
  }

 private:
  static double* Cleared(KernelRun& k, const Operand& operand) {
    if (!operand) return nullptr;
    Tensor& tensor = k[operand];
    std::fill_n(tensor.Data<double>(), tensor.count(), 0.0);
    return tensor.Data<double>();
  }

  Operand input_, filter_, doutput_, dinput_, dfilter_, dbias_;
  ConvArguments a_;
};

}  // namespace

void AddConv2dGrad(OpDef& conv2d) {
  conv2d.Grad({.reads = {"Input", "Filter", "Bias"}, .yields = {"Input", "Filter", "Bias"}})
      .GradKernel<Cpu, Conv2dGradKernel, float, double>();
}

}  // namespace penstock
