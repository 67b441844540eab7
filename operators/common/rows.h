// Selected rows in kernels: what must hold of them, and the ops that do to their values what they would do to
// a tensor's.
#pragma once

#include <algorithm>
#include <string_view>

#include "framework/op/kernel.h"

namespace penstock {

//   RequireRows(k.op().type(), "Grad", rows, DType::kFp32, param.shape())
//
// kInvalidArgument E-op-rows unless `rows` are rows of a tensor of that type and shape: its height, a value
// of its width for each id (of no rows the values do not matter); E-op-index unless each id is one of its
// rows.
Status RequireRows(std::string_view op, std::string_view slot, const SelectedRows& rows, DType type,
                   const Shape& tall);
// The same of rows whose tall tensor is known by them alone.
Status RequireRows(std::string_view op, std::string_view slot, const SelectedRows& rows, DType type);

// The same where a row's number is a key, not a position: in a table sharded by id, whose ids may be any
// int64. The kernel must not use it to address memory.
Status RequireRowValues(std::string_view op, std::string_view slot, const SelectedRows& rows, DType type);

// The shape of what lists no rows, and so has no width.
const Shape& NoRows();

// X's values, of a tensor or of rows as they are listed, and where the results for them go, for kernels whose
// Out is of X's kind and shape. Out may be X.
class ValuesOf {
 public:
  void Prepare(const Operand& x, const Operand& out) {
    x_ = x;
    out_ = out;
  }
  // Makes Out's rows like X's.
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
  // After Load, of the same run.
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
  Operand x_, out_;
  const Tensor* from_ = nullptr;
  Tensor* to_ = nullptr;
};

}  // namespace penstock
