// The f32 convolution by oneDNN: forward, and the gradients of input and filter.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "framework/vector/isa.h"
#include "operators/nn/conv2d.h"

namespace penstock {
namespace {

// Whether blocked layouts are worth the reorders from and to plain memory. They store 8 or 16 channels side
// by side, padded if there are fewer. Measured on one AVX-512 core, forward and both gradients: 8 to 8
// channels 3x faster, 16 to 16 6x, 128 to 256 1.5x; 1 to 20 and 20 to 50 1.7x slower, 1 x 1 windows 1.5x
// slower. Channels last need no reorders: oneDNN has kernels for them as fast as for blocked layouts.
bool BlockedFormsPay(Dim groups, Dim group_channels, Dim filters, bool points) {
  if (groups > 1) return true;  // plain layouts have no fast path
  return group_channels % 8 == 0 && filters % 8 == 0 && !points;
}
bool BlockedFormsPay(const ConvArguments& a) {
  if (a.geometry.channels_last) return false;
  const bool points = std::ranges::all_of(a.kernel, [](Dim extent) { return extent == 1; });
  return BlockedFormsPay(a.geometry.groups, a.group_channels, a.filters, points);
}

}  // namespace

ConvDescs::ConvDescs(const ConvArguments& a)
    : arguments(a), input_plain(ImageDesc(a.input)), output_plain(ImageDesc(a.output)) {
  const Dim g = a.geometry.groups;
  dnnl::memory::dims filter = {a.filters, a.group_channels};
  if (g > 1) filter = {g, a.group_filters(), a.group_channels};
  filter.insert(filter.end(), a.kernel.begin(), a.kernel.end());
  filter_plain = OnednnPlain(filter);
  bias = OnednnPlain({a.filters});
  const bool blocked = BlockedFormsPay(a);
  input = blocked ? OnednnAny(input_plain.dims()) : input_plain;
  output = blocked ? OnednnAny(output_plain.dims()) : output_plain;
  this->filter = blocked || a.geometry.channels_last ? OnednnAny(filter) : filter_plain;
  for (int axis = 0; axis < a.geometry.window.axes(); ++axis) {
    const WindowAxis& w = a.geometry.window[axis];
    strides.push_back(w.stride);
    dilations.push_back(w.dilation - 1);  // oneDNN counts the gaps
    pad_begin.push_back(w.pad_begin);
    pad_end.push_back(w.pad_end);
  }
}

namespace {

// `transposed`: the op is the gradient of a convolution with respect to its images.
LayoutCost CostOfLayouts(const InferContext& plain, bool transposed) {
  const Shape& filter = plain.ShapeOf("Filter");
  const bool forward = plain.OutputCount("Output") > 0;
  const Shape& input = plain.ShapeOf("Input");
  const Shape& output = forward ? plain.Output("Output").shape : plain.ShapeOf("Output@GRAD");
  const int passes = forward ? 1 : plain.OutputCount("Input@GRAD") + plain.OutputCount("Filter@GRAD");
  const Dim window = filter.Product(2, filter.rank());
  const Dim windows = (transposed ? input : output).Count();
  const double ns =
      passes * FlopsNs(2.0 * static_cast<double>(windows) * static_cast<double>(filter[1] * window));
  if (vec::IsaInUse() < vec::Isa::kAvx2) return {ns, ns};
  if (BlockedFormsPay(plain.Attr<std::int32_t>("groups"), filter[1], filter[0], window == 1)) {
    constexpr double kReorderNs = 0.2;
    return {ns + kReorderNs * passes * static_cast<double>(input.Count() + output.Count()), ns};
  }
  if (window > 1) return {ns * 1.6, ns};
  // A convolution by points takes as long in both layouts, its gradients do not (point_products.h).
  return {ns * (forward && !transposed && vec::IsaInUse() >= vec::Isa::kAvx512 ? 1.0 : 1.2), ns};
}

}  // namespace

LayoutCost ConvLayoutCost(const InferContext& plain) { return CostOfLayouts(plain, false); }
LayoutCost TransposedLayoutCost(const InferContext& plain) { return CostOfLayouts(plain, true); }

ConvDescs ConvDescs::OfImages(Dim images) const {
  ConvArguments a = arguments;
  a.input.images = a.output.images = images;
  return ConvDescs(a);
}

double ConvDescs::ImageNs() const {
  double products = static_cast<double>(arguments.filters * arguments.group_channels);
  for (const Dim extent : arguments.kernel) products *= static_cast<double>(extent);
  return FlopsNs(2 * products * static_cast<double>(arguments.output.points()));
}

namespace {

using MemoryId = OnednnSequence::MemoryId;

// A convolution in shares of the images. Each share has a primitive of kind PrimitiveDesc.
template <typename PrimitiveDesc>
class ConvShares {
 public:
  struct Share {
    ConvDescs descs;
    PrimitiveDesc primitive;
    std::size_t input_offset, output_offset;  // in bytes
  };

  // make(descs): the primitive's description.
  template <typename Make>
  ConvShares(const KernelSetup& k, const ConvDescs& whole, int per_thread, const Make& make) {
    const Dim images = whole.arguments.input.images;
    const Shares shares = DivideIntoShares(images, whole.ImageNs(), 1, k.threads(), per_thread);
    team_ = shares.count > 1 || shares.small ? 1 : k.threads();
    const OnednnTeam team(team_);
    for (Dim first = 0; first < images; first += shares.items) {
      const ConvDescs descs =
          shares.count == 1 ? whole : whole.OfImages(std::min(shares.items, images - first));
      const auto bytes = [first](const ImageShape& s) {
        return static_cast<std::size_t>(first * s.image_stride) * sizeof(float);
      };
      shares_.push_back({descs, make(descs), bytes(whole.arguments.input), bytes(whole.arguments.output)});
    }
  }

  std::size_t count() const { return shares_.size(); }
  const Share& operator[](std::size_t i) const { return shares_[i]; }

  // Returns the filter in the layout of each share. The reorders belong to no share, so call it first.
  std::vector<MemoryId> Weights(KernelSetup& k, OnednnSequence& steps, const Operand& filter) const {
    const OnednnTeam team(team_);
    std::vector<MemoryId> all;
    const MemoryId plain = steps.Tensor(filter, shares_[0].descs.filter_plain);
    for (std::size_t i = 0; i < count(); ++i) {
      const bool again =
          i > 0 && shares_[i].primitive.weights_desc() == shares_[i - 1].primitive.weights_desc();
      all.push_back(again ? all.back() : steps.Reordered(k, plain, shares_[i].primitive.weights_desc()));
    }
    return all;
  }

  // Calls add(i, share) for each share, with steps of the share.
  template <typename Add>
  void ForEach(OnednnSequence& steps, const Add& add) const {
    if (count() == 1) {
      const OnednnTeam team(team_);
      return add(0, shares_[0]);
    }
    for (std::size_t i = 0; i < count(); ++i) {
      const OnednnShare share(steps, static_cast<int>(i));
      add(i, shares_[i]);
    }
  }

 private:
  int team_ = 1;
  std::vector<Share> shares_;
};

constexpr int kSharesPerThread = 2;

// Whether the primitive adds the bias to the finished sum. Others start with it, or add it to a part.
bool AddsBiasLast(const dnnl::convolution_forward::primitive_desc& pd) {
  const std::string_view name = pd.impl_info_str();
  return name.starts_with("brgconv") || name.find("gemm:jit") != std::string_view::npos;
}

}  // namespace

void AddConvolution(KernelSetup& k, OnednnSequence& steps, const ConvDescs& d, const Operand& input,
                    const Operand& filter, const Operand& bias, MemoryId output) {
  using Forward = dnnl::convolution_forward::primitive_desc;
  const ConvShares<Forward> shares(k, d, kSharesPerThread, [&](const ConvDescs& descs) {
    const Forward pd = descs.Forward(static_cast<bool>(bias));
    return bias && !AddsBiasLast(pd) ? descs.Forward(false) : pd;
  });
  const std::vector<MemoryId> weights = shares.Weights(k, steps, filter);
  shares.ForEach(steps, [&](std::size_t i, const ConvShares<Forward>::Share& s) {
    const Forward& pd = s.primitive;
    const auto plain = steps.Part(output, s.descs.output_plain, s.output_offset);
    const auto source =
        steps.Reordered(k, steps.Tensor(input, s.descs.input_plain, s.input_offset), pd.src_desc());
    const auto staged = steps.Staged(k, plain, pd.dst_desc());
    std::vector<std::pair<int, MemoryId>> arguments = {
        {DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, weights[i]}, {DNNL_ARG_DST, staged}};
    const bool adds_bias = bias && pd.bias_desc().get_size() > 0;
    if (adds_bias) arguments.emplace_back(DNNL_ARG_BIAS, steps.Tensor(bias, s.descs.bias));
    steps.Add(k, dnnl::convolution_forward(pd), pd.scratchpad_desc(), arguments);
    steps.FlushTo(k, staged, plain);
    if (!bias || adds_bias) return;
    const ImageShape& out = s.descs.arguments.output;
    const bool last = s.descs.arguments.geometry.channels_last;
    steps.AddValues(plain, steps.Tensor(bias, s.descs.bias), out.images * (last ? out.points() : 1),
                    last ? 1 : out.points());
  });
}

void AddInputGradient(KernelSetup& k, OnednnSequence& steps, const ConvDescs& d, const Operand& filter,
                      const Operand& doutput, const Operand& dinput) {
  using Backward = dnnl::convolution_backward_data::primitive_desc;
  const ConvShares<Backward> shares(k, d, kSharesPerThread, [](const ConvDescs& descs) {
    return Backward({dnnl::algorithm::convolution_direct, descs.input, descs.filter, descs.output,
                     descs.strides, descs.dilations, descs.pad_begin, descs.pad_end},
                    OnednnAttr(), OnednnEngine(), descs.Forward(false));
  });
  const std::vector<MemoryId> weights = shares.Weights(k, steps, filter);
  shares.ForEach(steps, [&](std::size_t i, const ConvShares<Backward>::Share& s) {
    const Backward& pd = s.primitive;
    const auto grad =
        steps.Reordered(k, steps.Tensor(doutput, s.descs.output_plain, s.output_offset), pd.diff_dst_desc());
    const auto plain = steps.Tensor(dinput, s.descs.input_plain, s.input_offset);
    const auto staged = steps.Staged(k, plain, pd.diff_src_desc());
    steps.Add(k, dnnl::convolution_backward_data(pd), pd.scratchpad_desc(),
              {{DNNL_ARG_DIFF_DST, grad}, {DNNL_ARG_WEIGHTS, weights[i]}, {DNNL_ARG_DIFF_SRC, staged}});
    steps.FlushTo(k, staged, plain);
  });
}

namespace {

dnnl::convolution_backward_weights::primitive_desc FilterGradient(const ConvDescs& d, bool with_bias) {
  using Backward = dnnl::convolution_backward_weights;
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const Backward::desc desc = with_bias ? Backward::desc(algorithm, d.input, d.filter, d.bias, d.output,
                                                         d.strides, d.dilations, d.pad_begin, d.pad_end)
                                        : Backward::desc(algorithm, d.input, d.filter, d.output, d.strides,
                                                         d.dilations, d.pad_begin, d.pad_end);
  return {desc, OnednnAttr(), OnednnEngine(), d.Forward(with_bias)};
}

}  // namespace

void AddFilterGradient(KernelSetup& k, OnednnSequence& steps, const ConvDescs& whole, const Operand& input,
                       const Operand& doutput, const Operand& dfilter, const Operand& dbias) {
  using Backward = dnnl::convolution_backward_weights::primitive_desc;
  const bool with_bias = static_cast<bool>(dbias);
  // All shares write the layout of the first one, so that their results can be added.
  std::optional<dnnl::memory::desc> layout;
  const ConvShares<Backward> shares(k, whole, 1, [&](ConvDescs descs) {
    if (layout) descs.filter = *layout;
    Backward pd = FilterGradient(descs, with_bias);
    layout = pd.diff_weights_desc();
    return pd;
  });
  // Even if only the bias is requested, the primitives write both.
  const auto plain = dfilter ? steps.Tensor(dfilter, whole.filter_plain) : steps.Scratch(k, *layout);
  const auto staged = steps.Staged(k, plain, *layout);
  std::vector<MemoryId> filters, biases;
  shares.ForEach(steps, [&](std::size_t i, const ConvShares<Backward>::Share& s) {
    const Backward& pd = s.primitive;
    const auto source =
        steps.Reordered(k, steps.Tensor(input, s.descs.input_plain, s.input_offset), pd.src_desc());
    const auto grad =
        steps.Reordered(k, steps.Tensor(doutput, s.descs.output_plain, s.output_offset), pd.diff_dst_desc());
    filters.push_back(i == 0 ? staged : steps.Scratch(k, *layout));
    std::vector<std::pair<int, MemoryId>> arguments = {
        {DNNL_ARG_SRC, source}, {DNNL_ARG_DIFF_DST, grad}, {DNNL_ARG_DIFF_WEIGHTS, filters.back()}};
    if (with_bias) {
      biases.push_back(i == 0 ? steps.Tensor(dbias, whole.bias) : steps.Scratch(k, whole.bias));
      arguments.emplace_back(DNNL_ARG_DIFF_BIAS, biases.back());
    }
    steps.Add(k, dnnl::convolution_backward_weights(pd), pd.scratchpad_desc(), arguments);
  });
  if (dfilter && shares.count() > 1) steps.AddSum(filters);
  if (with_bias && shares.count() > 1) steps.AddSum(biases);
  const OnednnTeam one(1);
  steps.FlushTo(k, staged, plain);
}

}  // namespace penstock
