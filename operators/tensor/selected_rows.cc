// merge_selected_rows, get_tensor_from_selected_rows, extract_rows, split_selected_rows: merge selected rows,
// convert them to tensors, and split them.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "framework/op/op_registry.h"
#include "framework/roles/views.h"
#include "operators/common/merge_rows.h"

namespace penstock {
namespace {

constexpr char kMergeDoc[] = R"(
Out has each row of X once, with the sum of its values in the order of X. The rows are in ascending order if a
row occurs more than once in X, otherwise in the order of X.)";

constexpr char kTensorDoc[] = R"(
Out holds the values of X in order, one row for each row that X lists. Their number is known only at run
time.)";

constexpr char kSplitDoc[] = R"(
Out[i] receives the rows of X that fall into section i of the dense tensor, which is height_sections[i] rows
high. They are numbered from the beginning of the section, in the order of X. A row beyond all sections is an
error.)";

// Out is not selected rows, but represents a tensor of the same shape.
std::function<Status(InferContext&)> ShareAs(VarKind kind) {
  return [kind](InferContext& c) {
    PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "Out"));
    c.SetKind("Out", kind);
    return OkStatus();
  };
}

template <typename Device, typename T>
class MergeKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    values_.Prepare(k.Input("X"), k.Output("Out"));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(values_.Load<T>(k, "merge_selected_rows"));
    if (values_.From(k).bytes() > 0) values_.To(k).CopyFrom(values_.From(k));
    return OkStatus();
  }

 private:
  DenseOrMergedRows values_;
};

template <typename Device, typename T>
class ValuesKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const SelectedRows& x = k.Var(x_).As<SelectedRows>();
    PENSTOCK_RETURN_IF_ERROR(RequireRowValues("get_tensor_from_selected_rows", "X", x, DTypeOfT<T>::kValue));
    Tensor& out = k.Var(out_).As<Tensor>();
    out.Reset(DTypeOfT<T>::kValue, x.value.initialized() ? x.value.shape() : NoRows());
    if (out.count() > 0) out.CopyFrom(x.value);
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
};

constexpr char kIdsDoc[] = R"(
Out holds the numbers of the rows that X lists, in the order of X, as a column. Their number is known only at
run time.)";

Status InferIds(InferContext& c) {
  c.SetKind("Out", VarKind::kTensor);
  return c.SetShape("Out", {kUnknownDim, 1});
}

template <typename Device, typename T>
class IdsKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const std::vector<std::int64_t>& rows = k.Var(x_).As<SelectedRows>().rows;
    shape_.Set(0, static_cast<Dim>(rows.size()));
    Tensor& out = k.Var(out_).As<Tensor>();
    out.Reset(DType::kInt64, shape_);
    std::ranges::copy(rows, out.Data<std::int64_t>());
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
  Shape shape_{0, 1};
};

// The beginning of each section, and the end of the last one.
std::vector<std::int64_t> Bounds(const std::vector<std::int64_t>& sections) {
  std::vector<std::int64_t> bounds(sections.size() + 1, 0);
  std::partial_sum(sections.begin(), sections.end(), bounds.begin() + 1);
  return bounds;
}

Status InferSplit(InferContext& c) {
  const auto sections = c.Attr<std::vector<std::int64_t>>("height_sections");
  if (static_cast<int>(sections.size()) != c.OutputCount("Out")) {
    return c.Error("height_sections has ", sections.size(), " sections for ", c.OutputCount("Out"),
                   " variables in Out");
  }
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 0));
  for (int i = 0; i < c.OutputCount("Out"); ++i) {
    PENSTOCK_RETURN_IF_ERROR(
        c.SetShape("Out", i, c.ShapeOf("X").WithRows(sections[static_cast<std::size_t>(i)])));
    c.SetKind("Out", VarKind::kSelectedRows, i);
  }
  return OkStatus();
}

template <typename Device, typename T>
class SplitKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_);
    outs_.assign(k.Outputs("Out").begin(), k.Outputs("Out").end());
    // All outputs are filled at the same time.
    for (std::size_t i = 1; i < outs_.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (outs_[i].index == outs_[j].index)
          return k.Error("Out names ", k.Outputs("Out")[i].name, " twice");
      }
    }
    bounds_ = Bounds(std::vector<std::int64_t>(roles::SplitView(k.op()).sections()));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const SelectedRows& x = k.Var(x_).As<SelectedRows>();
    for (const std::int64_t row : x.rows) {
      if (row >= 0 && row < bounds_.back()) continue;
      return InvalidArgument("E-op-index", "split_selected_rows: row ", row,
                             " is outside the sections, which hold ", bounds_.back());
    }
    PENSTOCK_RETURN_IF_ERROR(RequireRows("split_selected_rows", "X", x, DTypeOfT<T>::kValue));
    Place(x);
    ShapeOuts(k, x);
    const Dim width = shape_.rank() == 0 ? 0 : shape_.RowWidth();
    const T* from = x.value.initialized() ? x.value.Data<T>() : nullptr;
    for (std::size_t i = 0; i < x.rows.size(); ++i, from += width) {
      Part& part = parts_[of_row_[i]];
      *part.row++ = x.rows[i] - part.begin;
      part.values = std::copy_n(from, width, part.values);
    }
    return OkStatus();
  }

 private:
  struct Part {
    std::int64_t begin;           // beginning of the section
    std::size_t count;            // number of rows in the section
    std::int64_t* row = nullptr;  // position of the next row
    T* values = nullptr;
  };

  // Rows are in any order: a branch on the section of a row would be mispredicted; therefore the code counts
  // the section bounds below it.
  void Place(const SelectedRows& x) {
    parts_.resize(outs_.size());
    for (std::size_t s = 0; s < parts_.size(); ++s) parts_[s] = {.begin = bounds_[s], .count = 0};
    of_row_.resize(x.rows.size());
    for (std::size_t i = 0; i < x.rows.size(); ++i) {
      of_row_[i] = SectionOf(x.rows[i]);
      ++parts_[of_row_[i]].count;
    }
  }

  std::uint32_t SectionOf(std::int64_t row) const {
    constexpr std::size_t kFew = 16;
    if (outs_.size() > kFew)
      return static_cast<std::uint32_t>(std::ranges::upper_bound(bounds_, row) - bounds_.begin() - 1);
    std::uint32_t section = 0;
    for (std::size_t s = 1; s < outs_.size(); ++s) section += row >= bounds_[s] ? 1 : 0;
    return section;
  }

  void ShapeOuts(KernelRun& k, const SelectedRows& x) {
    shape_ = x.value.initialized() ? x.value.shape() : NoRows();
    for (std::size_t s = 0; s < outs_.size(); ++s) {
      Part& part = parts_[s];
      SelectedRows& out = k.Var(outs_[s]).template As<SelectedRows>();
      out.height = bounds_[s + 1] - bounds_[s];
      out.rows.resize(part.count);
      shape_.Set(0, static_cast<Dim>(part.count));
      out.ResetValue(DTypeOfT<T>::kValue, shape_);
      part.row = out.rows.data();
      part.values = out.value.template Data<T>();
    }
  }

  std::vector<Part> parts_;
  std::vector<std::uint32_t> of_row_;  // the section of each row
  In<"X"> x_;
  std::vector<Operand> outs_;
  std::vector<std::int64_t> bounds_;
  Shape shape_;  // the shape of an output; kept for its memory
};

// Each row of the result comes from the same row of X.
OnSlices ByRows(const Op&) { return OnSlices::kByRows; }

}  // namespace

void RegisterSelectedRows(OpRegistry& ops) {
  ops.Add("merge_selected_rows")
      .Doc("Merges duplicate rows of selected rows.", kMergeDoc)
      .Input("X", "selected rows", Floats(), OfKind(VarKind::kSelectedRows))
      .Output("Out", "selected rows of the same dense tensor", SameTypeAs("X"),
              OfKind(VarKind::kSelectedRows))
      .InferShape(ShareAs(VarKind::kSelectedRows))
      .WhenSliced(ByRows)
      .Kernel<Cpu, MergeKernel, float, double>()
      .NoGrad();
  ops.Add("get_tensor_from_selected_rows")
      .Doc("Converts the values of selected rows to a tensor.", kTensorDoc)
      .Input("X", "selected rows", Numbers(), OfKind(VarKind::kSelectedRows))
      .Output("Out", "one row for each row that X lists", SameTypeAs("X"))
      .InferShape(ShareAs(VarKind::kTensor))
      .WhenSliced(ByRows)
      .Kernel<Cpu, ValuesKernel, float, double, std::int32_t, std::int64_t>()
      .NoGrad();
  ops.Add("extract_rows")
      .Doc("Converts the row numbers of selected rows to a tensor.", kIdsDoc)
      .Input("X", "selected rows", Floats(), OfKind(VarKind::kSelectedRows))
      .Output("Out", "[rows that X lists, 1]", Only(DType::kInt64))
      .InferShape(InferIds)
      .Kernel<Cpu, IdsKernel, float, double>()
      .NoGrad();
  ops.Add("split_selected_rows")
      .Doc("Splits selected rows into sections of the dense tensor.", kSplitDoc)
      .Input("X", "selected rows", Floats(), OfKind(VarKind::kSelectedRows))
      .Output("Out", "selected rows, one variable per section", SameTypeAs("X"),
              Repeated() | OfKind(VarKind::kSelectedRows))
      .Attr("height_sections", std::vector<std::int64_t>(), "the height of each section", AtLeast(0))
      .InferShape(InferSplit)
      .Kernel<Cpu, SplitKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
