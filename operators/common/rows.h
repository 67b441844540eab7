// Checks of selected rows in kernels, and access for ops that treat their values like those of a tensor.
#pragma once

#include <algorithm>
#include <string_view>

#include "framework/op/kernel.h"

namespace penstock {

//   RequireRows(k.op().type(), "Grad", rows, DType::kFp32, param.shape())
//
// kInvalidArgument E-op-rows unless `rows` are rows of a tensor of type `type` and shape `tall`: same height,
// and for each id one value of the tensor's width (without rows the values are not checked). kInvalidArgument
// E-op-index unless each id is a row of the tensor.
Status RequireRows(std::string_view op, std::string_view slot, const SelectedRows& rows, DType type,
                   const Shape& tall);
// The same, if the height and width of the tensor are known only from `rows`.
Status RequireRows(std::string_view op, std::string_view slot, const SelectedRows& rows, DType type);

// The same, but ids are keys and may be any int64, as in a table sharded by id. The kernel must not use them
// to address memory.
Status RequireRowValues(std::string_view op, std::string_view slot, const SelectedRows& rows, DType type);

// The shape of values without rows, whose width is not known.
const Shape& NoRows();

// Access to the values of X, a tensor or selected rows with duplicates, and to the memory of Out, for kernels
// whose Out has X's kind and shape. Out may be X.
class ValuesOf {
 public:
  void Prepare(const Argument& x, const Argument& out) {
    x_ = x;
    out_ = out;
  }
  // Reads X, and sets the rows of Out to X's. Errors: as RequireRowValues.
  template <typename T>
  Status Load(KernelRun& k, std::string_view op) {
    if (x_.kind == VarKind::kTensor) {
      from_ = &k[x_];
      to_ = &k[out_];
      return OkStatus();
    }
    const SelectedRows& x = k.Var(x_).As<SelectedRows>();
    PENSTOCK_RETURN_IF_ERROR(RequireRowValues(op, "X", x, DTypeOfT<T>::kValue));
    SelectedRows& out = k.Var(out_).As<SelectedRows>();
    if (&out != &x) {
      out.rows = x.rows;
      out.height = x.height;
      out.ResetValue(DTypeOfT<T>::kValue, x.value.initialized() ? x.value.shape() : NoRows());
    }
    from_ = &x.value;
    to_ = &out.value;
    return OkStatus();
  }
  // Call after Load in the same run.
  template <typename T>
  const T* from() const {
    return from_->initialized() ? from_->Data<T>() : nullptr;
  }
  template <typename T>
  T* to() const {
    return to_->initialized() ? to_->Data<T>() : nullptr;
  }
  std::int64_t count() const { return from_->initialized() ? from_->count() : 0; }

 private:
  TypedOperand x_, out_;
  const Tensor* from_ = nullptr;
  Tensor* to_ = nullptr;
};

}  // namespace penstock
