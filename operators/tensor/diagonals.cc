// eye, diag, diag_embed, trace, tril_triu: diagonals and triangles of matrices.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/element_type.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kEyeDoc[] = R"(
Out has num_rows rows and num_columns columns; it is 1 where the row index equals the column index, and 0
elsewhere. num_columns defaults to num_rows (-1).)";

constexpr char kDiagDoc[] = R"(
Out[i, i] = Diagonal[i]; all other elements are 0.)";

constexpr char kDiagEmbedDoc[] = R"(
The last dimension of Input becomes a diagonal of the matrices in dimensions dim1 and dim2 of Out, `offset`
above the main diagonal; all other elements are 0. Negative dimensions count from the end of the shape of
Out.)";

constexpr char kTraceDoc[] = R"(
Out is the sum of a diagonal of the matrices in dimensions dim1 and dim2 of Input, `offset` above the main
diagonal. Negative dimensions count from the end.)";

constexpr char kTrilTriuDoc[] = R"(
The last two dimensions of X are matrices. With `lower`, Out keeps the elements on and below the diagonal that
is `diagonal` above the main one, otherwise those on and above it. All other elements are 0.)";

// The positions of a diagonal of the matrices in two dimensions of `matrices`.
class Diagonal {
 public:
  // Returns nullopt if `dim1` and `dim2` are two different dimensions, otherwise what is wrong.
  std::optional<std::string> Lay(const Shape& matrices, int dim1, int dim2, int offset) {
    const int rank = matrices.rank();
    for (const int dim : {dim1, dim2}) {
      if (dim < -rank || dim >= rank) return StrCat("dim (", dim, ") must be in [", -rank, ", ", rank, ")");
    }
    row_ = dim1 < 0 ? dim1 + rank : dim1;
    column_ = dim2 < 0 ? dim2 + rank : dim2;
    if (row_ == column_) return StrCat("dim1 (", dim1, ") and dim2 (", dim2, ") must name two extents");
    shape_ = matrices;
    offset_ = offset;
    const Dim rows = matrices[row_], columns = matrices[column_];
    const Dim below = std::max<Dim>(0, -Dim{offset}), above = std::max<Dim>(0, Dim{offset});
    length_ = std::max<Dim>(0, std::min(rows - below, columns - above));
    others_ = Shape();
    for (int i = 0; i < rank; ++i) {
      if (i != row_ && i != column_) others_.Append(shape_[i]);
    }
    return std::nullopt;
  }
  Dim length() const { return length_; }
  // The dimensions other than those of the matrices.
  const Shape& Others() const { return others_; }
  // Calls visit(index of the matrix, position in the diagonal, element) for each element of each diagonal.
  template <typename Visit>
  void ForEach(Visit visit) const {
    const Dim matrices = Others().Count();
    const Dim step = StrideOf(row_) + StrideOf(column_);
    const Dim first = offset_ < 0 ? -Dim{offset_} * StrideOf(row_) : Dim{offset_} * StrideOf(column_);
    for (Dim m = 0; m < matrices; ++m) {
      const Dim begin = BeginOf(m) + first;
      for (Dim i = 0; i < length_; ++i) visit(m, i, begin + i * step);
    }
  }

 private:
  Dim StrideOf(int extent) const { return shape_.Product(extent + 1, shape_.rank()); }
  Dim BeginOf(Dim matrix) const {
    Dim begin = 0;
    for (int i = shape_.rank() - 1; i >= 0; --i) {
      if (i == row_ || i == column_) continue;
      begin += matrix % shape_[i] * StrideOf(i);
      matrix /= shape_[i];
    }
    return begin;
  }
  Shape shape_, others_;
  int row_ = 0, column_ = 1, offset_ = 0;
  Dim length_ = 0;
};

Status InferEye(InferContext& c) {
  const auto rows = c.Attr<std::int64_t>("num_rows"), columns = c.Attr<std::int64_t>("num_columns");
  return c.SetShape("Out", {rows, columns < 0 ? rows : columns});
}

template <typename Device, typename T>
class EyeKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(out_);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    std::ranges::fill(k[out_].template Span<T>(), T{0});
    T* const out = k[out_].template Data<T>();
    const Dim rows = k[out_].shape()[0], columns = k[out_].shape()[1];
    for (Dim i = 0; i < std::min(rows, columns); ++i) out[i * columns + i] = T{1};
    return OkStatus();
  }

 private:
  Out<"Out"> out_;
};

Status InferDiag(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Diagonal", 1));
  return c.SetShape("Out", {c.ShapeOf("Diagonal")[0], c.ShapeOf("Diagonal")[0]});
}

// Returns the shape of the matrices whose diagonals are the rows of Input, or an error.
template <typename Context>
Result<Shape> EmbeddedShape(const Context& c, const Shape& input) {
  const int rank = input.rank() + 1, offset = c.template Attr<int>("offset");
  if (input.rank() == 0) return c.Error("Input must have rank 1 or more");
  int dims[2] = {c.template Attr<int>("dim1"), c.template Attr<int>("dim2")};
  for (int& dim : dims) {
    if (dim < -rank || dim >= rank) return c.Error("dim (", dim, ") must be in [", -rank, ", ", rank, ")");
    if (dim < 0) dim += rank;
  }
  if (dims[0] == dims[1])
    return c.Error("dim1 and dim2 must name two extents of Out, not ", dims[0], " twice");
  const Dim last = input[input.rank() - 1];
  const Dim size = last == kUnknownDim ? last : last + std::abs(Dim{offset});
  Shape out;
  for (int i = 0, from = 0; i < rank; ++i) out.Append(i == dims[0] || i == dims[1] ? size : input[from++]);
  return out;
}

Status InferDiagEmbed(InferContext& c) {
  PENSTOCK_ASSIGN_OR_RETURN(const Shape out, EmbeddedShape(c, c.ShapeOf("Input")));
  return c.SetShape("Out", out);
}

// The kernel of diag and diag_embed.
class LayDiagonals : public Kernel {
 public:
  Status PrepareLay(KernelSetup& k, const char* from, int dim1, int dim2, int offset) {
    from_ = k.Input(from);
    k.Bind(out_);
    if (const auto mistake = diagonal_.Lay(k[out_].shape, dim1, dim2, offset)) return k.Error(*mistake);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (k[out_].bytes() == 0) return OkStatus();
    const std::size_t size = SizeOf(k[from_].dtype());
    std::memset(k[out_].raw(), 0, k[out_].bytes());
    const std::byte* const from = k[from_].raw();
    std::byte* const out = k[out_].raw();
    diagonal_.ForEach([&](Dim m, Dim i, Dim at) {
      std::memcpy(out + static_cast<std::size_t>(at) * size,
                  from + static_cast<std::size_t>(m * diagonal_.length() + i) * size, size);
    });
    return OkStatus();
  }

 private:
  Out<"Out"> out_;
  Operand from_;
  Diagonal diagonal_;
};

class DiagKernel : public LayDiagonals {
 public:
  Status Prepare(KernelSetup& k) override { return PrepareLay(k, "Diagonal", 0, 1, 0); }
};

class DiagEmbedKernel : public LayDiagonals {
 public:
  Status Prepare(KernelSetup& k) override {
    return PrepareLay(k, "Input", k.Attr<int>("dim1"), k.Attr<int>("dim2"), k.Attr<int>("offset"));
  }
};

Status InferTrace(InferContext& c) {
  Diagonal diagonal;
  const auto mistake =
      diagonal.Lay(c.ShapeOf("Input"), c.Attr<int>("dim1"), c.Attr<int>("dim2"), c.Attr<int>("offset"));
  if (mistake) return c.Error(*mistake);
  Shape out = diagonal.Others();
  if (out.rank() == 0) out.Append(1);
  return c.SetShape("Out", out);
}

template <typename Device, typename T>
class TraceKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(input_, out_);
    const auto mistake =
        diagonal_.Lay(k[input_].shape, k.Attr<int>("dim1"), k.Attr<int>("dim2"), k.Attr<int>("offset"));
    return mistake ? k.Error(*mistake) : OkStatus();
  }
  Status Run(KernelRun& k) override {
    std::ranges::fill(k[out_].template Span<T>(), T{0});
    const T* const input = k[input_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    diagonal_.ForEach([&](Dim m, Dim, Dim at) { out[m] += input[at]; });
    return OkStatus();
  }

 private:
  In<"Input"> input_;
  Out<"Out"> out_;
  Diagonal diagonal_;
};

template <typename Device, typename T>
class TraceGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_, dinput_);
    const auto mistake = diagonal_.Lay(k.Input("Input").shape, k.Attr<int>("dim1"), k.Attr<int>("dim2"),
                                       k.Attr<int>("offset"));
    if (mistake) return k.Error(*mistake);
    return RequireCount(k, "Out@GRAD", diagonal_.Others().Count());
  }
  Status Run(KernelRun& k) override {
    if (!dinput_) return OkStatus();
    std::ranges::fill(k[dinput_].template Span<T>(), T{0});
    const T* const dout = k[dout_].template Data<T>();
    T* const dinput = k[dinput_].template Data<T>();
    diagonal_.ForEach([&](Dim m, Dim, Dim at) { dinput[at] = dout[m]; });
    return OkStatus();
  }

 private:
  In<"Out@GRAD"> dout_;
  Out<"Input@GRAD"> dinput_;
  Diagonal diagonal_;
};

Status InferTrilTriu(InferContext& c, const char* from, const char* to) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove(from, 1));
  return c.ShareAll(from, to);
}

// Copies the triangle of X to Out, or that of Out's gradient to X's.
class KeepTriangle : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    const bool is_grad = static_cast<bool>(k.Input("Out@GRAD"));
    from_ = k.Input(is_grad ? "Out@GRAD" : "X");
    to_ = k.Output(is_grad ? "X@GRAD" : "Out");
    diagonal_ = k.Attr<int>("diagonal");
    lower_ = k.Attr<bool>("lower");
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (!to_ || k[to_].bytes() == 0) return OkStatus();
    const Shape& shape = k[from_].shape();
    const Dim rows = shape[shape.rank() - 2], columns = shape[shape.rank() - 1];
    const std::size_t size = SizeOf(k[from_].dtype()), row_bytes = static_cast<std::size_t>(columns) * size;
    const std::byte* from = k[from_].raw();
    std::byte* to = k[to_].raw();
    const Dim all = shape.Count() / columns;
    for (Dim r = 0; r < all; ++r, from += row_bytes, to += row_bytes) {
      // Keeps columns [begin, end).
      const Dim border = r % rows + diagonal_;
      const Dim begin = lower_ ? 0 : std::clamp<Dim>(border, 0, columns);
      const Dim end = lower_ ? std::clamp<Dim>(border + 1, 0, columns) : columns;
      const std::size_t first = static_cast<std::size_t>(begin) * size,
                        last = static_cast<std::size_t>(end) * size;
      if (from != to) std::memcpy(to + first, from + first, last - first);
      std::memset(to, 0, first);
      std::memset(to + last, 0, row_bytes - last);
    }
    return OkStatus();
  }

 private:
  Operand from_, to_;
  Dim diagonal_ = 0;
  bool lower_ = true;
};

}  // namespace

void RegisterDiagonals(OpRegistry& ops) {
  ops.Add("eye")
      .Doc("The identity matrix, of any number of rows and columns.", kEyeDoc)
      .Output("Out", "[num_rows, num_columns]", TypeFromAttr("dtype"))
      .Attr("dtype", static_cast<std::int32_t>(DType::kFp32), "the element type of Out, numbered as in Fluid")
      .RequiredAttr("num_rows", AttrKind::kLong, "the number of rows", AtLeast(0))
      .Attr("num_columns", std::int64_t{-1}, "the number of columns; -1: as many as rows", AtLeast(-1))
      .InferShape(InferEye)
      .Kernel<Cpu, EyeKernel, float, double, std::int32_t, std::int64_t>()
      .NoGrad();
  ops.Add("diag")
      .Doc("A square matrix with the given diagonal.", kDiagDoc)
      .Input("Diagonal", "[n]", AnyType())
      .Output("Out", "[n, n]", SameTypeAs("Diagonal"), Apart())
      .InferShape(InferDiag)
      .KernelForAnyType<Cpu, DiagKernel>()
      .NoGrad();
  ops.Add("diag_embed")
      .Doc("Matrices with the given diagonals.", kDiagEmbedDoc)
      .Input("Input", "of rank 1 or more; the last dimension holds the diagonals", AnyType())
      .Output("Out", "the dimensions of Input except the last, and those of the matrices",
              SameTypeAs("Input"), Apart())
      .Attr("offset", 0, "how far the diagonal is above the main diagonal")
      .Attr("dim1", -2, "the dimension of the rows in Out")
      .Attr("dim2", -1, "the dimension of the columns in Out")
      .InferShape(InferDiagEmbed)
      .KernelForAnyType<Cpu, DiagEmbedKernel>()
      .NoGrad();
  ops.Add("trace")
      .Doc("The sum of a diagonal of each matrix.", kTraceDoc)
      .Input("Input", "of rank 2 or more", Numbers())
      .Output("Out", "the dimensions of Input except dim1 and dim2; [1] if there are no others",
              SameTypeAs("Input"), Apart())
      .Attr("offset", 0, "how far the diagonal is above the main diagonal")
      .Attr("dim1", -2, "the dimension of the rows in Input")
      .Attr("dim2", -1, "the dimension of the columns in Input")
      .InferShape(InferTrace)
      .Kernel<Cpu, TraceKernel, float, double, std::int32_t, std::int64_t>()
      .Grad({.reads = {"Input"}, .yields = {"Input"}, .apart = {"Input"}})
      .GradKernel<Cpu, TraceGradKernel, float, double>()
      .GradDef()
      .KernelTypeFrom("Out@GRAD");
  ops.Add("tril_triu")
      .Doc("The lower or the upper triangle of each matrix.", kTrilTriuDoc)
      .Input("X", "of rank 2 or more", AnyType())
      .Output("Out", "shaped like X", SameTypeAs("X"))
      .Attr("diagonal", 0, "how far the boundary is above the main diagonal")
      .RequiredAttr("lower", AttrKind::kBool, "whether to keep the lower triangle")
      .InferShape([](InferContext& c) { return InferTrilTriu(c, "X", "Out"); })
      .KernelForAnyType<Cpu, KeepTriangle>()
      .Grad({.yields = {"X"}})
      .GradDef()
      .InferShape([](InferContext& c) { return InferTrilTriu(c, "Out@GRAD", "X@GRAD"); })
      .KernelForAnyType<Cpu, KeepTriangle>();
}

}  // namespace penstock
