// similarity_focus: marks the positions of feature maps that hold the largest elements of their row and
// column.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
For each index in `indexes`, takes the matrix of X[n] at that index of dimension `axis`. Its elements are
visited in descending order (of equal elements, the first comes first). An element is marked if neither its
row nor its column has a marked element yet. This ends when every row or every column has one. Out is 1 at
the positions marked for any index, for all indices along `axis`, and 0 elsewhere.

H. He, J. Lin: "Pairwise word interaction modeling with deep neural networks for semantic similarity
measurement", NAACL 2016.)";

template <typename Context>
Status CheckFocus(const Context& c, const Shape& x) {
  const int axis = c.template Attr<int>("axis");
  const auto indexes = c.template Attr<std::vector<std::int32_t>>("indexes");
  if (x.rank() != 4) return c.Error("rank of X (", x, ") must be 4");
  if (axis < 1 || axis > 3) return c.Error("axis (", axis, ") must be 1, 2 or 3");
  if (indexes.empty()) return c.Error("indexes must not be empty");
  for (const std::int32_t index : indexes) {
    if (index < 0 || (x[axis] != kUnknownDim && index >= x[axis]))
      return c.Error("indexes holds ", index, "; it must be in [0, ", x[axis], "), extent ", axis, " of X (",
                     x, ")");
  }
  return OkStatus();
}

Status InferFocus(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(CheckFocus(c, c.ShapeOf("X")));
  return c.ShareAll("X", "Out");
}

template <typename Device, typename T>
class SimilarityFocusKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    const Shape& x = k[x_].shape;
    PENSTOCK_RETURN_IF_ERROR(CheckFocus(k, x));
    const int axis = k.Attr<int>("axis");
    indexes_ = k.Attr<std::vector<std::int32_t>>("indexes");
    const int row = axis == 1 ? 2 : 1, column = axis == 3 ? 2 : 3;
    layers_ = x[axis];
    rows_ = x[row];
    columns_ = x[column];
    strides_ = {x.Product(axis + 1, 4), x.Product(row + 1, 4), x.Product(column + 1, 4)};
    order_ = k.Workspace(static_cast<std::size_t>(rows_ * columns_) * sizeof(Dim));
    taken_ = k.Workspace(static_cast<std::size_t>(rows_ + columns_));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    std::ranges::fill(k[out_].template Span<T>(), T{0});
    const Dim image = k[x_].shape().RowWidth();
    for (Dim n = 0; n < k[x_].shape()[0]; ++n) {
      for (const std::int32_t index : indexes_)
        Mark(k, k[x_].template Data<T>() + n * image + index * strides_[0],
             k[out_].template Data<T>() + n * image);
    }
    return OkStatus();
  }

 private:
  Dim PlaceOf(Dim cell) const { return cell / columns_ * strides_[1] + cell % columns_ * strides_[2]; }
  void Mark(KernelRun& k, const T* x, T* out) const {
    auto* const order = reinterpret_cast<Dim*>(k.Workspace(order_));
    auto* const taken = reinterpret_cast<bool*>(k.Workspace(taken_));
    const Dim cells = rows_ * columns_;
    for (Dim i = 0; i < cells; ++i) order[i] = i;
    std::sort(order, order + cells, [&](Dim a, Dim b) {
      const T left = x[PlaceOf(a)], right = x[PlaceOf(b)];
      if (left > right || right > left) return left > right;
      return (left == left) == (right == right) ? a < b : left == left;  // NaN comes last
    });
    std::fill_n(taken, rows_ + columns_, false);
    for (Dim i = 0; i < cells; ++i) {
      const Dim row = order[i] / columns_, column = order[i] % columns_;
      if (taken[row] || taken[rows_ + column]) continue;
      taken[row] = taken[rows_ + column] = true;
      for (Dim layer = 0; layer < layers_; ++layer) out[PlaceOf(order[i]) + layer * strides_[0]] = T{1};
    }
  }

  In<"X"> x_;
  Out<"Out"> out_;
  std::vector<std::int32_t> indexes_;
  Dim layers_ = 0, rows_ = 0, columns_ = 0;
  std::array<Dim, 3> strides_{};  // along axis, rows, columns
  WorkspaceId order_, taken_;
};

}  // namespace

void RegisterSimilarityFocus(OpRegistry& ops) {
  ops.Add("similarity_focus")
      .Doc("Marks the positions of feature maps that hold the largest elements of their row and column.",
           kDoc)
      .Input("X", "[n, a, b, c]", Floats())
      .Output("Out", "1 at the marked positions, shaped like X", SameTypeAs("X"), Apart())
      .RequiredAttr("axis", AttrKind::kInt, "the dimension to which indexes refers: 1, 2 or 3")
      .RequiredAttr("indexes", AttrKind::kInts, "the indices of the matrices")
      .Nan("NaN is less than any number.")
      .InferShape(InferFocus)
      .Kernel<Cpu, SimilarityFocusKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
