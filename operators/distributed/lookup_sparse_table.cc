// lookup_sparse_table: rows of a table that holds only rows that have been requested.
#include <algorithm>
#include <vector>

#include "framework/op/op_registry.h"
#include "framework/tensor/row_start.h"
#include "operators/common/row_index.h"
#include "operators/common/rows.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[i] = the row of table W for Ids[i]; zeros if Ids[i] is padding_idx. W is selected rows: the rows that have
been created. If W does not have a row, the op creates it with auto_grown_table, and fails without it. A new
row gets the next of W's values that belong to no row yet; if there are none, it gets W's initial value for
the row (zeros if W has no rule for it). With is_test, a missing row counts as zeros and is not created. Fluid
ignores padding_idx, and creates rows without auto_grown_table, too.)";

Status InferLookup(InferContext& c) {
  const Shape& table = c.ShapeOf("W");
  // A row for each id. Fluid declares two, however many ids there are, so none is declared here.
  return c.SetShape("Out", {kUnknownDim, table.rank() == 2 ? table[1] : kUnknownDim});
}

template <typename Device, typename T>
class LookupSparseTableKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(ids_, out_);
    w_ = k.Input("W");
    padding_ = k.Attr<std::int64_t>("padding_idx");
    grows_ = k.Attr<bool>("auto_grown_table");
    is_test_ = k.Attr<bool>("is_test");
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    SelectedRows& table = k.Var(w_).template As<SelectedRows>();
    const Shape& held = table.value.shape();
    const bool has_room = table.value.initialized() && table.value.dtype() == DTypeOfT<T>::kValue &&
                          held.rank() > 0 && held[0] >= static_cast<Dim>(table.rows.size());
    if (!has_room) {
      PENSTOCK_RETURN_IF_ERROR(RequireRowValues("lookup_sparse_table", "W", table, DTypeOfT<T>::kValue));
      return FailedPrecondition("E-op-no-value", "lookup_sparse_table: W (", w_.name,
                                ") has no values, so nothing says how wide its rows are");
    }
    const auto ids = k[ids_].template Span<std::int64_t>();
    index_.Update(table.rows);
    if (grows_ && !is_test_) Grow(ids, table);
    shape_ = table.value.shape();
    shape_.Set(0, static_cast<Dim>(ids.size()));
    Tensor& out = k.Var(out_).template As<Tensor>();
    out.Reset(DTypeOfT<T>::kValue, shape_);
    const Dim width = shape_.RowWidth();
    T* to = out.template Data<T>();
    for (const std::int64_t id : ids) {
      const Dim at = IsPadding(id) ? -1 : index_.Find(id);
      if (at < 0 && !IsPadding(id) && !grows_ && !is_test_)
        return InvalidArgument("E-op-index", "lookup_sparse_table: id ", id, " is none of the ",
                               table.rows.size(), " rows of W (", w_.name, ")");
      to = at < 0 ? std::fill_n(to, width, T{0})
                  : std::copy_n(table.value.template Data<T>() + at * width, width, to);
    }
    return OkStatus();
  }

 private:
  bool IsPadding(std::int64_t id) const { return padding_ != -1 && id == padding_; }

  // Adds the rows that the table lacks, in the order of the ids, and finds them. Values that the table has
  // beyond those of its rows are room for the next ones, with what they hold, as in Fluid.
  void Grow(std::span<const std::int64_t> ids, SelectedRows& table) {
    missing_.clear();
    for (const std::int64_t id : ids) {
      if (!IsPadding(id) && index_.Find(id) < 0) missing_.push_back(id);
    }
    if (missing_.empty()) return;
    std::sort(missing_.begin(), missing_.end());
    missing_.erase(std::unique(missing_.begin(), missing_.end()), missing_.end());
    const Dim held = table.value.shape()[0], width = table.value.shape().RowWidth();
    Dim row = static_cast<Dim>(table.rows.size());
    table.rows.insert(table.rows.end(), missing_.begin(), missing_.end());
    const Dim needed = static_cast<Dim>(table.rows.size());
    index_.Update(table.rows);
    if (needed <= held) return;
    Tensor grown(DTypeOfT<T>::kValue, table.value.shape().WithRows(needed));
    std::copy_n(table.value.template Data<T>(), table.value.count(), grown.template Data<T>());
    T* to = grown.template Data<T>() + held * width;
    for (const std::int64_t id : missing_) {
      if (row++ < held) continue;
      if (table.start != nullptr) {
        table.start->Make(id, width, reinterpret_cast<std::byte*>(to));
      } else {
        std::fill_n(to, width, T{0});
      }
      to += width;
    }
    table.value = std::move(grown);
  }

  In<"Ids"> ids_;
  Out<"Out"> out_;
  NamedOperand w_;
  std::int64_t padding_ = -1;
  bool grows_ = true, is_test_ = false;
  RowIndex index_;
  std::vector<std::int64_t> missing_;
  Shape shape_;
};

}  // namespace

void RegisterLookupSparseTable(OpRegistry& ops) {
  ops.Add("lookup_sparse_table")
      .Doc("Rows of a table that grows.", kDoc)
      .Input("W", "the table's shard: selected rows", Floats(), OfKind(VarKind::kSelectedRows))
      .Input("Ids", "row numbers", Only(DType::kInt64))
      .Output("Out", "one row for each id", SameTypeAs("W"))
      .Attr("padding_idx", std::int64_t{-1}, "the id that stands for no row; -1: none")
      .Attr("auto_grown_table", true, "whether missing rows are made")
      .Attr("is_test", false, "whether missing rows are zeros that are not kept")
      .InferShape(InferLookup)
      .Kernel<Cpu, LookupSparseTableKernel, float, double>()
      .Affects({Effect::kStep})
      .NoGrad();
}

}  // namespace penstock
