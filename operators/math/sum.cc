// sum: the sum of any number of tensors of one shape.
#include <algorithm>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/add_gradient.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/int_list.h"
#include "operators/common/merge_rows.h"
#include "operators/common/parallel.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out = X[0] + X[1] + ..., added in the order of the arguments, so that equal arguments give bitwise equal
results. Out may be one of the arguments. An argument without elements or without a value (from a block that
did not run) is skipped. Selected rows count as the tensor that they represent. If all arguments are selected
rows, so is Out: it lists each row once, in ascending order if a row occurred twice, otherwise in the order of
the arguments. The gradient is one scale by 1 for each argument.)";

// A dimension is known if one argument knows it; two that differ are an error.
Status Merge(const InferContext& c, const Shape& next, int i, int first, Shape& shape) {
  if (!Compatible(shape, next)) {
    return c.Error("X[", i, "] (", next, ") must have the shape of X[", first, "] (", shape, ")");
  }
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] == kUnknownDim) shape.Set(d, next[d]);
  }
  return OkStatus();
}

// Adds arrays element by element: parts of the gradient of an array that is read several times.
Status InferArrays(InferContext& c) {
  for (int i = 1; i < c.InputCount("X"); ++i) {
    if (c.Input("X", i).kind != VarKind::kTensorArray)
      return c.Error("X[", i, "] is not a tensor array, but X[0] is");
  }
  c.SetKind("Out", VarKind::kTensorArray);
  c.SetLodLevel("Out", c.Input("X").lod_level);
  return c.SetShape("Out", c.ShapeOf("X"));
}

// A tensor without elements, whatever its shape.
bool AddsNothing(const TensorDesc& x) { return x.kind == VarKind::kTensor && x.shape.Count() == 0; }

// Returns the first argument that has elements; 0 if there is none.
int FirstOf(const InferContext& c) {
  for (int i = 0; i < c.InputCount("X"); ++i) {
    if (!AddsNothing(c.Input("X", i))) return i;
  }
  return 0;
}

Status InferSum(InferContext& c) {
  const auto& names = c.op().Input("X");
  const auto absent = std::ranges::find(names, kEmptyVarName);
  if (absent != names.end()) return c.Error("X[", absent - names.begin(), "] names no variable");
  if (c.Input("X").kind == VarKind::kTensorArray) return InferArrays(c);
  const int first = FirstOf(c);
  Shape shape = c.ShapeOf("X", first);
  bool all_rows = true;
  for (int i = 0; i < c.InputCount("X"); ++i) {
    if (c.Input("X", i).kind == VarKind::kTensorArray)
      return c.Error("X[", i, "] is a tensor array, but X[0] is not");
    all_rows = all_rows && c.Input("X", i).kind == VarKind::kSelectedRows;
    if (AddsNothing(c.Input("X", i))) continue;
    // Selected rows that were never assigned have only a height.
    const bool unshaped = c.Input("X", i).kind == VarKind::kSelectedRows && c.ShapeOf("X", i).rank() <= 1;
    if (shape.rank() <= 1 && c.Input("X", first).kind == VarKind::kSelectedRows) shape = c.ShapeOf("X", i);
    if (unshaped) continue;
    // A shard of a distributed table is declared with the number of its own rows, but its rows are numbered
    // as in the whole table.
    const Shape next = all_rows ? c.ShapeOf("X", i).WithRows(shape[0]) : c.ShapeOf("X", i);
    PENSTOCK_RETURN_IF_ERROR(Merge(c, next, i, first, shape));
  }
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "Out"));
  c.SetKind("Out", all_rows ? VarKind::kSelectedRows : VarKind::kTensor);
  return c.SetShape("Out", shape);
}

template <typename Device, typename T>
class SumKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    if (k.Input("X").kind == VarKind::kTensorArray) {
      array_inputs_.assign(k.Inputs("X").begin(), k.Inputs("X").end());
      arrays_.resize(array_inputs_.size());
      k.Bind(out_);
      return OkStatus();
    }
    k.Bind(out_);
    shape_ = k[out_].shape;
    for (const Argument& x : k.Inputs("X")) {
      if (x.kind == VarKind::kTensor) {
        inputs_.push_back(x);
      } else {
        row_inputs_.push_back(x);
      }
      if (x.kind != k[out_].kind && x.name == k[out_].name)
        return k.Error("Out is a tensor and cannot be X (", x.name, "), which holds selected rows");
    }
    data_.reserve(inputs_.size());
    rows_.resize(row_inputs_.size());
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    if (!arrays_.empty()) {
      for (std::size_t i = 0; i < arrays_.size(); ++i)
        arrays_[i] = &k.Var(array_inputs_[i]).template As<TensorArray>();
      return AddArrays(arrays_, k.Var(out_).template As<TensorArray>());
    }
    if (!inputs_.empty()) AddTensors(k);
    if (row_inputs_.empty()) return OkStatus();
    const Shape* tall = inputs_.empty() ? nullptr : &shape_;
    PENSTOCK_RETURN_IF_ERROR(LoadRows(k, tall));
    if (tall != nullptr) {
      AddRows(k[out_]);
    } else {
      MergeRows(k.Var(out_).template As<SelectedRows>());
    }
    return OkStatus();
  }

 private:
  // Out may be one of the arguments that are merged.
  void MergeRows(SelectedRows& out) {
    if (std::ranges::find(rows_, &out) == rows_.end()) return merger_.Merge<T>(rows_, out);
    merger_.Merge<T>(rows_, merged_);
    out.height = merged_.height;
    out.rows = merged_.rows;
    out.ResetValue(merged_.value.dtype(), merged_.value.shape());
    if (merged_.value.bytes() > 0) out.value.CopyFrom(merged_.value);
  }

  // Adds block by block in a small buffer: each argument is read once, and Out may be any of them.
  void AddTensors(KernelRun& k) {
    data_.clear();
    for (const Operand& x : inputs_) {
      const Tensor* const tensor = k.Var(x).template If<Tensor>();
      if (tensor != nullptr && tensor->initialized() && tensor->count() > 0)
        data_.push_back(tensor->template Data<T>());
    }
    MakeShaped(k[out_], DTypeOfT<T>::kValue, shape_);  // an argument without elements may be Out
    T* const out = k[out_].template Data<T>();
    const std::int64_t count = k[out_].count();
    if (data_.empty()) {
      std::fill_n(out, count, T{0});
      return;
    }
    ForElements(count, StreamNs<T>(static_cast<int>(data_.size()) + 1),
                [&](Dim begin, Dim end) { AddParts(out, begin, end); });
  }
  void AddParts(T* out, Dim from, Dim to) const {
    constexpr Dim kBlock = 1024;
    T block[kBlock];
    for (Dim begin = from; begin < to; begin += kBlock) {
      const Dim n = std::min(kBlock, to - begin);
      std::copy_n(data_[0] + begin, n, block);
      for (std::size_t a = 1; a < data_.size(); ++a) {
        const T* const x = data_[a] + begin;
        for (Dim i = 0; i < n; ++i) block[i] += x[i];
      }
      std::copy_n(block, n, out + begin);
    }
  }

  // All are rows of one tensor: that of `tall`, if it is known, otherwise that of the first argument.
  Status LoadRows(KernelRun& k, const Shape* tall) {
    const SelectedRows* first = nullptr;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const SelectedRows& rows = k.Var(row_inputs_[i]).template As<SelectedRows>();
      rows_[i] = &rows;
      if (tall != nullptr) {
        PENSTOCK_RETURN_IF_ERROR(RequireRows("sum", "X", rows, DTypeOfT<T>::kValue, *tall));
        continue;
      }
      PENSTOCK_RETURN_IF_ERROR(RequireRowValues("sum", "X", rows, DTypeOfT<T>::kValue));
      if (rows.rows.empty()) continue;  // adds nothing, whatever its height, as in Fluid
      if (rows.height != rows_.front()->height) return NotAlike(row_inputs_[i]);
      if (first == nullptr) first = &rows;
      if (rows.value.shape().rank() != first->value.shape().rank() ||
          rows.value.shape().RowWidth() != first->value.shape().RowWidth())
        return NotAlike(row_inputs_[i]);
    }
    return OkStatus();
  }
  static Status NotAlike(const NamedOperand& x) {
    return InvalidArgument("E-op-rows", "sum: X (", x.name, ") holds rows of another tensor than the first");
  }

  void AddRows(Tensor& out) {
    const Dim width = out.shape().RowWidth();
    for (const SelectedRows* x : rows_) {
      if (x->rows.empty()) continue;
      const T* from = x->value.Data<T>();
      for (const std::int64_t row : x->rows) {
        T* const to = out.Data<T>() + row * width;
        for (Dim j = 0; j < width; ++j) to[j] += from[j];
        from += width;
      }
    }
  }

  Shape shape_;  // of a dense Out
  std::vector<Operand> inputs_, array_inputs_;
  std::vector<NamedOperand> row_inputs_;
  std::vector<const TensorArray*> arrays_;  // of this run; empty if X holds no arrays
  std::vector<const T*> data_;              // of this run: the arguments that have elements
  std::vector<const SelectedRows*> rows_;   // the same
  Out<"Out"> out_;
  RowMerger merger_;
  SelectedRows merged_;  // kept for its memory
};

Result<std::vector<Op>> SumGrad(const GradRequest& request) {
  std::vector<Op> ops;
  const std::string dout = request.grad_of(request.forward.OutputName("Out"));
  for (const std::string& x : request.forward.Input("X")) {
    const std::string dx = request.grad_of(x);
    if (dx.empty()) continue;
    Op scale("scale");
    scale.AddInput("X", {dout}).AddOutput("Out", {dx}).Set("scale", 1.0f);
    ops.push_back(std::move(scale));
  }
  return ops;
}

}  // namespace

void RegisterSum(OpRegistry& ops) {
  ops.Add("sum")
      .Doc("The sum of its arguments.", kDoc)
      .Input("X", "tensors of one shape, or rows of such tensors", Numbers(),
             Repeated() | OfKind(VarKind::kTensor, VarKind::kSelectedRows, VarKind::kTensorArray))
      .Output("Out", "their sum", SameTypeAs("X"),
              OfKind(VarKind::kTensor, VarKind::kSelectedRows, VarKind::kTensorArray))
      .Attr("use_mkldnn", false, kNoEffect)
      .InferShape(InferSum)
      .Elementwise()
      .ReadsOnlySome()
      .Kernel<Cpu, SumKernel, float, double, std::int32_t, std::int64_t>()
      .GradMadeBy(SumGrad);
}

}  // namespace penstock
