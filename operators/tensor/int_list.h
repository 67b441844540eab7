// A list of numbers that a program gives as an attribute, as one tensor, or as a list of tensors of one
// element each (Fluid's starts, ends, expand_times, paddings). A tensor, where given, wins over the list, and
// the list over the attribute. Numbers of tensors are known only when the op runs.
//
//   IntList starts_;
//   // Prepare:   starts_.Prepare(k, "starts", "StartsTensor", "StartsTensorList");
//   // Run:       PENSTOCK_RETURN_IF_ERROR(starts_.Read(k));  ... starts_.values() ...
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/op/infer_context.h"
#include "framework/op/kernel.h"

namespace penstock {

// Whether the numbers are known when the program is built.
inline bool IsKnownList(const InferContext& c, std::string_view tensor, std::string_view list) {
  return !c.HasInput(tensor) && !c.HasInput(list);
}

template <typename Integer>
class ListOf {
 public:
  void Prepare(const KernelSetup& k, const char* attr, const char* tensor, const char* list) {
    type_ = k.op().type();
    values_ = k.Attr<std::vector<Integer>>(attr);
    tensor_ = k.Input(tensor);
    list_.assign(k.Inputs(list).begin(), k.Inputs(list).end());
    if (tensor_) {
      values_.resize(static_cast<std::size_t>(tensor_.shape.Count()));
    } else if (!list_.empty()) {
      values_.resize(list_.size());
    }
  }

  bool known() const { return !tensor_ && list_.empty(); }
  const std::vector<Integer>& values() const { return values_; }

  Status Read(KernelRun& k) {
    if (tensor_) {
      const Tensor& tensor = k[tensor_];
      for (std::size_t i = 0; i < values_.size(); ++i) {
        PENSTOCK_RETURN_IF_ERROR(Take(tensor, static_cast<Dim>(i), tensor_, i));
      }
      return OkStatus();
    }
    for (std::size_t i = 0; i < list_.size(); ++i) {
      const Tensor& tensor = k[list_[i]];
      if (tensor.count() != 1) {
        return InvalidArgument("E-op-int-list", type_, ": ", list_[i].name, " (", tensor.shape(),
                               ") must hold one element");
      }
      PENSTOCK_RETURN_IF_ERROR(Take(tensor, 0, list_[i], i));
    }
    return OkStatus();
  }

 private:
  Status Take(const Tensor& tensor, Dim at, const Operand& operand, std::size_t to) {
    if (tensor.dtype() == DType::kInt32) {
      values_[to] = static_cast<Integer>(tensor.Data<std::int32_t>()[at]);
      return OkStatus();
    }
    if (tensor.dtype() != DType::kInt64) {
      return InvalidArgument("E-op-int-list", type_, ": ", operand.name, " must hold i32 or i64, not ",
                             DTypeName(tensor.dtype()));
    }
    const std::int64_t value = tensor.Data<std::int64_t>()[at];
    values_[to] = static_cast<Integer>(value);
    if (values_[to] == value) return OkStatus();
    return InvalidArgument("E-op-int-list", type_, ": ", operand.name, " holds ", value,
                           ", which does not fit 32 bits");
  }

  std::string type_;
  std::vector<Integer> values_;
  Operand tensor_;
  std::vector<Operand> list_;
};
using IntList = ListOf<std::int32_t>;

}  // namespace penstock
