// partial_concat, partial_sum: a range of columns of several matrices, concatenated or summed.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kConcatDoc[] = R"(
Columns start_index ... start_index + length - 1 of each X, concatenated in the order of X. A negative
start_index counts from the end, and a negative length extends to the end. All X have the same shape. The
gradient of all other columns is 0.)";

constexpr char kSumDoc[] = R"(
The sum of columns start_index ... start_index + length - 1 of each X. A negative start_index counts from the
end, and a negative length extends to the end. All X have the same shape. The gradient of all other columns is
0.)";

// Columns of matrices of one shape.
struct Columns {
  Dim rows = 0, width = 0;    // of each X
  Dim begin = 0, length = 0;  // the columns
};

template <typename Context>
Result<Columns> ColumnsOf(const Context& c, const Shape& x) {
  const int start = c.template Attr<int>("start_index"), length = c.template Attr<int>("length");
  if (x.rank() != 2) return c.Error("rank of X (", x, ") must be 2");
  Columns columns{x[0], x[1], 0, 0};
  if (x[1] == kUnknownDim) return c.Error("the columns of X (", x, ") must be known");
  columns.begin = start < 0 ? start + x[1] : start;
  if (columns.begin < 0 || columns.begin >= x[1])
    return c.Error("start_index (", start, ") must be in [", -x[1], ", ", x[1], "), the columns of X (", x,
                   ")");
  columns.length = length < 0 ? x[1] - columns.begin : length;
  if (columns.begin + columns.length > x[1])
    return c.Error("length (", length, ") from column ", columns.begin, " on must be at most ",
                   x[1] - columns.begin);
  return columns;
}

Status InferPartial(InferContext& c) {
  const Shape& first = c.ShapeOf("X");
  for (int i = 1; i < c.InputCount("X"); ++i) {
    if (Compatible(c.ShapeOf("X", i), first)) continue;
    return c.Error("X[", i, "] (", DTypeName(c.DTypeOf("X", i)), c.ShapeOf("X", i),
                   ") must have the type and shape of X[0] (", DTypeName(c.DTypeOf("X")), first, ")");
  }
  PENSTOCK_ASSIGN_OR_RETURN(const Columns columns, ColumnsOf(c, first));
  const Dim parts = c.op().type() == "partial_concat" ? c.InputCount("X") : 1;
  return c.SetShape("Out", {columns.rows, columns.length * parts});
}

template <typename Device, typename T>
class PartialKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    xs_.assign(k.Inputs("X").begin(), k.Inputs("X").end());
    k.Bind(out_);
    adds_ = k.op().type() == "partial_sum";
    PENSTOCK_ASSIGN_OR_RETURN(columns_, ColumnsOf(k, k.Input("X").shape));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    std::ranges::fill(k[out_].template Span<T>(), T{0});
    const Dim width = k[out_].shape()[1];
    Dim offset = 0;
    for (const Operand& x : xs_) {
      const T* from = k[x].template Data<T>() + columns_.begin;
      T* to = k[out_].template Data<T>() + offset;
      for (Dim r = 0; r < columns_.rows; ++r, from += columns_.width, to += width) {
        for (Dim j = 0; j < columns_.length; ++j) to[j] += from[j];
      }
      if (!adds_) offset += columns_.length;
    }
    return OkStatus();
  }

 private:
  std::vector<Operand> xs_;
  Out<"Out"> out_;
  bool adds_ = false;
  Columns columns_;
};

template <typename Device, typename T>
class PartialGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_);
    dxs_.assign(k.Outputs("X@GRAD").begin(), k.Outputs("X@GRAD").end());
    adds_ = k.op().type() == "partial_sum_grad";
    const Shape& x = k.Inputs("X").front().shape;
    for (const Argument& other : k.Inputs("X")) {
      if (other.shape != x || other.dtype != k[dout_].dtype)
        return k.Error("all X must be of one shape, and of Out@GRAD's type");
    }
    if (dxs_.size() > k.Inputs("X").size()) return k.Error("there must be no more X@GRAD than X");
    PENSTOCK_ASSIGN_OR_RETURN(columns_, ColumnsOf(k, x));
    const Dim parts = adds_ ? 1 : static_cast<Dim>(k.Inputs("X").size());
    return RequireShape(k, "Out@GRAD", {columns_.rows, columns_.length * parts});
  }
  Status Run(KernelRun& k) override {
    const Dim width = k[dout_].shape()[1];
    Dim offset = 0;
    for (const Operand& dx : dxs_) {
      if (dx) {
        std::ranges::fill(k[dx].template Span<T>(), T{0});
        const T* from = k[dout_].template Data<T>() + offset;
        T* to = k[dx].template Data<T>() + columns_.begin;
        for (Dim r = 0; r < columns_.rows; ++r, from += width, to += columns_.width)
          std::copy_n(from, columns_.length, to);
      }
      if (!adds_) offset += columns_.length;
    }
    return OkStatus();
  }

 private:
  In<"Out@GRAD"> dout_;
  std::vector<Operand> dxs_;
  bool adds_ = false;
  Columns columns_;
};

OpDef& AddPartial(OpRegistry& ops, const std::string& type, std::string summary, const char* doc) {
  OpDef& def = ops.Add(type)
                   .Doc(std::move(summary), doc)
                   .Input("X", "[rows, columns], all of the same shape", Numbers(), Repeated())
                   .Output("Out", "[rows, selected columns]", SameTypeAs("X"), Apart())
                   .Attr("start_index", 0, "the first column to use")
                   .Attr("length", -1, "the number of columns to use; -1: all up to the end")
                   .InferShape(InferPartial)
                   .Kernel<Cpu, PartialKernel, float, double, std::int32_t, std::int64_t>()
                   .Grad({.reads = {"X"}, .yields = {"X"}, .apart = {"X"}})
                   .GradKernel<Cpu, PartialGradKernel, float, double>();
  def.GradDef().KernelTypeFrom("Out@GRAD");
  return def;
}

}  // namespace

void RegisterPartial(OpRegistry& ops) {
  AddPartial(ops, "partial_concat", "Concatenates a range of columns of several matrices.", kConcatDoc);
  AddPartial(ops, "partial_sum", "Sums a range of columns of several matrices.", kSumDoc)
      .Attr("use_mkldnn", false, kNoEffect);
}

}  // namespace penstock
