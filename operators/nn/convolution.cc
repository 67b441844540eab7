// The f32 convolution by oneDNN: forward, and the gradients of input and filter.
#include "operators/nn/conv2d.h"

namespace penstock {
namespace {

// Whether blocked layouts are worth the reorders from and to plain memory. They store 8 or 16 channels side
// by side, padded if there are fewer. Measured on one AVX-512 core, forward and both gradients: 8 to 8
// channels 3x faster, 16 to 16 6x, 128 to 256 1.5x; 1 to 20 and 20 to 50 1.7x slower, 1 x 1 windows 1.5x
// slower.
bool BlockedFormsPay(const ConvArguments& a) {
  if (a.geometry.groups > 1 || a.geometry.channels_last) return true;  // plain layouts have no fast path
  const bool points = std::ranges::all_of(a.kernel, [](Dim extent) { return extent == 1; });
  return a.group_channels % 8 == 0 && a.filters % 8 == 0 && !points;
}

}  // namespace

ConvDescs::ConvDescs(const ConvArguments& a)
    : input_plain(ImageDesc(a.input)), output_plain(ImageDesc(a.output)) {
  const Dim g = a.geometry.groups;
  dnnl::memory::dims filter = {a.filters, a.group_channels};
  if (g > 1) filter = {g, a.group_filters(), a.group_channels};
  filter.insert(filter.end(), a.kernel.begin(), a.kernel.end());
  filter_plain = OnednnPlain(filter);
  bias = OnednnPlain({a.filters});
  const bool blocked = BlockedFormsPay(a);
  input = blocked ? OnednnAny(input_plain.dims()) : input_plain;
  output = blocked ? OnednnAny(output_plain.dims()) : output_plain;
  this->filter = blocked ? OnednnAny(filter) : filter_plain;
  for (int axis = 0; axis < a.geometry.window.axes(); ++axis) {
    const WindowAxis& w = a.geometry.window[axis];
    strides.push_back(w.stride);
    dilations.push_back(w.dilation - 1);  // oneDNN counts the gaps
    pad_begin.push_back(w.pad_begin);
    pad_end.push_back(w.pad_end);
  }
}

void AddConvolution(KernelSetup& k, OnednnSequence& steps, const ConvDescs& d, const Operand& input,
                    const Operand& filter, const Operand& bias, OnednnSequence::MemoryId output) {
  const auto pd = d.Forward(static_cast<bool>(bias));
  const auto source = steps.Reordered(k, steps.Tensor(input, d.input_plain), pd.src_desc());
  const auto weights = steps.Reordered(k, steps.Tensor(filter, d.filter_plain), pd.weights_desc());
  const auto staged = steps.Staged(k, output, pd.dst_desc());
  std::vector<std::pair<int, OnednnSequence::MemoryId>> arguments = {
      {DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, staged}};
  if (bias) arguments.emplace_back(DNNL_ARG_BIAS, steps.Tensor(bias, d.bias));
  steps.Add(k, dnnl::convolution_forward(pd), pd.scratchpad_desc(), arguments);
  steps.FlushTo(k, staged, output);
}

void AddInputGradient(KernelSetup& k, OnednnSequence& steps, const ConvDescs& d, const Operand& filter,
                      const Operand& doutput, const Operand& dinput) {
  const dnnl::convolution_backward_data::primitive_desc pd(
      {dnnl::algorithm::convolution_direct, d.input, d.filter, d.output, d.strides, d.dilations, d.pad_begin,
       d.pad_end},
      OnednnAttr(), OnednnEngine(), d.Forward(false));
  const auto grad = steps.Reordered(k, steps.Tensor(doutput, d.output_plain), pd.diff_dst_desc());
  const auto weights = steps.Reordered(k, steps.Tensor(filter, d.filter_plain), pd.weights_desc());
  const auto plain = steps.Tensor(dinput, d.input_plain);
  const auto staged = steps.Staged(k, plain, pd.diff_src_desc());
  steps.Add(k, dnnl::convolution_backward_data(pd), pd.scratchpad_desc(),
            {{DNNL_ARG_DIFF_DST, grad}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DIFF_SRC, staged}});
  steps.FlushTo(k, staged, plain);
}

void AddFilterGradient(KernelSetup& k, OnednnSequence& steps, const ConvDescs& d, const Operand& input,
                       const Operand& doutput, const Operand& dfilter, const Operand& dbias) {
  const bool with_bias = static_cast<bool>(dbias);
  using Backward = dnnl::convolution_backward_weights;
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const Backward::desc desc = with_bias ? Backward::desc(algorithm, d.input, d.filter, d.bias, d.output,
                                                         d.strides, d.dilations, d.pad_begin, d.pad_end)
                                        : Backward::desc(algorithm, d.input, d.filter, d.output, d.strides,
                                                         d.dilations, d.pad_begin, d.pad_end);
  const Backward::primitive_desc pd(desc, OnednnAttr(), OnednnEngine(), d.Forward(with_bias));
  const auto source = steps.Reordered(k, steps.Tensor(input, d.input_plain), pd.src_desc());
  const auto grad = steps.Reordered(k, steps.Tensor(doutput, d.output_plain), pd.diff_dst_desc());
  // Even if only the bias is requested, the primitive writes both.
  const auto plain =
      dfilter ? steps.Tensor(dfilter, d.filter_plain) : steps.Scratch(k, pd.diff_weights_desc());
  const auto staged = steps.Staged(k, plain, pd.diff_weights_desc());
  std::vector<std::pair<int, OnednnSequence::MemoryId>> arguments = {
      {DNNL_ARG_SRC, source}, {DNNL_ARG_DIFF_DST, grad}, {DNNL_ARG_DIFF_WEIGHTS, staged}};
  if (with_bias) arguments.emplace_back(DNNL_ARG_DIFF_BIAS, steps.Tensor(dbias, d.bias));
  steps.Add(k, Backward(pd), pd.scratchpad_desc(), arguments);
  steps.FlushTo(k, staged, plain);
}

}  // namespace penstock
