// scatter: replaces rows of a tensor, or sets them to sums of updates.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/copy.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out is X, except for the rows that Ids lists. With overwrite, row Ids[i] is Updates[i]; if a row is listed
several times, the last update is used. Otherwise the row is the sum of its updates. An id outside X is an
error. The gradient of X is 0 in the listed rows, and an update that was overwritten has a gradient of 0.)";

Status InferScatter(InferContext& c) {
  const Shape &x = c.ShapeOf("X"), &ids = c.ShapeOf("Ids"), &updates = c.ShapeOf("Updates");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 0));
  const bool is_column = ids.rank() == 2 && Compatible(ids[1], 1);
  if (ids.rank() != 1 && !is_column) return c.Error("shape of Ids (", ids, ") must be [n] or [n, 1]");
  if (!Compatible(updates, x.WithRows(ids[0])))
    return c.Error("shape of Updates (", updates, ") must be ", x.WithRows(ids[0]),
                   ": a row of X for each of Ids");
  return c.ShareAll("X", "Out");
}

Status InferScatterGrad(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("Out@GRAD", "X@GRAD"));
  return c.ShareAll("Updates", "Updates@GRAD");
}

// The rows that Ids lists, in order.
class NamedRows {
 public:
  Status Prepare(const KernelSetup& k, const Shape& whole) {
    type_ = k.op().type();
    k.Bind(ids_);
    if (whole.rank() == 0) return k.Error("a tensor of rank 0 has no rows");
    if (k[ids_].dtype != DType::kInt32 && k[ids_].dtype != DType::kInt64)
      return k.Error("element type of Ids (", DTypeName(k[ids_].dtype), ") must be i32 or i64");
    count_ = k[ids_].shape.Count();
    rows_ = whole[0];
    width_ = whole.RowWidth();
    return RequireCount(k, "Updates", count_ * width_);
  }
  Dim rows() const { return rows_; }
  Dim width() const { return width_; }
  Dim count() const { return count_; }

  // kInvalidArgument: an id is not a row.
  Status Check(KernelRun& k) const {
    for (Dim i = 0; i < count(); ++i) {
      const std::int64_t row = Row(k, i);
      if (row < 0 || row >= rows_)
        return InvalidArgument("E-op-index", type_, ": row ", row, " is outside of X, which has ", rows_,
                               " rows");
    }
    return OkStatus();
  }
  std::int64_t Row(KernelRun& k, Dim i) const {
    return k[ids_].dtype() == DType::kInt32 ? k[ids_].Data<std::int32_t>()[i]
                                            : k[ids_].Data<std::int64_t>()[i];
  }

 private:
  std::string type_;
  In<"Ids"> ids_;
  Dim count_ = 0, rows_ = 0, width_ = 0;
};

template <typename Device, typename T>
class ScatterKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, updates_, out_);
    overwrites_ = k.Attr<bool>("overwrite");
    return rows_.Prepare(k, k[x_].shape);
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(rows_.Check(k));
    CopyElements(k, x_, out_);
    const T* const updates = k[updates_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    const Dim width = rows_.width();
    for (Dim i = 0; !overwrites_ && i < rows_.count(); ++i)
      std::fill_n(out + rows_.Row(k, i) * width, width, T{0});
    for (Dim i = 0; i < rows_.count(); ++i) {
      T* const row = out + rows_.Row(k, i) * width;
      for (Dim j = 0; j < width; ++j)
        row[j] = overwrites_ ? updates[i * width + j] : row[j] + updates[i * width + j];
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Updates"> updates_;
  Out<"Out"> out_;
  bool overwrites_ = true;
  NamedRows rows_;
};

class ScatterGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_, dx_, dupdates_);
    overwrites_ = k.Attr<bool>("overwrite");
    if (dx_) PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "Out@GRAD", k[dx_].shape.Count()));
    PENSTOCK_RETURN_IF_ERROR(rows_.Prepare(k, k[dout_].shape));
    replaced_ = k.Workspace(static_cast<std::size_t>(rows_.rows()));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(rows_.Check(k));
    const std::size_t bytes = static_cast<std::size_t>(rows_.width()) * SizeOf(k[dout_].dtype());
    if (bytes == 0) return OkStatus();
    if (dupdates_) TakeRows(k, bytes);
    if (!dx_) return OkStatus();
    CopyElements(k, dout_, dx_);
    std::byte* const dx = k[dx_].raw();
    for (Dim i = 0; i < rows_.count(); ++i)
      std::memset(dx + static_cast<std::size_t>(rows_.Row(k, i)) * bytes, 0, bytes);
    return OkStatus();
  }

 private:
  // Goes backwards, so that the last update of a row is found first.
  void TakeRows(KernelRun& k, std::size_t bytes) {
    auto* const replaced = reinterpret_cast<bool*>(k.Workspace(replaced_));
    std::fill_n(replaced, rows_.rows(), false);
    for (Dim i = rows_.count() - 1; i >= 0; --i) {
      const auto row = static_cast<std::size_t>(rows_.Row(k, i));
      std::byte* const to = k[dupdates_].raw() + static_cast<std::size_t>(i) * bytes;
      if (overwrites_ && replaced[row]) {
        std::memset(to, 0, bytes);
      } else {
        std::memcpy(to, k[dout_].raw() + row * bytes, bytes);
      }
      replaced[row] = true;
    }
  }

  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Out<"Updates@GRAD"> dupdates_;
  bool overwrites_ = true;
  NamedRows rows_;
  WorkspaceId replaced_;
};

}  // namespace

void RegisterScatter(OpRegistry& ops) {
  ops.Add("scatter")
      .Doc("Replaces rows of a tensor, or sets them to sums of updates.", kDoc)
      .Input("X", "of rank 1 or more; rows are its first dimension", Numbers())
      .Input("Ids", "row numbers, [n] or [n, 1]", Integers())
      .Input("Updates", "n rows", SameTypeAs("X"))
      .Output("Out", "shaped like X", SameTypeAs("X"), Apart())
      .Attr("overwrite", true, "whether the last update replaces a row, instead of the sum of its updates")
      .InferShape(InferScatter)
      .Kernel<Cpu, ScatterKernel, float, double, std::int32_t, std::int64_t>()
      .Grad({.reads = {"Ids", "Updates"}, .yields = {"X", "Updates"}, .apart = {"Updates"}})
      .GradDef()
      .InferShape(InferScatterGrad)
      .KernelForAnyType<Cpu, ScatterGradKernel>();
}

}  // namespace penstock
