// lookup_table, lookup_table_v2: look up rows of a table by id.
#include <algorithm>
#include <atomic>
#include <iterator>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/element_type.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/parallel.h"
#include "operators/common/require_shape.h"
#include "operators/common/row_index.h"
#include "operators/common/rows.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[i] = W[Ids[i]], or zeros where Ids[i] is padding_idx (-1: no padding)

An id outside the table is an error. W may be selected rows of a table that grows; an id that W does not
list is then an error. The gradient of W reads only the shape of W. It sums the rows of Out@GRAD by id,
except those of padding_idx. With is_sparse, the gradient is selected rows in the order of the ids,
including duplicates; Fluid lists the rows of padding_idx, too, so that an update changes them.
is_distributed and remote_prefetch tell the transpiler where it may place the table, and row_policy which
rows of it pservers keep; a process that holds the table itself keeps all. Fluid's transpiler writes
height_sections, epmap, table_names and trainer_id for that purpose.)";

// The shape of the ids without the last dimension, which must be 1 in lookup_table.
Result<Shape> ShapeOfIds(const InferContext& c) {
  const Shape& ids = c.ShapeOf("Ids");
  if (c.op().type() != "lookup_table") return ids;
  if (ids.rank() == 0 || !Compatible(ids[ids.rank() - 1], 1)) {
    return c.Error("the last extent of Ids (", ids, ") must be 1");
  }
  return ids.First(ids.rank() - 1);
}

Status InferLookup(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("W", 2));
  PENSTOCK_ASSIGN_OR_RETURN(Shape out, ShapeOfIds(c));
  out.Append(c.ShapeOf("W")[1]);
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("Ids", "Out"));
  return c.SetShape("Out", out);
}

Status InferLookupGrad(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("W", "W@GRAD"));
  c.SetKind("W@GRAD", c.Attr<bool>("is_sparse") ? VarKind::kSelectedRows : VarKind::kTensor);
  c.SetLodLevel("W@GRAD", 0);
  return OkStatus();
}

// A padding_idx of -1 means that no id is padding; it does not make -1 a valid id.
bool IsPadding(std::int64_t id, std::int64_t padding) { return padding != -1 && id == padding; }

Status OutOfTable(const std::string& type, std::int64_t id, Dim height) {
  return InvalidArgument("E-op-index", type, ": id ", id, " is outside the table of ", height, " rows");
}

template <typename Device, typename T>
class LookupKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    type_ = k.op().type();
    k.Bind(ids_, out_);
    w_ = k.Input("W");
    is_rows_ = k.Input("W").kind == VarKind::kSelectedRows;
    padding_ = k.Attr<std::int64_t>("padding_idx");
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (is_rows_) return LookUpRows(k, k.Var(w_).template As<SelectedRows>());
    const Dim height = k[w_].shape()[0];
    const auto find = [height](std::int64_t id) { return id >= 0 && id < height ? id : Dim{-1}; };
    return LookUp(k, k[w_], find, [&](std::int64_t id) { return OutOfTable(type_, id, height); });
  }

 private:
  Status LookUpRows(KernelRun& k, const SelectedRows& table) {
    PENSTOCK_RETURN_IF_ERROR(RequireRows(type_, "W", table, DTypeOfT<T>::kValue));
    index_.Update(table.rows);
    const auto find = [this](std::int64_t id) { return index_.Find(id); };
    return LookUp(k, table.value, find, [&](std::int64_t id) {
      return InvalidArgument("E-op-index", type_, ": id ", id, " is not one of the ", table.rows.size(),
                             " rows of W (", w_.name, ")");
    });
  }

  static constexpr double kRowNs = 20;  // finding a row

  // `find` returns the row of `table` for an id, or a negative number if there is none.
  template <typename Find, typename Missing>
  Status LookUp(KernelRun& k, const Tensor& table, const Find& find, const Missing& missing) {
    Tensor& result = k[out_];
    const auto ids = k[ids_].template Span<std::int64_t>();
    const Dim width = ids.empty() ? 0 : result.count() / static_cast<Dim>(ids.size());
    T* const out = result.Data<T>();
    const T* const rows = table.initialized() ? table.Data<T>() : nullptr;
    const Dim count = static_cast<Dim>(ids.size());
    std::atomic<Dim> first_missing{count};
    ForRows(count, kRowNs + StreamNs<T>(2) * static_cast<double>(width), [&](Dim begin, Dim end) {
      for (Dim i = begin; i < end; ++i) {
        const std::int64_t id = ids[static_cast<std::size_t>(i)];
        if (IsPadding(id, padding_)) {
          std::fill_n(out + i * width, width, T{0});
          continue;
        }
        const Dim row = find(id);
        if (row < 0) {
          Dim first = first_missing.load();
          while (i < first && !first_missing.compare_exchange_weak(first, i)) {
          }
          return;
        }
        std::copy_n(rows + row * width, width, out + i * width);
      }
    });
    const Dim first = first_missing.load();
    return first == count ? OkStatus() : missing(ids[static_cast<std::size_t>(first)]);
  }

  std::string type_;
  In<"Ids"> ids_;
  Out<"Out"> out_;
  NamedOperand w_;
  bool is_rows_ = false;
  std::int64_t padding_ = -1;
  RowIndex index_;  // for selected rows
};

template <typename Device, typename T>
class LookupGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    type_ = k.op().type();
    k.Bind(ids_, dout_, dw_);
    padding_ = k.Attr<std::int64_t>("padding_idx");
    const Argument& w = k.Input("W");
    w_ = w;
    table_is_rows_ = w.kind == VarKind::kSelectedRows;
    lists_rows_ = k[dw_].kind == VarKind::kSelectedRows;
    // Such a table has a row for any id, on the pservers; here it has none, and none is added.
    by_id_ = k.Attr<bool>("is_distributed") && table_is_rows_ && lists_rows_;
    if (table_is_rows_ || w.shape.rank() == 2) return OkStatus();
    return k.Error("rank of W (", w.shape.rank(), ", shape ", w.shape, ") must be 2");
  }
  Status Run(KernelRun& k) override {
    if (!dw_) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(MeasureTable(k));
    const auto ids = k[ids_].template Span<std::int64_t>();
    for (const std::int64_t id : ids) {
      if (by_id_) break;
      if (!IsPadding(id, padding_) && (id < 0 || id >= table_[0])) return OutOfTable(type_, id, table_[0]);
    }
    const T* const dout = k[dout_].template Data<T>();
    if (lists_rows_) {
      List(ids, dout, k.Var(dw_).As<SelectedRows>());
    } else {
      Add(ids, dout, k[dw_]);
    }
    return OkStatus();
  }

 private:
  // The shape of the table. W may be selected rows of a remote table; its values are not read.
  Status MeasureTable(KernelRun& k) {
    if (!table_is_rows_) {
      table_ = k[w_].shape();
    } else {
      const SelectedRows& w = k.Var(w_).template As<SelectedRows>();
      if (!w.value.initialized() || w.value.shape().rank() == 0) {
        return FailedPrecondition("E-op-no-value", type_, ": W (", w_.name,
                                  ") has no values, so the width of its rows is unknown");
      }
      table_ = w.value.shape();
      table_.Set(0, w.height);
    }
    listed_ = table_;
    if (k[dout_].count() == k[ids_].count() * table_.RowWidth()) return OkStatus();
    return InvalidArgument(StrCat("E-kernel-", type_), type_, ": Out@GRAD (", k[dout_].shape(),
                           ") must hold a row of W (", table_, ") for each of Ids (", k[ids_].shape(), ")");
  }

  void List(std::span<const std::int64_t> ids, const T* dout, SelectedRows& dw) {
    const Dim width = table_.RowWidth();
    dw.height = table_[0];
    dw.rows.clear();
    std::copy_if(ids.begin(), ids.end(), std::back_inserter(dw.rows),
                 [this](std::int64_t id) { return !IsPadding(id, padding_); });
    listed_.Set(0, static_cast<Dim>(dw.rows.size()));
    dw.ResetValue(DTypeOfT<T>::kValue, listed_);
    T* to = dw.value.Data<T>();
    if (dw.rows.size() == ids.size())
      return CopyBytes(dw.value.raw(), reinterpret_cast<const std::byte*>(dout), dw.value.bytes());
    for (const std::int64_t id : ids) {
      if (!IsPadding(id, padding_)) to = std::copy_n(dout, width, to);
      dout += width;
    }
  }

  // Each thread clears rows of the table and adds what their ids have, in the order of the ids.
  void Add(std::span<const std::int64_t> ids, const T* dout, Tensor& dw) const {
    const Dim width = table_.RowWidth(), rows = table_[0];
    T* const to = dw.Data<T>();
    const double row_ns = StreamNs<T>(1) * static_cast<double>(width),
                 ids_ns = 2 * row_ns * static_cast<double>(ids.size());
    ForRows(rows, row_ns + ids_ns / static_cast<double>(std::max<Dim>(rows, 1)), [&](Dim begin, Dim end) {
      std::fill(to + begin * width, to + end * width, T{0});
      const T* from = dout;
      for (const std::int64_t id : ids) {
        if (id >= begin && id < end && !IsPadding(id, padding_)) {
          T* const row = to + id * width;
          for (Dim j = 0; j < width; ++j) row[j] += from[j];
        }
        from += width;
      }
    });
  }

  std::string type_;
  In<"Ids"> ids_;
  In<"Out@GRAD"> dout_;
  Out<"W@GRAD"> dw_;
  NamedOperand w_;
  Shape table_;
  Shape listed_;  // the shape of the rows of a sparse gradient
  std::int64_t padding_ = -1;
  bool table_is_rows_ = false, lists_rows_ = false;
  bool by_id_ = false;
};

void AddLookup(OpRegistry& ops, const std::string& type, const std::string& ids_doc, bool in_place_attr) {
  OpDef& def = ops.Add(type)
                   .Doc("Looks up rows of a table by id.", kDoc)
                   .Input("W", "the table, [rows, width], or selected rows of one",
                          OneOfTypes<float, double, std::int8_t>(), TensorOrRows())
                   .Input("Ids", ids_doc, Only(DType::kInt64))
                   .Output("Out", "the shape of the ids, then the width of W", SameTypeAs("W"))
                   .Attr("is_sparse", false, "whether the gradient of W is selected rows")
                   .Attr("is_distributed", false, "whether the rows may be sharded over pservers by id")
                   .Attr("padding_idx", std::int64_t{-1}, "the id that yields zeros; -1: none");
  def.ImplicitAttr("row_policy", std::string(),
                   "which rows pservers keep of a table sharded by id: framework/text/row_policy.h");
  if (in_place_attr) def.Attr("grad_inplace", false, kNoEffect);
  def.Attr("remote_prefetch", false, "whether trainers may request single rows from pservers")
      .Attr("trainer_id", 0, kNoEffect)
      .Attr("height_sections", std::vector<std::int64_t>(), kNoEffect)
      .Attr("epmap", std::vector<std::string>(), kNoEffect)
      .Attr("table_names", std::vector<std::string>(), kNoEffect)
      .InferShape(InferLookup)
      .KernelTypeFrom("W")
      .Kernel<Cpu, LookupKernel, float, double, std::int8_t>()
      .Grad({.reads = {"Ids", "W"}, .yields = {"W"}, .sparse = {"W"}, .apart = {"W"}})
      .GradKernel<Cpu, LookupGradKernel, float, double>();
  def.GradDef().KernelTypeFrom("Out@GRAD").InferShape(InferLookupGrad);
}

}  // namespace

void RegisterLookupTable(OpRegistry& ops) {
  AddLookup(ops, "lookup_table", "row numbers; the last dimension is 1", true);
  AddLookup(ops, "lookup_table_v2", "row numbers", false);
}

}  // namespace penstock
