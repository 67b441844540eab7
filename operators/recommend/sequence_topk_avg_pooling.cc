// sequence_topk_avg_pooling: means of the largest elements of each row of matrices of different sizes.
#include <algorithm>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/lod.h"
#include "operators/common/nan.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

using Ints = std::vector<std::int32_t>;

constexpr char kDoc[] = R"(
A sequence of X holds channel_num matrices, as computed by match_matrix_tensor; each has as many rows as the
sequence of ROW and as many columns as the sequence of COLUMN. Out has one row for each row of ROW. For each
channel and each k of topks, it holds the sum of the k largest elements of that matrix row, or of all elements
if there are fewer, divided by k. Of equal elements, the first is taken. pos stores their columns for the
gradient, -1 where there is none.)";

Status InferTopk(InferContext& c) {
  const Ints topks = c.Attr<Ints>("topks");
  if (topks.empty()) return c.Error("topks must not be empty");
  const Dim width = c.Attr<int>("channel_num") * static_cast<Dim>(topks.size());
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("ROW", 0));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Out", {c.ShapeOf("ROW")[0], width}));
  c.ShareLod("ROW", "Out");
  const Dim rows = c.ShapeOf("ROW")[0];
  const Dim most = *std::ranges::max_element(topks);
  return c.SetShape("pos", {rows == kUnknownDim ? rows : rows * c.Attr<int>("channel_num") * most});
}

// The positions of the matrices.
class MatrixSequences {
 public:
  Status Prepare(const KernelSetup& k) {
    x_.Prepare(k, "X");
    row_.Prepare(k, "ROW");
    column_.Prepare(k, "COLUMN");
    topks_ = k.Attr<Ints>("topks");
    if (topks_.empty()) return k.Error("topks must not be empty");
    most_ = *std::ranges::max_element(topks_);
    channels_ = k.Attr<int>("channel_num");
    return OkStatus();
  }
  Status Load(KernelRun& k) {
    PENSTOCK_ASSIGN_OR_RETURN(xs_, x_.Innermost(k));
    PENSTOCK_ASSIGN_OR_RETURN(rows_, row_.Innermost(k));
    PENSTOCK_ASSIGN_OR_RETURN(columns_, column_.Innermost(k));
    if (rows_.count() != xs_.count() || columns_.count() != xs_.count())
      return LodError(x_.what(), " has ", xs_.count(), " sequences, ROW ", rows_.count(), " and COLUMN ",
                      columns_.count(), "; the numbers must be equal");
    if (k[x_.operand()].count() != xs_.total())
      return LodError(x_.what(), " must hold one element for each of its rows");
    for (Dim s = 0; s < xs_.count(); ++s) {
      if (xs_.length(s) != rows_.length(s) * columns_.length(s) * channels_)
        return LodError(x_.what(), ": sequence ", s, " has ", xs_.length(s), " elements; there must be ",
                        rows_.length(s), " * ", columns_.length(s), " in each of ", channels_, " channels");
    }
    return OkStatus();
  }
  const Ints& topks() const { return topks_; }
  Dim most() const { return most_; }
  Dim channels() const { return channels_; }
  Dim rows() const { return rows_.count() == 0 ? 0 : rows_.total(); }
  const Operand& x() const { return x_.operand(); }

  // Calls visit(row of Out, channel, first element of the matrix's row, columns) for each row of each matrix.
  template <typename Visit>
  void ForEachRow(Visit visit) const {
    for (Dim s = 0; s < xs_.count(); ++s) {
      const Dim height = rows_.length(s), width = columns_.length(s);
      for (Dim c = 0; c < channels_; ++c) {
        for (Dim r = 0; r < height; ++r)
          visit(rows_.begin(s) + r, c, xs_.begin(s) + (c * height + r) * width, width);
      }
    }
  }

 private:
  SequenceInput x_, row_, column_;
  Offsets xs_, rows_, columns_;
  Ints topks_;
  Dim most_ = 1, channels_ = 1;
};

template <typename Device, typename T>
class TopkAvgKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(out_, pos_);
    PENSTOCK_RETURN_IF_ERROR(RequireOutput(k, "pos"));
    return matrices_.Prepare(k);
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(matrices_.Load(k));
    const Dim kinds = static_cast<Dim>(matrices_.topks().size()), most = matrices_.most();
    if (k[out_].count() != matrices_.rows() * matrices_.channels() * kinds)
      return LodError("sequence_topk_avg_pooling: ROW must have ", matrices_.rows(), " rows");
    const T* const x = k[matrices_.x()].template Data<T>();
    T* const out = k[out_].template Data<T>();
    std::int32_t* const pos = k[pos_].template Data<std::int32_t>();
    matrices_.ForEachRow([&](Dim row, Dim channel, Dim begin, Dim columns) {
      const Dim cell = row * matrices_.channels() + channel;
      std::int32_t* const places = pos + cell * most;
      FindLargest(x + begin, columns, places);
      for (Dim i = 0; i < kinds; ++i) {
        const std::int32_t top = matrices_.topks()[static_cast<std::size_t>(i)];
        T sum = 0;
        for (Dim j = 0; j < top && places[j] >= 0; ++j) sum += x[begin + places[j]];
        out[cell * kinds + i] = sum / static_cast<T>(top);
      }
    });
    return OkStatus();
  }

 private:
  // The columns of the largest elements, in descending order, then -1; NaN is larger than any number.
  void FindLargest(const T* x, Dim columns, std::int32_t* places) const {
    const auto is_above = [x](std::int32_t a, std::int32_t b) {
      return x[a] > x[b] || (IsNan(x[a]) && !IsNan(x[b]));
    };
    Dim found = 0;
    for (Dim j = 0; j < columns; ++j) {
      Dim at = found;
      while (at > 0 && is_above(static_cast<std::int32_t>(j), places[at - 1])) --at;
      if (at >= matrices_.most()) continue;
      found = std::min(found + 1, matrices_.most());
      std::copy_backward(places + at, places + found - 1, places + found);
      places[at] = static_cast<std::int32_t>(j);
    }
    std::fill(places + found, places + matrices_.most(), -1);
  }
  Out<"Out"> out_;
  Out<"pos"> pos_;
  MatrixSequences matrices_;
};

template <typename Device, typename T>
class TopkAvgGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(pos_, dout_, dx_);
    if (k[pos_].dtype != DType::kInt32) return k.Error("pos must be i32");
    return matrices_.Prepare(k);
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(matrices_.Load(k));
    const Dim kinds = static_cast<Dim>(matrices_.topks().size()), most = matrices_.most();
    const Dim cells = matrices_.rows() * matrices_.channels();
    if (k[dout_].count() != cells * kinds || k[pos_].count() != cells * most)
      return LodError("sequence_topk_avg_pooling_grad: Out@GRAD and pos must be those of Out");
    std::ranges::fill(k[dx_].template Span<T>(), T{0});
    const T* const dout = k[dout_].template Data<T>();
    const std::int32_t* const pos = k[pos_].template Data<std::int32_t>();
    T* const dx = k[dx_].template Data<T>();
    bool fits = true;
    matrices_.ForEachRow([&](Dim row, Dim channel, Dim begin, Dim columns) {
      const Dim cell = row * matrices_.channels() + channel;
      const std::int32_t* const places = pos + cell * most;
      for (Dim i = 0; i < kinds; ++i) {
        const std::int32_t top = matrices_.topks()[static_cast<std::size_t>(i)];
        for (Dim j = 0; j < top && places[j] >= 0; ++j) {
          fits = fits && places[j] < columns;
          if (fits) dx[begin + places[j]] += dout[cell * kinds + i] / static_cast<T>(top);
        }
      }
    });
    return fits ? OkStatus()
                : LodError("sequence_topk_avg_pooling_grad: pos names columns that do not exist");
  }

 private:
  In<"pos"> pos_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  MatrixSequences matrices_;
};

}  // namespace

void RegisterSequenceTopkAvgPooling(OpRegistry& ops) {
  ops.Add("sequence_topk_avg_pooling")
      .Doc("The means of the largest elements of each row of matrices of different sizes.", kDoc)
      .Input("X", "[elements of all matrices, 1], in sequences", Floats())
      .Input("ROW", "its sequences give the numbers of rows of the matrices", AnyType())
      .Input("COLUMN", "its sequences give the numbers of columns of the matrices", AnyType())
      .Output("Out", "[rows of ROW, channel_num * topks]", SameTypeAs("X"), Apart())
      .Output("pos", "the columns of the largest elements", Only(DType::kInt32), Intermediate() | Apart())
      .RequiredAttr("topks", AttrKind::kInts, "the numbers of elements to average", AtLeast(1))
      .RequiredAttr("channel_num", AttrKind::kInt, "the number of matrices per sequence", AtLeast(1))
      .Nan("NaN is larger than any number: Out is NaN, and pos holds its column.")
      .InferShape(InferTopk)
      .Kernel<Cpu, TopkAvgKernel, float, double>()
      .Grad({.reads = {"X", "ROW", "COLUMN"}, .reads_outputs = {"pos"}, .yields = {"X"}, .apart = {"X"}})
      .GradKernel<Cpu, TopkAvgGradKernel, float, double>()
      .GradDef()
      .KernelTypeFrom("Out@GRAD");
}

}  // namespace penstock
