// match_matrix_tensor: the similarities of all pairs of words of two texts, by several matrices.
#include <algorithm>
#include <string>

#include "framework/op/op_registry.h"
#include "operators/common/gemm.h"
#include "operators/common/lod.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
For each pair of sequences x of X and y of Y, and each t below dim_t, Out has the matrix x . W[:, t, :] . y'.
The matrices of a pair form one sequence of Out, stored as a column of elements. Tmp stores X . W for the
gradient.)";

Status InferMatch(InferContext& c) {
  const Shape &x = c.ShapeOf("X"), &y = c.ShapeOf("Y"), &w = c.ShapeOf("W");
  for (const char* slot : {"X", "Y"}) PENSTOCK_RETURN_IF_ERROR(c.RequireRank(slot, 2));
  if (!Compatible(w, Shape{x[1], c.Attr<int>("dim_t"), y[1]}))
    return c.Error("W (", w, ") must be [columns of X, dim_t, columns of Y], that is [", x[1], ", ",
                   c.Attr<int>("dim_t"), ", ", y[1], "]");
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Out", {kUnknownDim, 1}));
  c.SetLodLevel("Out", 1);
  const bool known = x[0] != kUnknownDim && y[1] != kUnknownDim;
  return c.SetShape("Tmp", {known ? x[0] * c.Attr<int>("dim_t") * y[1] : kUnknownDim, 1});
}

// The texts and their matrices, for both kernels.
template <typename T>
class Texts {
 public:
  Status Prepare(const KernelSetup& k) {
    x_.Prepare(k, "X");
    y_.Prepare(k, "Y");
    const Shape &x = k.Input("X").shape, &y = k.Input("Y").shape, &w = k.Input("W").shape;
    dim_t_ = k.Attr<int>("dim_t");
    if (x.rank() != 2 || y.rank() != 2 || w != Shape{x[1], dim_t_, y[1]})
      return k.Error("W (", w, ") must be [columns of X (", x, "), dim_t, columns of Y (", y, ")]");
    x_width_ = x[1];
    y_width_ = y[1];
    x_rows_ = x[0];
    return OkStatus();
  }
  Status Load(KernelRun& k) {
    PENSTOCK_ASSIGN_OR_RETURN(xs_, x_.Innermost(k));
    PENSTOCK_ASSIGN_OR_RETURN(ys_, y_.Innermost(k));
    if (xs_.count() != ys_.count())
      return LodError(y_.what(), " has ", ys_.count(), " sequences; X has ", xs_.count());
    return OkStatus();
  }
  const Operand& x() const { return x_.operand(); }
  const Operand& y() const { return y_.operand(); }
  const Offsets& xs() const { return xs_; }
  const Offsets& ys() const { return ys_; }
  Dim x_width() const { return x_width_; }
  Dim y_width() const { return y_width_; }
  Dim dim_t() const { return dim_t_; }
  Dim tmp_count() const { return x_rows_ * dim_t_ * y_width_; }
  Dim all() const {
    Dim sum = 0;
    for (Dim s = 0; s < xs_.count(); ++s) sum += xs_.length(s) * ys_.length(s) * dim_t_;
    return sum;
  }
  // Sequence s of X . W for one t; its rows are dim_t * y_width elements apart.
  template <typename Element>
  MatrixView<Element> Tmp(Element* tmp, Dim s, Dim t) const {
    const Dim stride = dim_t_ * y_width_;
    return RowMajor(tmp + xs_.begin(s) * stride + t * y_width_, xs_.length(s), y_width_, stride);
  }
  template <typename Element>
  MatrixView<Element> Y(Element* y, Dim s) const {
    return RowMajor(y + ys_.begin(s) * y_width_, ys_.length(s), y_width_);
  }

 private:
  SequenceInput x_, y_;
  Offsets xs_, ys_;
  Dim x_width_ = 0, y_width_ = 0, x_rows_ = 0, dim_t_ = 1;
};

template <typename Device, typename T>
class MatchMatrixKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(w_, tmp_);
    options_ = {.threads = k.threads()};
    PENSTOCK_RETURN_IF_ERROR(texts_.Prepare(k));
    PENSTOCK_RETURN_IF_ERROR(RequireOutput(k, "Tmp"));
    return out_.Prepare(k, "Out", DTypeOfT<T>::kValue, {0, 1});
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(texts_.Load(k));
    const Tensor& x = k[texts_.x()];
    const Dim wide = texts_.dim_t() * texts_.y_width(), rows = k[texts_.x()].shape()[0];
    T* const tmp = k[tmp_].template Data<T>();
    const T *const w = k[w_].template Data<T>(), *const y = k[texts_.y()].template Data<T>();
    PENSTOCK_RETURN_IF_ERROR(Gemm<T>(RowMajor(x.Data<T>(), rows, texts_.x_width()),
                                     RowMajor(w, texts_.x_width(), wide), RowMajor(tmp, rows, wide),
                                     options_));
    Tensor& made = out_.Make(k, texts_.all());
    T* out = made.Data<T>();
    lod_.Start(1);
    for (Dim s = 0; s < texts_.xs().count(); ++s) {
      const Dim height = texts_.xs().length(s), width = texts_.ys().length(s);
      lod_.Add(0, height * width * texts_.dim_t());
      for (Dim t = 0; t < texts_.dim_t(); ++t, out += height * width) {
        PENSTOCK_RETURN_IF_ERROR(Gemm<T>(texts_.Tmp(static_cast<const T*>(tmp), s, t),
                                         Transposed(texts_.Y(y, s)), RowMajor(out, height, width), options_));
      }
    }
    lod_.Set(made);
    return OkStatus();
  }

 private:
  In<"W"> w_;
  Out<"Tmp"> tmp_;
  GemmOptions options_;
  Texts<T> texts_;
  RowsOutput out_;
  MadeLod lod_;
};

// dTmp = dOut . y   dY = dOut' . Tmp   dX = dTmp . W'   dW = X' . dTmp
template <typename Device, typename T>
class MatchMatrixGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(w_, tmp_, dout_, dx_, dy_, dw_);
    options_ = {.threads = k.threads()};
    PENSTOCK_RETURN_IF_ERROR(texts_.Prepare(k));
    PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "Tmp", texts_.tmp_count()));
    dtmp_ = k.Workspace(static_cast<std::size_t>(texts_.tmp_count()) * sizeof(T));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(texts_.Load(k));
    if (k[dout_].count() != texts_.all())
      return InvalidArgument("E-op-match", "match_matrix_tensor_grad: Out@GRAD holds ", k[dout_].count(),
                             " elements; there must be ", texts_.all());
    T* const dtmp = reinterpret_cast<T*>(k.Workspace(dtmp_));
    PENSTOCK_RETURN_IF_ERROR(RunTexts(k, dtmp));
    const Dim wide = texts_.dim_t() * texts_.y_width(), rows = k[texts_.x()].shape()[0],
              width = texts_.x_width();
    const auto of_tmp = RowMajor(static_cast<const T*>(dtmp), rows, wide);
    if (dx_) {
      const T* const w = k[w_].template Data<T>();
      PENSTOCK_RETURN_IF_ERROR(Gemm<T>(of_tmp, Transposed(RowMajor(w, width, wide)),
                                       RowMajor(k[dx_].template Data<T>(), rows, width), options_));
    }
    if (!dw_) return OkStatus();
    const T* const x = std::as_const(k[texts_.x()]).template Data<T>();
    return Gemm<T>(Transposed(RowMajor(x, rows, width)), of_tmp,
                   RowMajor(k[dw_].template Data<T>(), width, wide), options_);
  }

 private:
  Status RunTexts(KernelRun& k, T* dtmp) {
    const T* dout = std::as_const(k[dout_]).template Data<T>();
    const T *const y = std::as_const(k[texts_.y()]).template Data<T>(), *const tmp = std::as_const(k[tmp_])
                                                                                         .template Data<T>();
    T* const dy = dy_ ? k[dy_].template Data<T>() : nullptr;
    std::fill_n(dtmp, texts_.tmp_count(), T{0});
    if (dy_) std::ranges::fill(k[dy_].template Span<T>(), T{0});
    GemmOptions adds = options_;
    adds.add = true;
    for (Dim s = 0; s < texts_.xs().count(); ++s) {
      const Dim height = texts_.xs().length(s), width = texts_.ys().length(s);
      for (Dim t = 0; t < texts_.dim_t(); ++t, dout += height * width) {
        const auto of_out = RowMajor(dout, height, width);
        PENSTOCK_RETURN_IF_ERROR(Gemm<T>(of_out, texts_.Y(y, s), texts_.Tmp(dtmp, s, t), options_));
        if (dy == nullptr) continue;
        PENSTOCK_RETURN_IF_ERROR(Gemm<T>(Transposed(of_out), texts_.Tmp(tmp, s, t), texts_.Y(dy, s), adds));
      }
    }
    return OkStatus();
  }

  In<"W"> w_;
  In<"Tmp"> tmp_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Out<"Y@GRAD"> dy_;
  Out<"W@GRAD"> dw_;
  GemmOptions options_;
  Texts<T> texts_;
  WorkspaceId dtmp_;
};

}  // namespace

void RegisterMatchMatrixTensor(OpRegistry& ops) {
  ops.Add("match_matrix_tensor")
      .Doc("The similarities of all pairs of words of two texts, by several matrices.", kDoc)
      .Input("X", "[words, columns], in sequences", Floats())
      .Input("Y", "[words, columns], in the same number of sequences", SameTypeAs("X"))
      .Input("W", "[columns of X, dim_t, columns of Y]", SameTypeAs("X"))
      .Output("Out", "[elements of all matrices, 1]", SameTypeAs("X"), Apart())
      .Output("Tmp", "X . W, as one column", SameTypeAs("X"), Apart())
      .Attr("dim_t", 1, "the number of matrices per pair", AtLeast(1))
      .InferShape(InferMatch)
      .Kernel<Cpu, MatchMatrixKernel, float, double>()
      .Grad({.reads = {"X", "Y", "W"},
             .reads_outputs = {"Tmp"},
             .yields = {"X", "Y", "W"},
             .of = {"Out"},
             .apart = {"X", "Y", "W"}})
      .GradKernel<Cpu, MatchMatrixGradKernel, float, double>();
}

}  // namespace penstock
