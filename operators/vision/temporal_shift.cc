// temporal_shift: takes some channels of the frames of a video from the frame before or after.
#include <algorithm>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/between.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
X holds videos of seg_num consecutive frames. Of c channels, the first c * shift_ratio channels of a frame of
Out are taken from the previous frame, those up to c * 2 * shift_ratio from the next frame, and the others
from the frame itself. Frames outside the video are zero.

Lin, Gan, Han: "TSM: temporal shift module for efficient video understanding", ICCV 2019.)";

struct Shift {
  Dim videos = 0, frames = 1, channels = 0, plane = 1, first = 0, second = 0;

  template <typename Context>
  Status Prepare(const Context& k, const Shape& x) {
    if (x.rank() != 4) return k.Error("rank of X (", x.rank(), ", shape ", x, ") must be 4");
    frames = k.template Attr<std::int32_t>("seg_num");
    if (x[0] != kUnknownDim && x[0] % frames != 0)
      return k.Error("the first extent of X (", x[0], ") must be divisible by seg_num (", frames, ")");
    videos = x[0] / frames;
    channels = x[1];
    plane = x[2] * x[3];
    const float ratio = k.template Attr<float>("shift_ratio");
    first = static_cast<Dim>(static_cast<float>(channels) * ratio);
    second = static_cast<Dim>(static_cast<float>(channels) * 2 * ratio);
    return OkStatus();
  }
  // Moves planes from frame t + direction * offset(channel) to frame t.
  template <typename T>
  void Move(const T* from, T* to, Dim direction) const {
    for (Dim v = 0; v < videos; ++v) {
      for (Dim t = 0; t < frames; ++t) {
        for (Dim c = 0; c < channels; ++c, to += plane) {
          const Dim source = t + direction * (c < first ? -1 : c < second ? 1 : 0);
          if (source < 0 || source >= frames) {
            std::fill_n(to, plane, T{0});
          } else {
            std::copy_n(from + ((v * frames + source) * channels + c) * plane, plane, to);
          }
        }
      }
    }
  }
};

Status InferTemporalShift(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(Shift().Prepare(c, c.ShapeOf("X")));
  return c.ShareAll("X", "Out");
}

template <typename Device, typename T>
class TemporalShiftKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(from_, to_);
    return shift_.Prepare(k, k[from_].shape);
  }
  Status Run(KernelRun& k) override {
    shift_.Move(std::as_const(k[from_]).template Data<T>(), k[to_].template Data<T>(), 1);
    return OkStatus();
  }

 private:
  In<"X"> from_;
  Out<"Out"> to_;
  Shift shift_;
};

template <typename Device, typename T>
class TemporalShiftGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(from_, to_);
    return shift_.Prepare(k, k[from_].shape);
  }
  Status Run(KernelRun& k) override {
    if (to_) shift_.Move(std::as_const(k[from_]).template Data<T>(), k[to_].template Data<T>(), -1);
    return OkStatus();
  }

 private:
  In<"Out@GRAD"> from_;
  Out<"X@GRAD"> to_;
  Shift shift_;
};

}  // namespace

void RegisterTemporalShift(OpRegistry& ops) {
  ops.Add("temporal_shift")
      .Doc("Shifts some channels of the frames of videos by one frame forward or back.", kDoc)
      .Input("X", "[videos * seg_num, channels, height, width]", Floats())
      .Output("Out", "shaped like X", SameTypeAs("X"), Apart())
      .RequiredAttr("seg_num", AttrKind::kInt, "the number of frames per video", AtLeast(1))
      .Attr("shift_ratio", 0.25f,
            "the fraction of channels taken from the previous frame, and of those taken from the next",
            Between(0.0f, 0.5f))
      .InferShape(InferTemporalShift)
      .Kernel<Cpu, TemporalShiftKernel, float, double>()
      .Grad({.yields = {"X"}, .apart = {"X"}})
      .GradKernel<Cpu, TemporalShiftGradKernel, float, double>()
      .GradDef()
      .InferShape([](InferContext& c) { return c.ShareAll("Out@GRAD", "X@GRAD"); });
}

}  // namespace penstock
