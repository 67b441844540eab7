// An output whose number of rows is known only in Run.
#pragma once

#include <utility>

#include "framework/op/kernel.h"
#include "operators/common/int_list.h"

namespace penstock {

// A run with the same number of rows as the previous one allocates nothing.
class MadeRows {
 public:
  void Start(const Operand& operand, DType type, Shape shape) {
    operand_ = operand;
    type_ = type;
    shape_ = std::move(shape);
  }
  explicit operator bool() const { return static_cast<bool>(operand_); }
  Tensor& Make(KernelRun& k, Dim rows) {
    shape_.Set(0, rows);
    MakeShaped(k[operand_], type_, shape_);
    return k[operand_];
  }

 private:
  Operand operand_;
  DType type_ = DType::kFp32;
  Shape shape_;
};

}  // namespace penstock
