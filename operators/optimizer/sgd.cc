// sgd: a step against the gradient.
#include "framework/op/op_registry.h"
#include "framework/op/row_rule.h"
#include "operators/common/row_index.h"
#include "operators/cuda/cuda_kernels.h"
#include "operators/optimizer/gradient.h"
#include "operators/optimizer/update.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
ParamOut = Param - LearningRate * Grad

Rows that a gradient of rows does not list do not change. Param may itself be selected rows, of a table that
grows; it must then list each row of the gradient.)";

template <typename Device, typename T>
class SgdKernel : public Kernel, public RowRule {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(grad_rows_, rate_, param_out_);
    param_ = k.Input("Param");
    is_table_ = k.Input("Param").kind == VarKind::kSelectedRows;
    if (!is_table_) return grad_.Prepare(k, WithoutGradient::kStays, {{param_, param_out_}});
    if (k[grad_rows_].kind != VarKind::kSelectedRows ||
        k.op().InputName("Param") != k.op().OutputName("ParamOut"))
      return k.Error("a Param of selected rows (", param_.name,
                     ") needs a Grad of selected rows, and ParamOut must name it");
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T rate = *k[rate_].template Data<T>();
    if (is_table_) return UpdateRows(k, rate);
    PENSTOCK_RETURN_IF_ERROR(grad_.Load(k));
    const T* const param = k[param_].template Data<T>();
    T* const out = k[param_out_].template Data<T>();
    grad_.ForEach([=](std::int64_t i, T g) { out[i] = param[i] - rate * g; });
    return OkStatus();
  }

  bool PrepareRows(const KernelSetup&) override { return true; }
  void Update(const RowStep& step, std::span<const RowOfStep> rows) const override {
    const T rate = step.Rate<T>();
    for (const RowOfStep& row : rows) {
      T* const param = row.Column<T>(step, 0);
      const T* const grad = row.Gradient<T>();
      for (Dim i = 0; i < step.width; ++i) param[i] = param[i] - rate * grad[i];
    }
  }

 private:
  Status UpdateRows(KernelRun& k, T rate) {
    SelectedRows& param = k.Var(param_).template As<SelectedRows>();
    const SelectedRows& grad = k.Var(grad_rows_).template As<SelectedRows>();
    PENSTOCK_RETURN_IF_ERROR(RequireRows("sgd", "Param", param, DTypeOfT<T>::kValue));
    PENSTOCK_RETURN_IF_ERROR(RequireRows("sgd", "Grad", grad, DTypeOfT<T>::kValue));
    const Dim width = param.value.initialized() ? param.value.shape().RowWidth() : 0;
    if (!grad.rows.empty() && grad.value.shape().RowWidth() != width)
      return InvalidArgument("E-op-rows", "sgd: rows of Grad have ", grad.value.shape().RowWidth(),
                             " elements, those of Param (", param_.name, ") ", width);
    index_.Update(param.rows);
    for (const std::int64_t row : grad.rows) {
      if (index_.Find(row) >= 0) continue;
      return InvalidArgument("E-op-index", "sgd: Grad lists row ", row, ", which Param (", param_.name,
                             ") does not have");
    }
    for (const RowMerger::Entry& entry : merger_.Distinct<T>(grad)) {
      const T* const from = entry.Values<T>();
      T* const to = param.value.template Data<T>() + index_.Find(entry.row) * width;
      for (Dim j = 0; j < width; ++j) to[j] -= rate * from[j];
    }
    return OkStatus();
  }

  bool is_table_ = false;
  In<"Grad"> grad_rows_;
  In<"LearningRate"> rate_;
  Out<"ParamOut"> param_out_;
  NamedOperand param_;
  Gradient<T> grad_;
  RowIndex index_;  // of a Param of rows
  RowMerger merger_;
};

}  // namespace

void RegisterSgd(OpRegistry& ops) {
  OpDef& def = ops.Add("sgd")
                   .Doc("A step against the gradient.", kDoc)
                   .Input("Param", "the parameter", Floats(), TensorOrRows())
                   .Input("LearningRate", "one element", SameTypeAs("Param"))
                   .Input("Grad", "the gradient; shaped like Param, or rows of such a tensor",
                          SameTypeAs("Param"), TensorOrRows())
                   .Output("ParamOut", "the parameter's new value; names Param's variable",
                           SameTypeAs("Param"), TensorOrRows())
                   .InferShape(InferUpdate)
                   .Optimizes("Param", "Grad")
                   .Elementwise()
                   .NoGrad()
                   .Kernel<Cpu, SgdKernel, float, double>();
  RegisterSgdCuda(def);
}

}  // namespace penstock
