// sequence_pool: pools each sequence to one row.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "framework/vector/column_sums.h"
#include "operators/common/lod.h"
#include "operators/common/nan.h"
#include "operators/common/parallel.h"
#include "operators/common/require_shape.h"
#include "operators/sequence/recurrent.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[s] = f(rows of X's innermost sequence s), element by element

  SUM      the sum                     AVERAGE  the sum / length     SQRT   the sum / sqrt(length)
  MAX      the maximum                 FIRST    the first row        LAST   the last row

An empty sequence yields pad_value. Out keeps the outer LoD levels of X. MaxIndex holds the row of each
maximum, the first of equal ones, or -1; only MAX without is_test sets it.)";

enum class Pool { kAverage, kSum, kSqrt, kMax, kFirst, kLast };

Pool PoolOf(const std::string& name) {
  if (name == "SUM") return Pool::kSum;
  if (name == "SQRT") return Pool::kSqrt;
  if (name == "MAX") return Pool::kMax;
  if (name == "FIRST") return Pool::kFirst;
  if (name == "LAST") return Pool::kLast;
  return Pool::kAverage;
}

bool GivesMaxIndex(const std::string& pool, bool is_test) { return pool == "MAX" && !is_test; }

Status InferSequencePool(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 0));
  const int level = c.Input("X").lod_level;
  if (level < 1) return c.Error("X must have a level of sequences");
  const Shape out = c.ShapeOf("X").WithRows(kUnknownDim);
  c.SetLodLevel("Out", level - 1);
  if (GivesMaxIndex(c.Attr<std::string>("pooltype"), c.Attr<bool>("is_test")))
    PENSTOCK_RETURN_IF_ERROR(c.SetShape("MaxIndex", out));
  return c.SetShape("Out", out);
}

// Returns the factor of a sum over `length` rows.
template <typename T>
T ScaleOf(Pool pool, Dim length) {
  if (pool == Pool::kAverage) return T{1} / static_cast<T>(length);
  if (pool == Pool::kSqrt) return T{1} / std::sqrt(static_cast<T>(length));
  return T{1};
}

// Computes the maximum of each column of rows [begin, end), which are at least one, and its row: the first
// NaN, otherwise the first of equal ones. Goes by rows, so that memory is read in order and columns fill
// vector registers.
template <typename T>
void MaxOfRows(const T* x, Dim begin, Dim end, Dim width, T* out, std::int32_t* rows) {
  std::copy_n(x + begin * width, width, out);
  std::fill_n(rows, width, static_cast<std::int32_t>(begin));
  for (Dim r = begin + 1; r < end; ++r) {
    const T* const row = x + r * width;
    const auto number = static_cast<std::int32_t>(r);
    for (Dim j = 0; j < width; ++j) {
      const bool larger = !(row[j] <= out[j]) & !IsNan(out[j]);  // also a NaN where out has a number
      out[j] = larger ? row[j] : out[j];
      rows[j] = larger ? number : rows[j];
    }
  }
}

// The cost of a sequence, as if all had the same length.
template <typename T>
double SequenceNs(const Offsets& x, Dim width) {
  const Dim rows = x.total();
  return StreamNs<T>(2) * static_cast<double>(rows * width) /
         static_cast<double>(std::max<Dim>(x.count(), 1));
}

template <typename Device, typename T>
class SequencePoolKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_.Prepare(k, "X");
    const auto name = k.Attr<std::string>("pooltype");
    pool_ = PoolOf(name);
    pad_ = static_cast<T>(k.Attr<float>("pad_value"));
    if (GivesMaxIndex(name, k.Attr<bool>("is_test")) && k.Output("MaxIndex")) {
      PENSTOCK_RETURN_IF_ERROR(max_index_.Prepare(k, "MaxIndex", DType::kInt32, k.Input("X").shape));
    } else if (pool_ == Pool::kMax) {
      unread_index_.Prepare(k, k.Input("X").shape.RowWidth());
    }
    return out_.Prepare(k, "Out", k.Input("X").dtype, k.Input("X").shape);
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const LoD* const lod, x_.Levels(k, 1));
    const Offsets x(lod->back());
    lod_.Start(lod->size() - 1);
    for (std::size_t l = 0; l + 1 < lod->size(); ++l) lod_.CopyLevel(l, (*lod)[l]);
    Tensor& out = out_.Make(k, x.count());
    lod_.Set(out);
    T* const to = out.Data<T>();
    std::int32_t* const index =
        max_index_ ? max_index_.Make(k, x.count()).template Data<std::int32_t>() : nullptr;
    std::int32_t* const unread = pool_ == Pool::kMax && !max_index_ ? unread_index_.At(k) : nullptr;
    const T* const from = std::as_const(k[x_.operand()]).template Data<T>();
    const Dim width = out_.width();
    const auto pool = [&](Dim first, Dim last) {
      for (Dim s = first; s < last; ++s) {
        std::int32_t* const rows = index == nullptr ? unread : index + s * width;
        if (x.length(s) > 0) {
          PoolOne(from, x.begin(s), x.end(s), to + s * width, rows);
        } else {
          std::fill_n(to + s * width, width, pad_);
          if (index != nullptr) std::fill_n(rows, width, -1);
        }
      }
    };
    if (unread != nullptr) {
      pool(0, x.count());  // all sequences share its memory
    } else {
      ForRows(x.count(), SequenceNs<T>(x, width), pool);
    }
    return OkStatus();
  }

 private:
  void PoolOne(const T* x, Dim begin, Dim end, T* out, std::int32_t* rows) const {
    const Dim width = out_.width();
    if (pool_ == Pool::kMax) return MaxOfRows(x, begin, end, width, out, rows);
    const Dim first = pool_ == Pool::kLast ? end - 1 : begin;
    std::copy_n(x + first * width, width, out);
    if (pool_ == Pool::kFirst || pool_ == Pool::kLast) return;
    if constexpr (std::is_same_v<T, float>) {
      const auto columns = static_cast<std::size_t>(width);
      vec::AddRows(x + (begin + 1) * width, columns, static_cast<std::size_t>(end - begin - 1), columns, out);
    } else {
      for (Dim r = begin + 1; r < end; ++r) {
        for (Dim j = 0; j < width; ++j) out[j] += x[r * width + j];
      }
    }
    const T scale = ScaleOf<T>(pool_, end - begin);
    for (Dim j = 0; j < width; ++j) out[j] *= scale;
  }

  SequenceInput x_;
  RowsOutput out_, max_index_;
  Scratch<std::int32_t> unread_index_;  // of one sequence
  MadeLod lod_;
  Pool pool_ = Pool::kAverage;
  T pad_ = 0;
};

template <typename Device, typename T>
class SequencePoolGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_.Prepare(k, "X");
    k.Bind(dout_, dx_);
    dout_name_ = StrCat(k.op().type(), ": Out@GRAD");
    const auto name = k.Attr<std::string>("pooltype");
    pool_ = PoolOf(name);
    if (pool_ != Pool::kMax) return OkStatus();
    if (GivesMaxIndex(name, k.Attr<bool>("is_test"))) k.Bind(max_index_);
    if (max_index_ && k[max_index_].dtype != DType::kInt32)
      return k.Error("element type of MaxIndex (", DTypeName(k[max_index_].dtype), ") must be i32");
    max_index_name_ = StrCat(k.op().type(), ": MaxIndex");
    maxima_.Prepare(k, k.Input("X").shape.RowWidth());
    rows_.Prepare(k, k.Input("X").shape.RowWidth());
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets x, x_.Innermost(k));
    const Dim width = k[x_.operand()].shape().RowWidth();
    PENSTOCK_RETURN_IF_ERROR(CheckRows(dout_name_, k[dout_], x.count(), width));
    if (max_index_) PENSTOCK_RETURN_IF_ERROR(CheckRows(max_index_name_, k[max_index_], x.count(), width));
    const T* const dout = std::as_const(k[dout_]).template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    if (pool_ == Pool::kMax) {
      for (Dim s = 0; s < x.count(); ++s) {
        if (x.length(s) > 0) PENSTOCK_RETURN_IF_ERROR(SpreadToMaxima(k, x, s, dout + s * width, dx, width));
      }
      return OkStatus();
    }
    ForRows(x.count(), SequenceNs<T>(x, width), [&](Dim first, Dim last) {
      for (Dim s = first; s < last; ++s) {
        if (x.length(s) > 0) Spread(x.begin(s), x.end(s), dout + s * width, dx, width);
      }
    });
    return OkStatus();
  }

 private:
  void Spread(Dim begin, Dim end, const T* dout, T* dx, Dim width) const {
    if (pool_ == Pool::kFirst || pool_ == Pool::kLast) {
      std::fill(dx + begin * width, dx + end * width, T{0});
      std::copy_n(dout, width, dx + (pool_ == Pool::kFirst ? begin : end - 1) * width);
      return;
    }
    const T scale = ScaleOf<T>(pool_, end - begin);
    for (Dim r = begin; r < end; ++r) {
      for (Dim j = 0; j < width; ++j) dx[r * width + j] = dout[j] * scale;
    }
  }

  Status SpreadToMaxima(KernelRun& k, const Offsets& x, Dim s, const T* dout, T* dx, Dim width) const {
    const Dim begin = x.begin(s), end = x.end(s);
    PENSTOCK_ASSIGN_OR_RETURN(const std::int32_t* const rows, RowsOfMaxima(k, s, begin, end, width));
    std::fill(dx + begin * width, dx + end * width, T{0});
    for (Dim j = 0; j < width; ++j) dx[rows[j] * width + j] = dout[j];
    return OkStatus();
  }

  // From MaxIndex. Without it (is_test leaves none), the maxima are searched again.
  Result<const std::int32_t*> RowsOfMaxima(KernelRun& k, Dim s, Dim begin, Dim end, Dim width) const {
    if (!max_index_) {
      std::int32_t* const rows = rows_.At(k);
      MaxOfRows(std::as_const(k[x_.operand()]).template Data<T>(), begin, end, width, maxima_.At(k), rows);
      return static_cast<const std::int32_t*>(rows);
    }
    const std::int32_t* const rows = std::as_const(k[max_index_]).template Data<std::int32_t>() + s * width;
    if (width == 0) return rows;
    const auto [least, most] = std::minmax_element(rows, rows + width);
    if (*least >= begin && *most < end) return rows;
    return InvalidArgument("E-op-index", max_index_name_, " names row ", *least < begin ? *least : *most,
                           " for sequence ", s, ", which has rows [", begin, ", ", end, ")");
  }

  SequenceInput x_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  In<"MaxIndex"> max_index_;
  std::string dout_name_, max_index_name_;
  Pool pool_ = Pool::kAverage;
  Scratch<T> maxima_;           // of one sequence
  Scratch<std::int32_t> rows_;  // of one sequence
};

// As in Fluid, MaxIndex is an argument only for MAX.
Result<std::vector<Op>> SequencePoolGrad(const GradRequest& request) {
  const Op& forward = request.forward;
  const std::string dx = request.grad_of(forward.InputName("X"));
  if (dx.empty()) return std::vector<Op>{};
  Op grad("sequence_pool_grad");
  grad.AddInput("X", forward.Input("X"));
  if (forward.GetOr<std::string>("pooltype", "AVERAGE") == "MAX")
    grad.AddInput("MaxIndex", forward.Output("MaxIndex"));
  grad.AddInput("Out@GRAD", {request.grad_of(forward.OutputName("Out"))}).AddOutput("X@GRAD", {dx});
  for (const NamedAttr& attr : forward.attrs()) grad.Set(attr.name, attr.value);
  return std::vector<Op>{std::move(grad)};
}

}  // namespace

void RegisterSequencePool(OpRegistry& ops) {
  ops.Add("sequence_pool")
      .Doc("Pools each sequence to one row.", kDoc)
      .Input("X", "rows in sequences of one level or more", Floats())
      .Output("Out", "one row per innermost sequence", SameTypeAs("X"))
      .Output("MaxIndex", "i32: the row of each maximum", AnyType(), Optional() | Intermediate())
      .Attr("is_test", false, "whether to omit MaxIndex")
      .Attr("pooltype", "AVERAGE", "how the rows of a sequence are pooled",
            OneOf({"AVERAGE", "SUM", "SQRT", "LAST", "FIRST", "MAX"}))
      .Attr("pad_value", 0.0f, "the result for an empty sequence")
      .Nan("the MAX of a sequence with a NaN is NaN; MaxIndex and the gradient point to the first NaN.")
      .InferShape(InferSequencePool)
      .Kernel<Cpu, SequencePoolKernel, float, double>()
      .Grad({.reads = {"X"}, .reads_outputs = {"MaxIndex"}, .yields = {"X"}, .apart = {"X"}})
      .GradMadeBy(SequencePoolGrad)
      .GradKernel<Cpu, SequencePoolGradKernel, float, double>();
}

}  // namespace penstock
