// transpose2, and transpose without XShape: permute the dimensions of a tensor.
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/parallel.h"
#include "operators/common/require_shape.h"
#include "operators/tensor/x_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Dimension i of Out is dimension axis[i] of X; the elements are moved accordingly.)";

constexpr int kMaxTransposeRank = 8;

// Returns null if `axis` is a permutation of 0 .. rank - 1, otherwise what is wrong.
std::optional<std::string> OrderMistake(const std::vector<std::int32_t>& axis, int rank) {
  std::vector<bool> seen(static_cast<std::size_t>(rank));
  if (static_cast<int>(axis.size()) != rank) {
    return StrCat("axis has ", axis.size(), " entries; X has ", rank, " extents");
  }
  if (rank > kMaxTransposeRank) return StrCat("rank of X (", rank, ") must be at most ", kMaxTransposeRank);
  for (const std::int32_t a : axis) {
    if (a < 0 || a >= rank || seen[static_cast<std::size_t>(a)]) {
      return StrCat("axis ", AttrToString(axis), " must name each extent of X once");
    }
    seen[static_cast<std::size_t>(a)] = true;
  }
  return std::nullopt;
}

Status InferTranspose(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  const auto axis = c.Attr<std::vector<std::int32_t>>("axis");
  if (const auto mistake = OrderMistake(axis, x.rank())) return c.Error(*mistake);
  Shape out;
  for (const std::int32_t a : axis) out.Append(x[a]);
  if (c.HasOutput("XShape")) PENSTOCK_RETURN_IF_ERROR(SetXShape(c));
  c.SetDType("Out", c.DTypeOf("X"));
  return c.SetShape("Out", out);
}

// Copies elements of one size; the permutation is fixed by Prepare.
class TransposeLoops {
 public:
  void Prepare(const Shape& from, const std::vector<std::int32_t>& axis) {
    std::array<Dim, kMaxTransposeRank> step{};
    Dim elements = 1;
    for (int i = from.rank() - 1; i >= 0; --i) {
      step[static_cast<std::size_t>(i)] = elements;
      elements *= from[i];
    }
    rank_ = axis.size();
    for (std::size_t i = 0; i < rank_; ++i) {
      extent_[i] = from[axis[i]];
      stride_[i] = step[static_cast<std::size_t>(axis[i])];
    }
    count_ = elements;
  }

  template <typename Element>
  void Move(const std::byte* from_bytes, std::byte* to_bytes) const {
    const auto* from = reinterpret_cast<const Element*>(from_bytes);
    auto* to = reinterpret_cast<Element*>(to_bytes);
    if (count_ == 0) return;
    if (rank_ == 0) {
      *to = *from;
      return;
    }
    const Dim slab = count_ / extent_[0];
    ForRows(extent_[0], kElementNs * static_cast<double>(slab), [&](Dim begin, Dim end) {
      MoveSlabs(from + begin * stride_[0], to + begin * slab, (end - begin) * slab);
    });
  }

  // Moves the next `count` elements of the result, a multiple of those with one index in its first dimension.
  template <typename Element>
  void MoveSlabs(const Element* from, Element* to, Dim count) const {
    const std::size_t last = rank_ - 1;
    if (last == 0) {
      for (Dim i = 0; i < count; ++i) to[i] = from[i * stride_[0]];
      return;
    }
    std::array<Dim, kMaxTransposeRank> at{};
    for (Dim done = 0; done < count; done += extent_[last]) {
      for (Dim i = 0; i < extent_[last]; ++i) to[i] = from[i * stride_[last]];
      to += extent_[last];
      for (std::size_t d = last; d-- > 0;) {
        from += stride_[d];
        if (++at[d] < extent_[d]) break;
        from -= stride_[d] * extent_[d];
        at[d] = 0;
      }
    }
  }

  void MoveElements(std::size_t element_bytes, const std::byte* from, std::byte* to) const {
    switch (element_bytes) {
      case 1:
        return Move<std::uint8_t>(from, to);
      case 2:
        return Move<std::uint16_t>(from, to);
      case 4:
        return Move<std::uint32_t>(from, to);
      default:
        return Move<std::uint64_t>(from, to);
    }
  }

 private:
  static constexpr double kElementNs = 0.5;

  std::size_t rank_ = 0;
  Dim count_ = 1;
  std::array<Dim, kMaxTransposeRank> extent_{},
      stride_{};  // in the order of the result; strides in the source
};

class TransposeKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(from_, to_);
    loops_.Prepare(k[from_].shape, k.Attr<std::vector<std::int32_t>>("axis"));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    loops_.MoveElements(SizeOf(k[from_].dtype()), k[from_].raw(), k[to_].raw());
    return OkStatus();
  }

 private:
  In<"X"> from_;
  Out<"Out"> to_;
  TransposeLoops loops_;
};

class TransposeGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(from_, to_);
    const auto axis = k.Attr<std::vector<std::int32_t>>("axis");
    if (const auto mistake = OrderMistake(axis, k[from_].shape.rank())) return k.Error(*mistake);
    std::vector<std::int32_t> back(axis.size());
    for (std::size_t i = 0; i < axis.size(); ++i)
      back[static_cast<std::size_t>(axis[i])] = static_cast<std::int32_t>(i);
    loops_.Prepare(k[from_].shape, back);
    return to_ ? RequireCount(k, "Out@GRAD", k[to_].shape.Count()) : OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (to_) loops_.MoveElements(SizeOf(k[from_].dtype()), k[from_].raw(), k[to_].raw());
    return OkStatus();
  }

 private:
  In<"Out@GRAD"> from_;
  Out<"X@GRAD"> to_;
  TransposeLoops loops_;
};

OpDef& DeclareTranspose(OpDef& def) {
  return def.Input("X", "rank at most 8", AnyType())
      .Output("Out", "X with its dimensions permuted", SameTypeAs("X"), Apart())
      .RequiredAttr("axis", AttrKind::kInts, "for each dimension of Out, the dimension of X")
      .Attr("use_mkldnn", false, kNoEffect)
      .Attr("data_format", "AnyLayout", kNoEffect)
      .Attr("use_quantizer", false, kNoEffect)
      .InferShape(InferTranspose)
      .KernelForAnyType<Cpu, TransposeKernel>();
}

}  // namespace

void RegisterTranspose2(OpRegistry& ops) {
  DeclareTranspose(ops.Add("transpose").Doc("transpose2 without XShape.", kDoc))
      .Grad({.reads = {"X"}, .yields = {"X"}, .shapes = {"X"}, .apart = {"X"}})
      .GradDef()
      .KernelForAnyType<Cpu, TransposeGradKernel>();
  DeclareTranspose(ops.Add("transpose2").Doc("Permutes the dimensions of a tensor.", kDoc))
      .Output("XShape", "no elements; its shape is [0] followed by that of X, for the gradient",
              SameTypeAs("X"), Intermediate())
      .Grad({.reads_outputs = {"XShape"}, .yields = {"X"}, .apart = {"X"}})
      .GradDef()
      .InferShape(InferFromXShape)
      .KernelForAnyType<Cpu, TransposeGradKernel>();
}

}  // namespace penstock
