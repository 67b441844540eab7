// sequence_slice: extracts a part of each sequence.
#include <algorithm>
#include <string>

#include "framework/op/op_registry.h"
#include "operators/common/grad_shapes.h"
#include "operators/common/lod.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Sequence s of Out holds rows Offset[s] to Offset[s] + Length[s] - 1 of sequence s of X.

X has one LoD level. A part that extends beyond its sequence is an error. The gradient of all other rows of X
is zero.)";

Status InferSequenceSlice(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 0));
  for (const char* slot : {"Offset", "Length"}) {
    const Shape& shape = c.ShapeOf(slot);
    if (shape.rank() == 0 || !Compatible(shape.RowWidth(), 1))
      return c.Error(slot, " (", shape, ") must have one element for each sequence");
  }
  c.SetLodLevel("Out", 1);
  return c.SetShape("Out", c.ShapeOf("X").WithRows(kUnknownDim));
}

// The parts that the inputs describe, checked against the sequences of X.
class Parts {
 public:
  Status Prepare(const KernelSetup& k) {
    x_.Prepare(k, "X");
    k.Bind(offset_, length_);
    if (k[offset_].dtype == DType::kInt64 && k[length_].dtype == DType::kInt64) return OkStatus();
    return k.Error("element types of Offset (", DTypeName(k[offset_].dtype), ") and Length (",
                   DTypeName(k[length_].dtype), ") must be i64");
  }
  const SequenceInput& x() const { return x_; }

  Status Find(KernelRun& k) {
    PENSTOCK_ASSIGN_OR_RETURN(const LoD* const lod, x_.Levels(k, 1, 1));
    offsets_ = Offsets(lod->front());
    begins_ = k[offset_].Data<std::int64_t>();
    lengths_ = k[length_].Data<std::int64_t>();
    if (k[offset_].count() != count() || k[length_].count() != count()) {
      return LodError(x_.what(), " has ", count(), " sequences; Offset has ", k[offset_].count(),
                      " elements and Length ", k[length_].count(), "; the numbers must be equal");
    }
    rows_ = 0;
    for (Dim s = 0; s < count(); ++s) {
      const Dim length = offsets_.length(s);
      if (begins_[s] < 0 || lengths_[s] < 0 || begins_[s] > length || lengths_[s] > length - begins_[s]) {
        return InvalidArgument("E-op-index", x_.what(), ": sequence ", s, " has ", length, " rows; offset ",
                               begins_[s], " and length ", lengths_[s], " reach beyond it");
      }
      rows_ += lengths_[s];
    }
    return OkStatus();
  }

  Dim count() const { return offsets_.count(); }
  Dim begin(Dim s) const { return offsets_.begin(s) + begins_[s]; }  // in rows of X
  Dim length(Dim s) const { return lengths_[s]; }
  Dim rows() const { return rows_; }

 private:
  SequenceInput x_;
  In<"Offset"> offset_;
  In<"Length"> length_;
  Offsets offsets_;
  const std::int64_t* begins_ = nullptr;
  const std::int64_t* lengths_ = nullptr;
  Dim rows_ = 0;
};

template <typename Device, typename T>
class SequenceSliceKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    PENSTOCK_RETURN_IF_ERROR(parts_.Prepare(k));
    const Argument& x = k.Input("X");
    return out_.Prepare(k, "Out", x.dtype, x.shape);
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(parts_.Find(k));
    Tensor& out = out_.Make(k, parts_.rows());
    lod_.Start(1);
    const T* const x = k[parts_.x().operand()].template Data<T>();
    T* to = out.Data<T>();
    for (Dim s = 0; s < parts_.count(); ++s) {
      lod_.Add(0, parts_.length(s));
      to = std::copy_n(x + parts_.begin(s) * out_.width(), parts_.length(s) * out_.width(), to);
    }
    lod_.Set(out);
    return OkStatus();
  }

 private:
  Parts parts_;
  RowsOutput out_;
  MadeLod lod_;
};

template <typename Device, typename T>
class SequenceSliceGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    PENSTOCK_RETURN_IF_ERROR(parts_.Prepare(k));
    k.Bind(dout_, dx_);
    what_ = StrCat(k.op().type(), ": Out@GRAD");
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(parts_.Find(k));
    const Dim width = k[dx_].shape().RowWidth();
    PENSTOCK_RETURN_IF_ERROR(CheckRows(what_, k[dout_], parts_.rows(), width));
    std::ranges::fill(k[dx_].template Span<T>(), T{0});
    T* const dx = k[dx_].template Data<T>();
    const T* dout = k[dout_].template Data<T>();
    for (Dim s = 0; s < parts_.count(); ++s) {
      std::copy_n(dout, parts_.length(s) * width, dx + parts_.begin(s) * width);
      dout += parts_.length(s) * width;
    }
    return OkStatus();
  }

 private:
  Parts parts_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  std::string what_;
};

}  // namespace

void RegisterSequenceSlice(OpRegistry& ops) {
  ops.Add("sequence_slice")
      .Doc("Extracts a part of each sequence.", kDoc)
      .Input("X", "rows in sequences of one level", Numbers())
      .Input("Offset", "the first row to take from each sequence", Only(DType::kInt64))
      .Input("Length", "the number of rows to take from each sequence", Only(DType::kInt64))
      .Output("Out", "the parts", SameTypeAs("X"))
      .InferShape(InferSequenceSlice)
      .Kernel<Cpu, SequenceSliceKernel, float, double, std::int32_t, std::int64_t>()
      .Grad({.reads = {"X", "Offset", "Length"}, .yields = {"X"}, .apart = {"X"}})
      .GradKernel<Cpu, SequenceSliceGradKernel, float, double, std::int32_t, std::int64_t>()
      .GradDef()
      .InferShape(GradsWithLodUndeclared({"X"}));
}

}  // namespace penstock
