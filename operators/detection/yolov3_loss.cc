// yolov3_loss: the loss of a YOLOv3 head.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/between.h"
#include "operators/common/require_shape.h"
#include "operators/detection/yolo.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
A ground-truth box (x, y, width, height: fractions of the image) of positive size belongs to the cell of its
centre and to the anchor that it overlaps most if both have the same centre. GTMatchMask is that anchor's
index in anchor_mask, or -1 if it is not there. If it is there, the box adds the following to the loss, where
e is the logistic cross entropy and k = GTScore (1 if absent):

Loss += k * (2 - width * height) * (e(t0, x within the cell) + e(t1, y within the cell)
                                    + |t2 - log(width / anchor's)| + |t3 - log(height / anchor's)|)
        + k * sum over the classes of e(t, 1 or 0)
        + k * e(t4, 1)

With use_label_smooth, the class targets are 1 - d and d instead of 1 and 0, where d = min(1 / class_num,
1 / 40).

Boxes of other cells and anchors add e(t4, 0), unless the predicted box overlaps a ground-truth box by more
than ignore_thresh. ObjectnessMask is k, 0 and -1 in these three cases. GTBox, GTLabel and GTScore have no
gradient.

Redmon, Farhadi: "YOLOv3: an incremental improvement", 2018.)";

using Ints = std::vector<std::int32_t>;

template <typename T>
struct YoloBoxParts {
  T x{}, y{}, width{}, height{};
};

// Returns the length of the intersection of two boxes along an axis.
template <typename T>
T CommonLength(T a, T a_size, T b, T b_size) {
  return std::min(a + a_size / 2, b + b_size / 2) - std::max(a - a_size / 2, b - b_size / 2);
}
template <typename T>
T OverlapOf(const YoloBoxParts<T>& a, const YoloBoxParts<T>& b) {
  const T width = CommonLength(a.x, a.width, b.x, b.width),
          height = CommonLength(a.y, a.height, b.y, b.height);
  const T common = width < 0 || height < 0 ? T{0} : width * height;
  return common / (a.width * a.height + b.width * b.height - common);
}

template <typename T>
T LogisticEntropy(T x, T label) {
  return (x > 0 ? x : T{0}) - x * label + std::log(1 + std::exp(-std::abs(x)));
}
template <typename T>
T LogisticEntropyGrad(T x, T label) {
  return Logistic(x) - label;
}

template <typename Context>
Status CheckAnchorMask(const Context& c, const Ints& mask, const Ints& anchors) {
  for (const std::int32_t anchor : mask) {
    if (anchor < 0 || static_cast<std::size_t>(anchor) >= anchors.size() / 2)
      return c.Error("anchor_mask holds ", anchor, "; there are ", anchors.size() / 2, " anchors");
  }
  return OkStatus();
}

Status InferYolov3Loss(InferContext& c) {
  const Shape &x = c.ShapeOf("X"), &box = c.ShapeOf("GTBox"), &label = c.ShapeOf("GTLabel");
  const Ints mask = c.Attr<Ints>("anchor_mask");
  PENSTOCK_ASSIGN_OR_RETURN(const Ints anchors, YoloAnchors(c));
  PENSTOCK_RETURN_IF_ERROR(CheckAnchorMask(c, mask, anchors));
  PENSTOCK_ASSIGN_OR_RETURN(const YoloLayout y, MakeYoloLayout(c, x, static_cast<Dim>(mask.size())));
  if (!Compatible(x[2], x[3])) return c.Error("height and width of X (", x, ") must be equal");
  if (box.rank() != 3 || !Compatible(box[2], 4) || !Compatible(box[0], x[0]))
    return c.Error("shape of GTBox (", box, ") must be [", x[0], ", boxes, 4]");
  if (!Compatible(label, Shape{box[0], box[1]}))
    return c.Error("shape of GTLabel (", label, ") must be [", box[0], ", ", box[1], "]");
  if (c.HasInput("GTScore") && !Compatible(c.ShapeOf("GTScore"), Shape{box[0], box[1]}))
    return c.Error("shape of GTScore (", c.ShapeOf("GTScore"), ") must be [", box[0], ", ", box[1], "]");
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("ObjectnessMask", {x[0], y.anchors, x[2], x[3]}));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("GTMatchMask", {box[0], box[1]}));
  return c.SetShape("Loss", {x[0]});
}

// What the loss and its gradient share: the cell, anchor and targets of a ground-truth box.
template <typename T>
class YoloTruth {
 public:
  Status Prepare(const KernelSetup& k) {
    k.Bind(box_, label_, score_);
    mask = k.Attr<Ints>("anchor_mask");
    PENSTOCK_ASSIGN_OR_RETURN(anchors, YoloAnchors(k));
    PENSTOCK_RETURN_IF_ERROR(CheckAnchorMask(k, mask, anchors));
    PENSTOCK_RETURN_IF_ERROR(RequireType(k, "GTBox", k.Input("X").dtype));
    PENSTOCK_RETURN_IF_ERROR(RequireType(k, "GTLabel", DType::kInt32));
    if (score_) PENSTOCK_RETURN_IF_ERROR(RequireType(k, "GTScore", k.Input("X").dtype));
    PENSTOCK_ASSIGN_OR_RETURN(y, MakeYoloLayout(k, k.Input("X").shape, static_cast<Dim>(mask.size())));
    input_size = static_cast<T>(k.Attr<std::int32_t>("downsample_ratio")) * static_cast<T>(y.height);
    const T smooth = std::min(T{1} / static_cast<T>(y.classes), T(1.0 / 40));
    negative = k.Attr<bool>("use_label_smooth") ? smooth : T{0};
    boxes = k[box_].shape.rank() == 3 ? k[box_].shape[1] : 0;
    if (k[box_].shape != Shape{y.images, boxes, 4})
      return k.Error("shape of GTBox (", k[box_].shape, ") must be [", y.images, ", boxes, 4]");
    for (const Argument* other : {&k[label_], &k[score_]}) {
      if (*other && other->shape != Shape{y.images, boxes})
        return k.Error("shape of ", other->name, " (", other->shape, ") must be [", y.images, ", ", boxes,
                       "]");
    }
    return OkStatus();
  }
  YoloBoxParts<T> Box(KernelRun& k, Dim image, Dim t) const {
    const T* const b = std::as_const(k[box_]).template Data<T>() + (image * boxes + t) * 4;
    return {b[0], b[1], b[2], b[3]};
  }
  static bool IsThere(const YoloBoxParts<T>& box) { return box.width >= T(1e-6) && box.height >= T(1e-6); }
  Dim Label(KernelRun& k, Dim image, Dim t) const {
    return std::as_const(k[label_]).template Data<std::int32_t>()[image * boxes + t];
  }
  T Score(KernelRun& k, Dim image, Dim t) const {
    return score_ ? std::as_const(k[score_]).template Data<T>()[image * boxes + t] : T{1};
  }
  // Returns the cell of a box's centre, or -1 if it is outside the image.
  Dim CellOf(const YoloBoxParts<T>& box) const {
    if (!(box.x >= 0 && box.y >= 0 && box.x < 1 && box.y < 1)) return -1;
    return static_cast<Dim>(box.y * static_cast<T>(y.height)) * y.width +
           static_cast<Dim>(box.x * static_cast<T>(y.width));
  }
  Dim BestAnchor(const YoloBoxParts<T>& box) const {
    Dim best = 0;
    T most{};
    for (std::size_t a = 0; a < anchors.size() / 2; ++a) {
      const YoloBoxParts<T> anchor = {T{0}, T{0}, static_cast<T>(anchors[2 * a]) / input_size,
                                      static_cast<T>(anchors[2 * a + 1]) / input_size};
      const T overlap = OverlapOf(anchor, {T{0}, T{0}, box.width, box.height});
      if (overlap > most) {
        most = overlap;
        best = static_cast<Dim>(a);
      }
    }
    return best;
  }
  // The targets of t0 to t3 in that cell, and their weight.
  struct Aims {
    T at[4];
    T weight{};
  };
  Aims AimsOf(const YoloBoxParts<T>& box, Dim cell, Dim anchor, T score) const {
    const std::size_t a = static_cast<std::size_t>(2 * anchor);
    const T grid = static_cast<T>(y.height);
    return {{box.x * grid - static_cast<T>(cell % y.width), box.y * grid - static_cast<T>(cell / y.width),
             std::log(box.width * input_size / static_cast<T>(anchors[a])),
             std::log(box.height * input_size / static_cast<T>(anchors[a + 1]))},
            (2 - box.width * box.height) * score};
  }
  T ClassAim(Dim c, Dim label) const { return c == label ? 1 - negative : negative; }

  Ints mask, anchors;
  YoloLayout y;
  T input_size{1}, negative{};
  Dim boxes = 0;

 private:
  In<"GTBox"> box_;
  In<"GTLabel"> label_;
  In<"GTScore"> score_;
};

template <typename Device, typename T>
class Yolov3LossKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, loss_, objectness_, match_);
    PENSTOCK_RETURN_IF_ERROR(RequireOutput(k, "ObjectnessMask"));
    PENSTOCK_RETURN_IF_ERROR(RequireOutput(k, "GTMatchMask"));
    ignore_ = static_cast<T>(k.Attr<float>("ignore_thresh"));
    scale_ = static_cast<T>(k.Attr<float>("scale_x_y"));
    return truth_.Prepare(k);
  }

  Status Run(KernelRun& k) override {
    const YoloLayout& y = truth_.y;
    const T* const x = std::as_const(k[x_]).template Data<T>();
    T* const loss = k[loss_].template Data<T>();
    T* const objectness = k[objectness_].template Data<T>();
    std::ranges::fill(k[loss_].template Span<T>(), T{0});
    for (Dim image = 0; image < y.images; ++image) {
      IgnoreOverlaps(k, x, image, objectness);
      for (Dim t = 0; t < truth_.boxes; ++t) AddTruth(k, x, image, t, objectness, loss[image]);
      for (Dim anchor = 0; anchor < y.anchors; ++anchor) {
        const T* const sure = x + y.At(image, anchor, 4);
        const T* const mask = objectness + (image * y.anchors + anchor) * y.cells();
        for (Dim cell = 0; cell < y.cells(); ++cell) {
          if (mask[cell] > T(1e-5)) {
            loss[image] += LogisticEntropy(sure[cell], T{1}) * mask[cell];
          } else if (mask[cell] > T(-0.5)) {
            loss[image] += LogisticEntropy(sure[cell], T{0});
          }
        }
      }
    }
    return OkStatus();
  }

 private:
  // Writes -1 for boxes that overlap a ground-truth box enough to be ignored, 0 for the others.
  void IgnoreOverlaps(KernelRun& k, const T* x, Dim image, T* objectness) const {
    const YoloLayout& y = truth_.y;
    const T less = (scale_ - 1) / 2, grid = static_cast<T>(y.height);
    for (Dim anchor = 0; anchor < y.anchors; ++anchor) {
      const std::size_t a = 2 * static_cast<std::size_t>(truth_.mask[static_cast<std::size_t>(anchor)]);
      for (Dim cell = 0; cell < y.cells(); ++cell) {
        const T* const n = x + y.At(image, anchor, 0) + cell;
        const YoloBoxParts<T> box = {
            (static_cast<T>(cell % y.width) + Logistic(n[0]) * scale_ - less) / grid,
            (static_cast<T>(cell / y.width) + Logistic(n[y.cells()]) * scale_ - less) / grid,
            std::exp(n[2 * y.cells()]) * static_cast<T>(truth_.anchors[a]) / truth_.input_size,
            std::exp(n[3 * y.cells()]) * static_cast<T>(truth_.anchors[a + 1]) / truth_.input_size};
        T most{};
        for (Dim t = 0; t < truth_.boxes; ++t) {
          const YoloBoxParts<T> truth = truth_.Box(k, image, t);
          if (truth_.IsThere(truth)) most = std::max(most, OverlapOf(box, truth));
        }
        objectness[(image * y.anchors + anchor) * y.cells() + cell] = most > ignore_ ? T{-1} : T{0};
      }
    }
  }

  void AddTruth(KernelRun& k, const T* x, Dim image, Dim t, T* objectness, T& loss) {
    const YoloLayout& y = truth_.y;
    const YoloBoxParts<T> box = truth_.Box(k, image, t);
    std::int32_t& match = k[match_].template Data<std::int32_t>()[image * truth_.boxes + t];
    match = -1;
    const Dim cell = truth_.IsThere(box) ? truth_.CellOf(box) : -1;
    if (cell < 0) return;
    const Dim best = truth_.BestAnchor(box);
    const auto place = std::ranges::find(truth_.mask, static_cast<std::int32_t>(best));
    if (place == truth_.mask.end()) return;
    match = static_cast<std::int32_t>(place - truth_.mask.begin());
    const T score = truth_.Score(k, image, t);
    const auto aims = truth_.AimsOf(box, cell, best, score);
    const T* const n = x + y.At(image, match, 0) + cell;
    for (Dim i = 0; i < 4; ++i) {
      const T number = n[i * y.cells()], aim = aims.at[i];
      loss += (i < 2 ? LogisticEntropy(number, aim) : std::abs(aim - number)) * aims.weight;
    }
    objectness[(image * y.anchors + match) * y.cells() + cell] = score;
    const Dim label = truth_.Label(k, image, t);
    for (Dim c = 0; c < y.classes; ++c)
      loss += LogisticEntropy(n[(5 + c) * y.cells()], truth_.ClassAim(c, label)) * score;
  }

  In<"X"> x_;
  Out<"Loss"> loss_;
  Out<"ObjectnessMask"> objectness_;
  Out<"GTMatchMask"> match_;
  T ignore_{}, scale_{1};
  YoloTruth<T> truth_;
};

template <typename Device, typename T>
class Yolov3LossGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, objectness_, match_, dloss_, dx_);
    for (const char* slot : {"GTBox@GRAD", "GTLabel@GRAD", "GTScore@GRAD"}) {
      if (k.Output(slot)) zeros_.push_back(k.Output(slot));
    }
    PENSTOCK_RETURN_IF_ERROR(truth_.Prepare(k));
    const YoloLayout& y = truth_.y;
    PENSTOCK_RETURN_IF_ERROR(RequireType(k, "Loss@GRAD", k[x_].dtype));
    PENSTOCK_RETURN_IF_ERROR(RequireType(k, "ObjectnessMask", k[x_].dtype));
    PENSTOCK_RETURN_IF_ERROR(RequireType(k, "GTMatchMask", DType::kInt32));
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Loss@GRAD", {y.images}));
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "GTMatchMask", {y.images, truth_.boxes}));
    return RequireShape(k, "ObjectnessMask", {y.images, y.anchors, y.height, y.width});
  }

  Status Run(KernelRun& k) override {
    for (const Operand& zero : zeros_) std::fill_n(k[zero].raw(), k[zero].bytes(), std::byte{0});
    if (!dx_) return OkStatus();
    const YoloLayout& y = truth_.y;
    const T* const x = std::as_const(k[x_]).template Data<T>();
    const T* const dloss = std::as_const(k[dloss_]).template Data<T>();
    const T* mask = std::as_const(k[objectness_]).template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    std::ranges::fill(k[dx_].template Span<T>(), T{0});
    for (Dim image = 0; image < y.images; ++image) {
      for (Dim t = 0; t < truth_.boxes; ++t)
        PENSTOCK_RETURN_IF_ERROR(AddTruth(k, x, image, t, dloss[image], dx));
      for (Dim anchor = 0; anchor < y.anchors; ++anchor) {
        const Dim at = y.At(image, anchor, 4);
        for (Dim cell = 0; cell < y.cells(); ++cell, ++mask) {
          if (*mask > T(1e-5)) {
            dx[at + cell] = LogisticEntropyGrad(x[at + cell], T{1}) * *mask * dloss[image];
          } else if (*mask > T(-0.5)) {
            dx[at + cell] = LogisticEntropyGrad(x[at + cell], T{0}) * dloss[image];
          }
        }
      }
    }
    return OkStatus();
  }

 private:
  Status AddTruth(KernelRun& k, const T* x, Dim image, Dim t, T dloss, T* dx) const {
    const YoloLayout& y = truth_.y;
    const std::int32_t match =
        std::as_const(k[match_]).template Data<std::int32_t>()[image * truth_.boxes + t];
    if (match < 0) return OkStatus();
    const YoloBoxParts<T> box = truth_.Box(k, image, t);
    const Dim cell = truth_.CellOf(box);
    if (match >= y.anchors || cell < 0)
      return InvalidArgument("E-op-index", "yolov3_loss_grad: GTMatchMask holds ", match, " for a box at (",
                             box.x, ", ", box.y, "); there are ", y.anchors, " anchors");
    const T score = truth_.Score(k, image, t);
    const auto aims = truth_.AimsOf(box, cell, truth_.mask[static_cast<std::size_t>(match)], score);
    const Dim at = y.At(image, match, 0) + cell;
    for (Dim i = 0; i < 4; ++i) {
      const T number = x[at + i * y.cells()], aim = aims.at[i];
      const T slope = i < 2 ? LogisticEntropyGrad(number, aim) : number > aim ? T{1} : T{-1};
      dx[at + i * y.cells()] += slope * aims.weight * dloss;
    }
    const Dim label = truth_.Label(k, image, t);
    for (Dim c = 0; c < y.classes; ++c) {
      const Dim of_class = at + (5 + c) * y.cells();
      dx[of_class] += LogisticEntropyGrad(x[of_class], truth_.ClassAim(c, label)) * score * dloss;
    }
    return OkStatus();
  }

  In<"X"> x_;
  In<"ObjectnessMask"> objectness_;
  In<"GTMatchMask"> match_;
  In<"Loss@GRAD"> dloss_;
  Out<"X@GRAD"> dx_;
  std::vector<Operand> zeros_;
  YoloTruth<T> truth_;
};

}  // namespace

void RegisterYolov3Loss(OpRegistry& ops) {
  ops.Add("yolov3_loss")
      .Doc("The loss of a YOLOv3 head.", kDoc)
      .Input("X", "[images, anchors * (5 + class_num), height, width], height and width equal", Floats())
      .Input("GTBox", "[images, boxes, 4]: x, y, width, height", SameTypeAs("X"))
      .Input("GTLabel", "[images, boxes], the classes of the boxes", Only(DType::kInt32))
      .Input("GTScore", "[images, boxes], the weights of the boxes", SameTypeAs("X"), Optional())
      .Output("Loss", "[images]", SameTypeAs("X"), Apart())
      .Output("ObjectnessMask", "[images, anchors, height, width]", SameTypeAs("X"), Intermediate() | Apart())
      .Output("GTMatchMask", "[images, boxes]", Only(DType::kInt32), Intermediate() | Apart())
      .RequiredAttr("class_num", AttrKind::kInt, "the number of classes", Between(1, 1 << 20))
      .Attr("anchors", Ints(), "the width and height of each anchor", Between(1, 1 << 20))
      .Attr("anchor_mask", Ints(), "the indices of the anchors that X has")
      .Attr("downsample_ratio", 32, "the number of pixels of the network's input per cell",
            Between(1, 1 << 20))
      .Attr("ignore_thresh", 0.7f,
            "a predicted box with a larger overlap with a ground-truth box is not trained as background")
      .Attr("use_label_smooth", true, "whether to smooth the class targets")
      .Attr("scale_x_y", 1.0f, "scales the offsets of centres within their cells")
      .Nan(
          "a ground-truth box with a NaN is ignored; an element of X that is NaN makes the loss NaN if it "
          "contributes to it.")
      .InferShape(InferYolov3Loss)
      .KernelTypeFrom("X")
      .Kernel<Cpu, Yolov3LossKernel, float, double>()
      .Grad({.reads = {"X", "GTBox", "GTLabel", "GTScore"},
             .reads_outputs = {"ObjectnessMask", "GTMatchMask"},
             .yields = {"X", "GTBox", "GTLabel", "GTScore"},
             .apart = {"X", "GTBox", "GTLabel", "GTScore"}})
      .GradKernel<Cpu, Yolov3LossGradKernel, float, double>()
      .GradDef()
      .KernelTypeFrom("X");
}

}  // namespace penstock
