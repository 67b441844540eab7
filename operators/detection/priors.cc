// prior_box, density_prior_box, anchor_generator: prior boxes for each cell of a feature map.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/between.h"
#include "operators/common/fluid_attrs.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Places the same boxes around the centre of each cell of Input, as (x1, y1, x2, y2). Variances repeats
`variances` for each box.

prior_box: the centre is (x + offset) * step; a step of 0 means the size of the image divided by the size of
the feature map. Each of min_sizes has a box for each of aspect_ratios (ratio 1 first, duplicates removed,
with its reciprocal if flip), of width size * sqrt(ratio) and height size / sqrt(ratio). With max_sizes it
also has a square of side sqrt(min * max), which comes second if min_max_aspect_ratios_order is set. Boxes are
divided by the size of the image and, with clip, clipped to [0, 1].

density_prior_box: the centres are the same. Each combination of fixed_sizes and fixed_ratios has
density * density boxes of that size, spaced evenly over a square whose side is the mean of the two steps,
rounded down. x1 and y1 are at least 0, x2 and y2 at most 1. With flatten_to_2d both outputs are matrices.

anchor_generator: the centre is x * stride + offset * (stride - 1). Each combination of aspect_ratios (height
divided by width) and anchor_sizes has a box of area size * size, up to rounding of its width and height.
Boxes are in pixels.

Liu et al.: "SSD: single shot multibox detector", ECCV 2016. Ren, He, Girshick, Sun: "Faster R-CNN", NIPS
2015.)";

using Floats32 = std::vector<float>;

Status RequireVariances(const InferContext& c) {
  const std::size_t count = c.Attr<Floats32>("variances").size();
  return count == 4 ? OkStatus() : c.Error("variances must have 4 values, not ", count);
}

Status SetPriors(InferContext& c, const char* boxes, const Shape& shape) {
  PENSTOCK_RETURN_IF_ERROR(c.SetShape(boxes, shape));
  return c.SetShape("Variances", shape);
}

Floats32 ExpandedRatios(const Floats32& given, bool flip) {
  Floats32 ratios = {1.0f};
  for (const float ratio : given) {
    if (std::ranges::any_of(ratios, [ratio](float known) { return std::abs(ratio - known) < 1e-6f; }))
      continue;
    ratios.push_back(ratio);
    if (flip) ratios.push_back(1.0f / ratio);
  }
  return ratios;
}

template <typename Context>
Dim PriorsOfCell(const Context& c) {
  const Dim ratios = static_cast<Dim>(
      ExpandedRatios(c.template Attr<Floats32>("aspect_ratios"), c.template Attr<bool>("flip")).size());
  return ratios * static_cast<Dim>(c.template Attr<Floats32>("min_sizes").size()) +
         static_cast<Dim>(c.template Attr<Floats32>("max_sizes").size());
}

Status InferPriorBox(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Input", 4));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Image", 4));
  PENSTOCK_RETURN_IF_ERROR(RequireVariances(c));
  const Floats32 mins = c.Attr<Floats32>("min_sizes"), maxs = c.Attr<Floats32>("max_sizes");
  if (!maxs.empty() && maxs.size() != mins.size())
    return c.Error("max_sizes must have as many values as min_sizes (", mins.size(), "), not ", maxs.size());
  for (std::size_t i = 0; i < maxs.size(); ++i) {
    if (!(maxs[i] > mins[i]))
      return c.Error("max_sizes holds ", maxs[i], "; it must be above the value in min_sizes, ", mins[i]);
  }
  const Shape& input = c.ShapeOf("Input");
  return SetPriors(c, "Boxes", {input[2], input[3], PriorsOfCell(c), 4});
}

Status InferDensityPriorBox(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Input", 4));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Image", 4));
  PENSTOCK_RETURN_IF_ERROR(RequireVariances(c));
  const auto densities = c.Attr<std::vector<std::int32_t>>("densities");
  if (densities.size() != c.Attr<Floats32>("fixed_sizes").size())
    return c.Error("densities must have as many values as fixed_sizes (",
                   c.Attr<Floats32>("fixed_sizes").size(), "), not ", densities.size());
  Dim priors = 0;
  for (const Dim density : densities)
    priors += density * density * static_cast<Dim>(c.Attr<Floats32>("fixed_ratios").size());
  const Shape& input = c.ShapeOf("Input");
  if (!c.Attr<bool>("flatten_to_2d")) return SetPriors(c, "Boxes", {input[2], input[3], priors, 4});
  const bool known = input[2] != kUnknownDim && input[3] != kUnknownDim;
  return SetPriors(c, "Boxes", {known ? input[2] * input[3] * priors : kUnknownDim, 4});
}

Status InferAnchorGenerator(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Input", 4));
  PENSTOCK_RETURN_IF_ERROR(RequireVariances(c));
  if (c.Attr<Floats32>("stride").size() != 2)
    return c.Error("stride must have 2 values, not ", c.Attr<Floats32>("stride").size());
  const Dim anchors = static_cast<Dim>(c.Attr<Floats32>("anchor_sizes").size()) *
                      static_cast<Dim>(c.Attr<Floats32>("aspect_ratios").size());
  const Shape& input = c.ShapeOf("Input");
  return SetPriors(c, "Anchors", {input[2], input[3], anchors, 4});
}

// What the kernels share: the cells and the position in the output.
template <typename T>
class PriorKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    boxes_ = k.Output(k.Output("Boxes") ? "Boxes" : "Anchors");
    k.Bind(variances_);
    const Shape& input = k.Input("Input").shape;
    high_ = input[2];
    wide_ = input[3];
    values_ = k.Attr<Floats32>("variances");
    offset_ = static_cast<T>(k.Attr<float>("offset"));
    if (const Argument& image = k.Input("Image")) {
      image_wide_ = static_cast<T>(image.shape[3]);
      image_high_ = static_cast<T>(image.shape[2]);
      step_x_ = static_cast<T>(k.Attr<float>("step_w"));
      step_y_ = static_cast<T>(k.Attr<float>("step_h"));
      clips_ = k.Attr<bool>("clip");
      if (step_x_ == 0 || step_y_ == 0) {
        step_x_ = image_wide_ / static_cast<T>(wide_);
        step_y_ = image_high_ / static_cast<T>(high_);
      }
    }
    return PrepareBoxes(k);
  }
  Status Run(KernelRun& k) override {
    T* box = boxes_ ? k[boxes_].template Data<T>() : nullptr;
    for (Dim y = 0; box != nullptr && y < high_; ++y) {
      for (Dim x = 0; x < wide_; ++x) AddBoxes(x, y, box);
    }
    if (clips_ && boxes_) {
      for (T& value : k[boxes_].template Span<T>()) value = std::clamp(value, T{0}, T{1});
    }
    if (!variances_) return OkStatus();
    const auto variances = k[variances_].template Span<T>();
    for (std::size_t i = 0; i < variances.size(); ++i) variances[i] = static_cast<T>(values_[i % 4]);
    return OkStatus();
  }

 protected:
  virtual Status PrepareBoxes(KernelSetup& k) = 0;
  // Writes the boxes of a cell and advances `box`.
  virtual void AddBoxes(Dim x, Dim y, T*& box) const = 0;
  // Returns a box around a centre, divided by the size of the image.
  void AddBox(T x, T y, T half_width, T half_height, T*& box) const {
    *box++ = (x - half_width) / image_wide_;
    *box++ = (y - half_height) / image_high_;
    *box++ = (x + half_width) / image_wide_;
    *box++ = (y + half_height) / image_high_;
  }

  Dim high_ = 0, wide_ = 0;
  T offset_{}, step_x_{1}, step_y_{1}, image_wide_{1}, image_high_{1};

 private:
  Out<"Variances"> variances_;
  Operand boxes_;
  Floats32 values_;
  bool clips_ = false;
};

template <typename Device, typename T>
class PriorBoxKernel : public PriorKernel<T> {
  Status PrepareBoxes(KernelSetup& k) override {
    mins_ = k.Attr<Floats32>("min_sizes");
    maxs_ = k.Attr<Floats32>("max_sizes");
    ratios_ = ExpandedRatios(k.Attr<Floats32>("aspect_ratios"), k.Attr<bool>("flip"));
    square_second_ = k.Attr<bool>("min_max_aspect_ratios_order");
    return OkStatus();
  }
  void AddBoxes(Dim column, Dim row, T*& box) const override {
    const T x = (static_cast<T>(column) + this->offset_) * this->step_x_;
    const T y = (static_cast<T>(row) + this->offset_) * this->step_y_;
    for (std::size_t s = 0; s < mins_.size(); ++s) {
      const T size = static_cast<T>(mins_[s]);
      const auto add_square = [&] {
        if (maxs_.empty()) return;
        const T half = std::sqrt(size * static_cast<T>(maxs_[s])) / 2;
        this->AddBox(x, y, half, half, box);
      };
      for (std::size_t r = 0; r < ratios_.size(); ++r) {  // 1 comes first
        const T root = static_cast<T>(std::sqrt(ratios_[r]));
        this->AddBox(x, y, size * root / 2, size / root / 2, box);
        if (r == 0 && square_second_) add_square();
      }
      if (!square_second_) add_square();
    }
  }
  Floats32 mins_, maxs_, ratios_;
  bool square_second_ = false;
};

template <typename Device, typename T>
class DensityPriorBoxKernel : public PriorKernel<T> {
  Status PrepareBoxes(KernelSetup& k) override {
    sizes_ = k.Attr<Floats32>("fixed_sizes");
    ratios_ = k.Attr<Floats32>("fixed_ratios");
    densities_ = k.Attr<std::vector<std::int32_t>>("densities");
    const double mean = (static_cast<double>(this->step_x_) + static_cast<double>(this->step_y_)) / 2;
    if (!(std::abs(mean) < 1e9)) return k.Error("a mean step of ", mean, " is too large");
    step_ = static_cast<int>(mean);
    return OkStatus();
  }
  void AddBoxes(Dim column, Dim row, T*& box) const override {
    const T x = (static_cast<T>(column) + this->offset_) * this->step_x_;
    const T y = (static_cast<T>(row) + this->offset_) * this->step_y_;
    for (std::size_t s = 0; s < sizes_.size(); ++s) {
      const int density = densities_[s], shift = step_ / density;
      const T first = static_cast<T>(static_cast<double>(shift) / 2 - static_cast<double>(step_) / 2);
      for (const float ratio : ratios_) {
        const T root = static_cast<T>(std::sqrt(ratio)), size = static_cast<T>(sizes_[s]);
        for (int i = 0; i < density * density; ++i) {
          T* const begin = box;
          this->AddBox(x + first + static_cast<T>(i % density * shift),
                       y + first + static_cast<T>(i / density * shift), size * root / 2, size / root / 2,
                       box);
          for (int end = 0; end < 4; ++end)
            begin[end] = end < 2 ? std::max(begin[end], T{0}) : std::min(begin[end], T{1});
        }
      }
    }
  }
  Floats32 sizes_, ratios_;
  std::vector<std::int32_t> densities_;
  int step_ = 0;
};

template <typename Device, typename T>
class AnchorGeneratorKernel : public PriorKernel<T> {
  Status PrepareBoxes(KernelSetup& k) override {
    sizes_ = k.Attr<Floats32>("anchor_sizes");
    ratios_ = k.Attr<Floats32>("aspect_ratios");
    const Floats32 stride = k.Attr<Floats32>("stride");
    this->step_x_ = static_cast<T>(stride[0]);
    this->step_y_ = static_cast<T>(stride[1]);
    return OkStatus();
  }
  void AddBoxes(Dim column, Dim row, T*& box) const override {
    const T x = static_cast<T>(column) * this->step_x_ + this->offset_ * (this->step_x_ - 1);
    const T y = static_cast<T>(row) * this->step_y_ + this->offset_ * (this->step_y_ - 1);
    for (const float ratio : ratios_) {
      const T wide = std::round(std::sqrt(this->step_x_ * this->step_y_ / static_cast<T>(ratio)));
      const T high = std::round(wide * static_cast<T>(ratio));
      for (const float size : sizes_) {
        const T half_width = (static_cast<T>(size) / this->step_x_ * wide - 1) / 2;
        const T half_height = (static_cast<T>(size) / this->step_y_ * high - 1) / 2;
        this->AddBox(x, y, half_width, half_height, box);
      }
    }
  }
  Floats32 sizes_, ratios_;
};

OpDef& AddPriors(OpRegistry& ops, const char* type, const char* boxes, const char* summary) {
  return ops.Add(type)
      .Doc(summary, kDoc)
      .Input("Input", "the feature map, [images, channels, height, width]; only its shape is read", Floats())
      .Output(boxes, "[height, width, boxes per cell, 4]", SameTypeAs("Input"))
      .Output("Variances", "shaped like the boxes", SameTypeAs("Input"))
      .RequiredAttr("variances", AttrKind::kFloats, "the 4 values repeated for each box")
      .Attr("offset", 0.5f, "the position of the centre within its cell")
      .KernelTypeFrom("Input")
      .NoGrad();
}

OpDef& OverImages(OpDef& op) {
  return op.Input("Image", "the images, [images, channels, height, width]; only its shape is read", Floats())
      .Attr("clip", true, "whether boxes are clipped to [0, 1]")
      .Attr("step_w", 0.0f, "the width of a cell in pixels of the image", AtLeast(0))
      .Attr("step_h", 0.0f, "the height of a cell in pixels of the image", AtLeast(0));
}

}  // namespace

void RegisterPriors(OpRegistry& ops) {
  OverImages(AddPriors(ops, "prior_box", "Boxes", "Boxes of given sizes and aspect ratios around each cell."))
      .RequiredAttr("min_sizes", AttrKind::kFloats, "the sizes of the boxes", AtLeast(0))
      .Attr("max_sizes", Floats32(), "one value for each of min_sizes: adds a square of side sqrt(min * max)",
            AtLeast(0))
      .RequiredAttr("aspect_ratios", AttrKind::kFloats, "widths divided by heights", Between(1e-6, 1e6))
      .Attr("flip", true, "whether to add the reciprocals of the ratios")
      .Attr("min_max_aspect_ratios_order", false, "whether the squares of max_sizes come second")
      .Attr("use_mkldnn", false, kNoEffect)
      .Attr("use_quantizer", false, kNoEffect)
      .InferShape(InferPriorBox)
      .Kernel<Cpu, PriorBoxKernel, float, double>();
  OverImages(AddPriors(ops, "density_prior_box", "Boxes", "Boxes spaced evenly around each cell."))
      .Attr("flatten_to_2d", false, "whether the outputs are matrices with 4 columns")
      .Attr("fixed_sizes", Floats32(), "the sizes of the boxes", AtLeast(0))
      .Attr("fixed_ratios", Floats32(), "widths divided by heights", Between(1e-6, 1e6))
      .Attr("densities", std::vector<std::int32_t>(),
            "the number of boxes along a side of the square, for each size", Between(1, 1 << 8))
      .InferShape(InferDensityPriorBox)
      .Kernel<Cpu, DensityPriorBoxKernel, float, double>();
  AddPriors(ops, "anchor_generator", "Anchors",
            "Boxes of given sizes and aspect ratios around each cell, in pixels.")
      .RequiredAttr("anchor_sizes", AttrKind::kFloats, "the square roots of the areas of the boxes",
                    AtLeast(0))
      .RequiredAttr("aspect_ratios", AttrKind::kFloats, "heights divided by widths", Between(1e-6, 1e6))
      .Attr("stride", Floats32{16.0f, 16.0f}, "width and height of a cell in pixels", Between(1e-6, 1e9))
      .InferShape(InferAnchorGenerator)
      .Kernel<Cpu, AnchorGeneratorKernel, float, double>();
}

}  // namespace penstock
