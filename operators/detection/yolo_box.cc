// yolo_box: decodes the boxes and scores of a YOLOv3 head.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/between.h"
#include "operators/detection/yolo.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Let t be the values of an anchor of width a and height b in cell (x, y), s the logistic function and
k = scale_x_y. Then

centre = (x + k * s(t0) - (k - 1) / 2, y + k * s(t1) - (k - 1) / 2) / height of X
         * (image width, image height)
size   = (a * exp(t2) * image width, b * exp(t3) * image height) / (downsample_ratio * height of X)
score of a class = s(t4) * s(t of the class)

Boxes are (x1, y1, x2, y2), clipped to the image with clip_bbox. Where s(t4) is below conf_thresh, the box and
its scores are 0. The boxes of an anchor are contiguous. ImgSize is (height, width) of each image.

Redmon, Farhadi: "YOLOv3: an incremental improvement", 2018.)";

Status InferYoloBox(InferContext& c) {
  const Shape &x = c.ShapeOf("X"), &size = c.ShapeOf("ImgSize");
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::int32_t> anchors, YoloAnchors(c));
  PENSTOCK_ASSIGN_OR_RETURN(const YoloLayout y, MakeYoloLayout(c, x, static_cast<Dim>(anchors.size() / 2)));
  if (size.rank() != 2 || !Compatible(size[1], 2) || !Compatible(size[0], x[0]))
    return c.Error("shape of ImgSize (", size, ") must be [", x[0], ", 2]");
  const bool known = y.height != kUnknownDim && y.width != kUnknownDim;
  const Dim boxes = known ? y.anchors * y.cells() : kUnknownDim;
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Scores", {x[0], boxes, y.classes}));
  return c.SetShape("Boxes", {x[0], boxes, 4});
}

template <typename Device, typename T>
class YoloBoxKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, size_, boxes_, scores_);
    PENSTOCK_ASSIGN_OR_RETURN(anchors_, YoloAnchors(k));
    PENSTOCK_ASSIGN_OR_RETURN(y_, MakeYoloLayout(k, k[x_].shape, static_cast<Dim>(anchors_.size() / 2)));
    input_size_ = static_cast<T>(k.Attr<std::int32_t>("downsample_ratio")) * static_cast<T>(y_.height);
    threshold_ = static_cast<T>(k.Attr<float>("conf_thresh"));
    clips_ = k.Attr<bool>("clip_bbox");
    scale_ = static_cast<T>(k.Attr<float>("scale_x_y"));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T* const x = std::as_const(k[x_]).template Data<T>();
    const std::int32_t* size = std::as_const(k[size_]).template Data<std::int32_t>();
    T* box = k[boxes_].template Data<T>();
    T* score = k[scores_].template Data<T>();
    for (Dim image = 0; image < y_.images; ++image, size += 2) {
      for (Dim anchor = 0; anchor < y_.anchors; ++anchor) {
        for (Dim cell = 0; cell < y_.cells(); ++cell, box += 4, score += y_.classes) {
          const T* const t = x + y_.At(image, anchor, 0) + cell;
          const T sure = Logistic(t[4 * y_.cells()]);
          if (sure < threshold_) {
            std::fill_n(box, 4, T{0});
            std::fill_n(score, y_.classes, T{0});
            continue;
          }
          MakeBox(t, anchor, cell, static_cast<T>(size[1]), static_cast<T>(size[0]), box);
          for (Dim c = 0; c < y_.classes; ++c) score[c] = sure * Logistic(t[(5 + c) * y_.cells()]);
        }
      }
    }
    return OkStatus();
  }

 private:
  void MakeBox(const T* t, Dim anchor, Dim cell, T image_width, T image_height, T* box) const {
    const Dim cells = y_.cells();
    const T less = (scale_ - 1) / 2, grid = static_cast<T>(y_.height);
    const T x = (static_cast<T>(cell % y_.width) + Logistic(t[0]) * scale_ - less) * image_width / grid;
    const T y = (static_cast<T>(cell / y_.width) + Logistic(t[cells]) * scale_ - less) * image_height / grid;
    const std::size_t at = static_cast<std::size_t>(2 * anchor);
    const T width = std::exp(t[2 * cells]) * static_cast<T>(anchors_[at]) * image_width / input_size_;
    const T height = std::exp(t[3 * cells]) * static_cast<T>(anchors_[at + 1]) * image_height / input_size_;
    box[0] = x - width / 2;
    box[1] = y - height / 2;
    box[2] = x + width / 2;
    box[3] = y + height / 2;
    if (!clips_) return;
    box[0] = box[0] < 0 ? T{0} : box[0];
    box[1] = box[1] < 0 ? T{0} : box[1];
    box[2] = box[2] > image_width - 1 ? image_width - 1 : box[2];
    box[3] = box[3] > image_height - 1 ? image_height - 1 : box[3];
  }

  In<"X"> x_;
  In<"ImgSize"> size_;
  Out<"Boxes"> boxes_;
  Out<"Scores"> scores_;
  std::vector<std::int32_t> anchors_;
  YoloLayout y_;
  T input_size_{1}, threshold_{}, scale_{1};
  bool clips_ = true;
};

}  // namespace

void RegisterYoloBox(OpRegistry& ops) {
  ops.Add("yolo_box")
      .Doc("Decodes the boxes and scores of a YOLOv3 head.", kDoc)
      .Input("X", "[images, anchors * (5 + class_num), height, width]", Floats())
      .Input("ImgSize", "[images, 2]: height, width", Only(DType::kInt32))
      .Output("Boxes", "[images, boxes, 4]", SameTypeAs("X"), Apart())
      .Output("Scores", "[images, boxes, class_num]", SameTypeAs("X"), Apart())
      .RequiredAttr("class_num", AttrKind::kInt, "the number of classes", Between(1, 1 << 20))
      .Attr("anchors", std::vector<std::int32_t>(), "the width and height of each anchor",
            Between(1, 1 << 20))
      .Attr("downsample_ratio", 32, "the number of pixels of the network's input per cell",
            Between(1, 1 << 20))
      .Attr("conf_thresh", 0.01f, "boxes of lower confidence are set to 0")
      .Attr("clip_bbox", true, "whether boxes are clipped to the image")
      .Attr("scale_x_y", 1.0f, "scales the offsets of centres within their cells")
      .Nan("a class score or box coordinate computed from a NaN is NaN.")
      .InferShape(InferYoloBox)
      .KernelTypeFrom("X")
      .Kernel<Cpu, YoloBoxKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
