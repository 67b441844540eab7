#include "operators/nn/point_products.h"

#include <algorithm>
#include <utility>

#include "framework/vector/isa.h"
#include "operators/common/gemm.h"

namespace penstock {
namespace {

bool IsProduct(const ConvArguments& a) {
  if (!a.geometry.channels_last || a.geometry.groups != 1) return false;
  const auto is_point = [](const WindowAxis& w) {
    return w.kernel == 1 && w.stride == 1 && w.pad_begin == 0 && w.pad_end == 0;
  };
  return std::ranges::all_of(a.geometry.window.all(), is_point);
}

bool ProductsPay(const ConvArguments& a) { return IsProduct(a) && vec::IsaInUse() >= vec::Isa::kAvx512; }

MatrixView<const float> ViewOf(KernelRun& k, const Operand& operand, Dim rows, Dim columns) {
  return RowMajor(std::as_const(k[operand]).Data<float>(), rows, columns);
}

}  // namespace

void PointProducts::Prepare(const KernelSetup& k, const ConvArguments& a) {
  input_ = k.Input("Input");
  filter_ = k.Input("Filter");
  doutput_ = k.Input("Output@GRAD");
  points_ = a.input.images * a.input.points();
  channels_ = a.group_channels;
  filters_ = a.filters;
  threads_ = k.threads();
}

bool PointProducts::TakeInputGradient(const KernelSetup& k, const ConvArguments& a) {
  if (!k.Output("Input@GRAD") || !ProductsPay(a)) return false;
  Prepare(k, a);
  dinput_ = k.Output("Input@GRAD");
  return true;
}

bool PointProducts::TakeFilterGradient(const KernelSetup& k, const ConvArguments& a) {
  constexpr Dim kFewWeights = 1024;  // oneDNN is faster if all sums fit in registers
  if (!k.Output("Filter@GRAD") || k.Output("Bias@GRAD") || !ProductsPay(a)) return false;
  if (a.filters * a.group_channels < kFewWeights) return false;
  Prepare(k, a);
  dfilter_ = k.Output("Filter@GRAD");
  return true;
}

Status PointProducts::Run(KernelRun& k) const {
  if (!dinput_ && !dfilter_) return OkStatus();
  const GemmOptions options = {.threads = threads_};
  const auto doutput = ViewOf(k, doutput_, points_, filters_);
  if (dfilter_) {
    PENSTOCK_RETURN_IF_ERROR(Gemm<float>(Transposed(doutput), ViewOf(k, input_, points_, channels_),
                                         RowMajor(k[dfilter_].Data<float>(), filters_, channels_), options));
  }
  if (!dinput_) return OkStatus();
  return Gemm<float>(doutput, ViewOf(k, filter_, filters_, channels_),
                     RowMajor(k[dinput_].Data<float>(), points_, channels_), options);
}

}  // namespace penstock
