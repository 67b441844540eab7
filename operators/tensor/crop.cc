// crop, crop_tensor: extract a box from a tensor. pad_constant_like: pads a tensor to the shape of another
// one.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/float_attr.h"
#include "operators/common/int_list.h"
#include "operators/common/require_shape.h"
#include "operators/common/strided_loops.h"

namespace penstock {
namespace {

using Ints = std::vector<std::int32_t>;

constexpr int kMaxCropRank = StridedLoops::kMaxExtents;

constexpr char kCropDoc[] = R"(
Out is the box of X that begins at `offsets` and has the shape of Y or, without Y, the shape in attribute
`shape`, where -1 stands for the size of X. The offsets may come from a tensor. Outside the box, the gradient
of X is 0.)";

constexpr char kCropTensorDoc[] = R"(
Out is the box of X that begins at `offsets` and has the shape in attribute `shape`, where -1 extends to the
end of X. Both may come from tensors; the shape is then known only when the op runs. Outside the box, the
gradient of X is 0.)";

constexpr char kPadDoc[] = R"(
Out has the shape of X. Out[i, j, ...] is Y[i, j, ...] where Y has that element, and pad_value elsewhere. The
values of X are not read.)";

// A size of -1 extends from `offset` to the end of X, or is the size of X if offsets do not shift it.
Dim ExtentOf(const Op& op, Dim asked, Dim x, Dim offset) {
  if (asked >= 0 || x == kUnknownDim) return asked;
  return op.type() == "crop_tensor" ? x - offset : x;
}

// Returns nullopt if the box lies within X, as far as is known, otherwise what is wrong. No offsets: not
// known yet.
std::optional<std::string> BoxMistake(const Shape& x, const Shape& box, const Ints* offsets) {
  if (x.rank() > kMaxCropRank) return StrCat("rank of X (", x.rank(), ") must be at most ", kMaxCropRank);
  if (box.rank() != x.rank()) return StrCat("shape ", box, " must have an extent for each of X (", x, ")");
  if (offsets == nullptr) return std::nullopt;
  if (static_cast<int>(offsets->size()) != x.rank())
    return StrCat("offsets has ", offsets->size(), " entries; X (", x, ") has ", x.rank(), " extents");
  for (int i = 0; i < x.rank(); ++i) {
    const Dim offset = (*offsets)[static_cast<std::size_t>(i)];
    if (offset < 0) return StrCat("offsets holds ", offset, "; each must be at least 0");
    const bool is_known = x[i] != kUnknownDim && box[i] != kUnknownDim;
    // Beyond the end of X, no box fits: -1 then does not mean unknown; it is the remainder of X.
    if ((is_known && (box[i] < 0 || offset + box[i] > x[i])) || (x[i] != kUnknownDim && offset > x[i])) {
      return StrCat("the box at ", offset, " of extent ", box[i], " must lie in extent ", i, " of X (", x,
                    ")");
    }
  }
  return std::nullopt;
}

// The box that attribute `shape` or `asked` describes; sizes are unknown if offsets are not known.
Shape BoxOf(const Op& op, const Shape& x, const Shape& asked, const Ints* offsets) {
  Shape box = asked;
  for (int i = 0; i < std::min(box.rank(), x.rank()); ++i) {
    const bool known = offsets != nullptr && static_cast<int>(offsets->size()) > i;
    if (box[i] >= 0 || (op.type() == "crop_tensor" && !known)) continue;
    box.Set(i, ExtentOf(op, box[i], x[i], known ? (*offsets)[static_cast<std::size_t>(i)] : 0));
  }
  return box;
}

Shape ShapeFrom(const Ints& extents) { return Shape(std::vector<Dim>(extents.begin(), extents.end())); }

Status InferCrop(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  const Ints offsets = c.Attr<Ints>("offsets");
  const Ints* const known = c.HasInput("Offsets") ? nullptr : &offsets;
  const Shape asked = c.HasInput("Y") ? c.ShapeOf("Y") : ShapeFrom(c.Attr<Ints>("shape"));
  const Shape box = BoxOf(c.op(), x, asked, known);
  if (const auto mistake = BoxMistake(x, box, known)) return c.Error(*mistake);
  return c.SetShape("Out", box);
}

Status InferCropTensor(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  const Ints offsets = c.Attr<Ints>("offsets");
  const Ints* const known = IsKnownList(c, "Offsets", "OffsetsTensor") ? &offsets : nullptr;
  if (!IsKnownList(c, "Shape", "ShapeTensor")) {
    const Dim extents = ListSize(c, "Shape", "ShapeTensor");
    if (!Compatible(extents, x.rank()))
      return c.Error("shape from tensors has ", extents, " extents; X (", x, ") has ", x.rank());
    // The attribute has the extents that are given as numbers, and -1 for those that are given as tensors.
    const Ints numbers = c.Attr<Ints>("shape");
    std::vector<Dim> box(static_cast<std::size_t>(x.rank()), kUnknownDim);
    for (std::size_t i = 0; numbers.size() == box.size() && i < box.size(); ++i) {
      if (numbers[i] > 0 && !c.HasInput("Shape")) box[i] = numbers[i];
    }
    return c.SetShape("Out", Shape(std::move(box)));
  }
  const Shape box = BoxOf(c.op(), x, ShapeFrom(c.Attr<Ints>("shape")), known);
  if (const auto mistake = BoxMistake(x, box, known)) return c.Error(*mistake);
  return c.SetShape("Out", box);
}

// A box in a larger tensor: its elements in row-major order, and their positions in the whole.
class Box {
 public:
  void Lay(const Shape& box, const Shape& whole, const Ints& offsets) {
    loops_.Clear();
    first_ = 0;
    Dim stride = whole.Count();
    for (int i = 0; i < whole.rank(); ++i) {
      stride = whole[i] == 0 ? 0 : stride / whole[i];
      loops_.Add(box[i], stride);
      if (!offsets.empty()) first_ += offsets[static_cast<std::size_t>(i)] * stride;
    }
  }
  void Take(std::size_t element_bytes, const std::byte* whole, std::byte* box) const {
    loops_.Gather(element_bytes, whole + static_cast<std::size_t>(first_) * element_bytes, box);
  }
  void Put(std::size_t element_bytes, const std::byte* box, std::byte* whole) const {
    loops_.Scatter(element_bytes, box, whole + static_cast<std::size_t>(first_) * element_bytes);
  }

 private:
  StridedLoops loops_;
  Dim first_ = 0;
};

// The arguments of the kernels of crop and crop_tensor: the beginning and the size of the box.
class CropArguments {
 public:
  void Prepare(const KernelSetup& k) {
    op_ = k.op();
    x_ = k.Input("X").shape;
    offsets_.Prepare(k, "offsets", "Offsets", "OffsetsTensor");
    if (op_.type() == "crop_tensor" || op_.type() == "crop_tensor_grad") {
      extents_.Prepare(k, "shape", "Shape", "ShapeTensor");
      shape_known_ = extents_.known() && (offsets_.known() || !std::ranges::count(extents_.values(), -1));
    }
    box_ = x_;
  }
  const Shape& x() const { return x_; }
  bool shape_known() const { return shape_known_; }
  // Reads the shape given by tensors.
  Status ReadShape(KernelRun& k, Shape& box) {
    PENSTOCK_RETURN_IF_ERROR(offsets_.Read(k));
    PENSTOCK_RETURN_IF_ERROR(extents_.Read(k));
    if (static_cast<int>(extents_.values().size()) != x_.rank())
      return Wrong(StrCat("shape has ", extents_.values().size(), " extents; X (", x_, ") has ", x_.rank()));
    for (int i = 0; i < x_.rank(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      const Dim offset = at < offsets_.values().size() ? offsets_.values()[at] : 0;
      box_.Set(i, ExtentOf(op_, extents_.values()[at], x_[i], offset));
    }
    if (const auto mistake = BoxMistake(x_, box_, &offsets_.values())) return Wrong(*mistake);
    box = box_;
    return OkStatus();
  }
  // Prepares the loops over a box of that shape.
  Status Lay(KernelRun& k, const Shape& shape, Box& box) {
    PENSTOCK_RETURN_IF_ERROR(offsets_.Read(k));
    if (const auto mistake = BoxMistake(x_, shape, &offsets_.values())) return Wrong(*mistake);
    box.Lay(shape, x_, offsets_.values());
    return OkStatus();
  }

 private:
  Status Wrong(const std::string& mistake) const {
    return InvalidArgument("E-op-crop", op_.type(), ": ", mistake);
  }
  Op op_;
  Shape x_, box_;
  IntList offsets_, extents_;
  bool shape_known_ = true;
};

class CropKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    arguments_.Prepare(k);
    shape_ = k[x_].shape;
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (!arguments_.shape_known()) {
      PENSTOCK_RETURN_IF_ERROR(arguments_.ReadShape(k, shape_));
      MakeShaped(k[out_], k[x_].dtype(), shape_);
    }
    PENSTOCK_RETURN_IF_ERROR(arguments_.Lay(k, k[out_].shape(), box_));
    if (k[out_].bytes() > 0) box_.Take(SizeOf(k[x_].dtype()), k[x_].raw(), k[out_].raw());
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
  Shape shape_;
  CropArguments arguments_;
  Box box_;
};

class CropGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_, dx_);
    arguments_.Prepare(k);
    if (dx_ && k[dx_].dtype != k[dout_].dtype) return k.Error("X and Out@GRAD must have one element type");
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(arguments_.Lay(k, k[dout_].shape(), box_));
    if (k[dx_].bytes() > 0) std::memset(k[dx_].raw(), 0, k[dx_].bytes());
    if (k[dout_].bytes() > 0) box_.Put(SizeOf(k[dout_].dtype()), k[dout_].raw(), k[dx_].raw());
    return OkStatus();
  }

 private:
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  CropArguments arguments_;
  Box box_;
};

// Checks that Y fits into X, and returns it extended to the rank of X.
Status InferPadLike(InferContext& c) {
  const Shape &x = c.ShapeOf("X"), &y = c.ShapeOf("Y");
  const Ints offsets(static_cast<std::size_t>(x.rank()), 0);
  if (const auto mistake = BoxMistake(x, y, &offsets)) return c.Error("Y (", y, "): ", *mistake);
  return c.ShareAll("X", "Out");
}

template <typename Device, typename T>
class PadLikeKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(y_, out_);
    value_ = ElementFrom<T>(k.Attr<float>("pad_value"));
    box_.Lay(k[y_].shape, k[out_].shape, {});
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    std::ranges::fill(k[out_].template Span<T>(), value_);
    if (k[y_].bytes() > 0) box_.Put(sizeof(T), k[y_].raw(), k[out_].raw());
    return OkStatus();
  }

 private:
  In<"Y"> y_;
  Out<"Out"> out_;
  T value_ = 0;
  Box box_;
};

class PadLikeGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_, dy_);
    if (!dy_) return OkStatus();
    const Ints offsets(static_cast<std::size_t>(k[dout_].shape.rank()), 0);
    if (const auto mistake = BoxMistake(k[dout_].shape, k[dy_].shape, &offsets))
      return k.Error("Y of Out@GRAD: ", *mistake);
    if (k[dy_].dtype != k[dout_].dtype) return k.Error("Y and Out@GRAD must have one element type");
    box_.Lay(k[dy_].shape, k[dout_].shape, {});
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (dy_ && k[dy_].bytes() > 0) box_.Take(SizeOf(k[dout_].dtype()), k[dout_].raw(), k[dy_].raw());
    return OkStatus();
  }

 private:
  In<"Out@GRAD"> dout_;
  Out<"Y@GRAD"> dy_;
  Box box_;
};

}  // namespace

void RegisterCrop(OpRegistry& ops) {
  ops.Add("crop")
      .Doc("Extracts a box from a tensor.", kCropDoc)
      .Input("X", StrCat("rank at most ", kMaxCropRank), AnyType())
      .Input("Y", "gives the shape; its values are not read", AnyType(), Optional())
      .Input("Offsets", "the offsets; replaces the attribute", Only(DType::kInt32), Optional())
      .Output("Out", "the box", SameTypeAs("X"), Apart())
      .Attr("offsets", Ints(), "the beginning of the box in each dimension")
      .Attr("shape", Ints(), "the shape of the box, unless Y gives it", AtLeast(-1))
      .InferShape(InferCrop)
      .KernelForAnyType<Cpu, CropKernel>()
      .Grad({.reads = {"X", "Offsets"}, .yields = {"X"}, .apart = {"X"}})
      .GradDef()
      .KernelForAnyType<Cpu, CropGradKernel>();
  ops.Add("crop_tensor")
      .Doc("Extracts a box from a tensor; the shape may come from tensors.", kCropTensorDoc)
      .Input("X", StrCat("rank at most ", kMaxCropRank), AnyType())
      .Input("Shape", "the shape; replaces the attribute", Only(DType::kInt32), Optional())
      .Input("Offsets", "the offsets; replaces the attribute", Only(DType::kInt32), Optional())
      .Input("ShapeTensor", "the shape, one tensor per dimension; replaces the attribute",
             Only(DType::kInt32), Optional() | Repeated())
      .Input("OffsetsTensor", "the offsets, one tensor per dimension; replaces the attribute",
             Only(DType::kInt32), Optional() | Repeated())
      .Output("Out", "the box", SameTypeAs("X"), Apart())
      .Attr("offsets", Ints(), "the beginning of the box in each dimension")
      .Attr("shape", Ints(), "the shape of the box; 0 or -1 where it comes from a tensor", AtLeast(-1))
      .InferShape(InferCropTensor)
      .KernelForAnyType<Cpu, CropKernel>()
      .Grad({.reads = {"X", "Offsets", "OffsetsTensor"}, .yields = {"X"}, .apart = {"X"}})
      .GradDef()
      .KernelForAnyType<Cpu, CropGradKernel>();
  ops.Add("pad_constant_like")
      .Doc("Pads a tensor to the shape of another one.", kPadDoc)
      .Input("X", StrCat("gives the shape; rank at most ", kMaxCropRank), Numbers())
      .Input("Y", "at most as large as X in each dimension", SameTypeAs("X"))
      .Output("Out", "shaped like X", SameTypeAs("X"), Apart())
      .Attr("pad_value", 0.0f, "the value of the padding")
      .InferShape(InferPadLike)
      .Kernel<Cpu, PadLikeKernel, float, double, std::int32_t, std::int64_t>()
      .Grad({.reads = {"Y"}, .yields = {"Y"}, .apart = {"Y"}})
      .GradDef()
      .KernelForAnyType<Cpu, PadLikeGradKernel>();
}

}  // namespace penstock
