// iou_similarity, box_clip, polygon_box_transform: functions of single boxes or of pairs of boxes.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/lod.h"
#include "operators/common/nan.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
iou_similarity:        Out[i, j] is the intersection of boxes X[i] and Y[j] divided by their union.
box_clip:              Output is Input clipped to its image: x to [0, round(width / scale) - 1], y likewise by
                       the height. Sequence n of Input belongs to image ImInfo[n] = (height, width, scale).
polygon_box_transform: Output = 4 * x - Input on even channels and 4 * y - Input on odd channels. This turns
                       the distances from each pixel to the corners into coordinates in the image, which is
                       four times as wide and high.)";

Status RequireBoxes(const InferContext& c, const char* slot) {
  const Shape& shape = c.ShapeOf(slot);
  if (shape.rank() == 2 && Compatible(shape[1], 4)) return OkStatus();
  return c.Error("shape of ", slot, " (", shape, ") must be [boxes, 4]");
}

Status InferIouSimilarity(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(RequireBoxes(c, "X"));
  PENSTOCK_RETURN_IF_ERROR(RequireBoxes(c, "Y"));
  c.ShareLod("X", "Out");
  return c.SetShape("Out", {c.ShapeOf("X")[0], c.ShapeOf("Y")[0]});
}

template <typename Device, typename T>
class IouSimilarityKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_, out_);
    more_ = k.Attr<bool>("box_normalized") ? T{0} : T{1};
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T* a = std::as_const(k[x_]).template Data<T>();
    T* out = k[out_].template Data<T>();
    const Dim rows = k[x_].shape()[0], columns = k[y_].shape()[0];
    for (Dim i = 0; i < rows; ++i, a += 4) {
      const T* b = std::as_const(k[y_]).template Data<T>();
      for (Dim j = 0; j < columns; ++j, b += 4) {
        const T width = MinOrNan(a[2], b[2]) - MaxOrNan(a[0], b[0]) + more_;
        const T height = MinOrNan(a[3], b[3]) - MaxOrNan(a[1], b[1]) + more_;
        const T common = MaxOrNan(width, T{0}) * MaxOrNan(height, T{0});
        *out++ = common / (Area(a) + Area(b) - common);
      }
    }
    return OkStatus();
  }

 private:
  T Area(const T* box) const { return (box[2] - box[0] + more_) * (box[3] - box[1] + more_); }

  In<"X"> x_;
  In<"Y"> y_;
  Out<"Out"> out_;
  T more_{};
};

Status InferBoxClip(InferContext& c) {
  const Shape &input = c.ShapeOf("Input"), &info = c.ShapeOf("ImInfo");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("Input", 1));
  if (!Compatible(input[input.rank() - 1], 4))
    return c.Error("the last extent of Input (", input, ") must be 4");
  if (info.rank() != 2 || !Compatible(info[1], 3))
    return c.Error("shape of ImInfo (", info, ") must be [images, 3]");
  return c.ShareAll("Input", "Output");
}

template <typename Device, typename T>
class BoxClipKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    in_.Prepare(k, "Input");
    k.Bind(info_, out_);
    width_ = k.Input("Input").shape.RowWidth();
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets images, in_.Innermost(k));
    if (images.count() != k[info_].shape()[0])
      return LodError(in_.what(), " is in ", images.count(), " sequences; ImInfo has ", k[info_].shape()[0],
                      " images");
    const T* const in = std::as_const(k[in_.operand()]).template Data<T>();
    const T* info = std::as_const(k[info_]).template Data<T>();
    T* const out = k[out_].template Data<T>();
    for (Dim image = 0; image < images.count(); ++image, info += 3) {
      const T last[2] = {std::round(info[1] / info[2]) - 1, std::round(info[0] / info[2]) - 1};
      for (Dim i = images.begin(image) * width_; i < images.end(image) * width_; ++i)
        out[i] = MaxOrNan(MinOrNan(in[i], last[i % 2]), T{0});
    }
    return OkStatus();
  }

 private:
  SequenceInput in_;
  In<"ImInfo"> info_;
  Out<"Output"> out_;
  Dim width_ = 4;
};

Status InferPolygonBoxTransform(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Input", 4));
  const Dim channels = c.ShapeOf("Input")[1];
  if (channels != kUnknownDim && channels % 2 != 0)
    return c.Error("channels of Input (", channels, ") must be even");
  return c.ShareAll("Input", "Output");
}

template <typename Device, typename T>
class PolygonBoxTransformKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(in_, out_);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T* in = k[in_].template Data<T>();
    T* out = k[out_].template Data<T>();
    const Shape& shape = k[in_].shape();
    for (Dim plane = 0; plane < shape[0] * shape[1]; ++plane) {
      const bool vertical = plane % shape[1] % 2 == 1;
      for (Dim y = 0; y < shape[2]; ++y) {
        for (Dim x = 0; x < shape[3]; ++x) *out++ = static_cast<T>(4 * (vertical ? y : x)) - *in++;
      }
    }
    return OkStatus();
  }

 private:
  In<"Input"> in_;
  Out<"Output"> out_;
};

}  // namespace

void RegisterSimpleBoxes(OpRegistry& ops) {
  ops.Add("iou_similarity")
      .Doc("The intersection over union of all pairs of boxes.", kDoc)
      .Input("X", "[boxes, 4]", Floats())
      .Input("Y", "[boxes, 4]", SameTypeAs("X"))
      .Output("Out", "[boxes of X, boxes of Y]", SameTypeAs("X"), Apart())
      .Attr("box_normalized", true,
            "whether coordinates are normalised; if not, boxes include their last pixel")
      .InferShape(InferIouSimilarity)
      .Kernel<Cpu, IouSimilarityKernel, float, double>()
      .NoGrad();
  ops.Add("box_clip")
      .Doc("Clips boxes to their images.", kDoc)
      .Input("Input", "[boxes, ..., 4], one sequence per image", Floats())
      .Input("ImInfo", "[images, 3]: height, width, scale", SameTypeAs("Input"))
      .Output("Output", "shaped like Input", SameTypeAs("Input"))
      .InferShape(InferBoxClip)
      .Kernel<Cpu, BoxClipKernel, float, double>()
      .NoGrad();
  ops.Add("polygon_box_transform")
      .Doc("Converts distances to corners into coordinates.", kDoc)
      .Input("Input", "[images, an even number of channels, height, width]", Floats())
      .Output("Output", "shaped like Input", SameTypeAs("Input"))
      .InferShape(InferPolygonBoxTransform)
      .Kernel<Cpu, PolygonBoxTransformKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
