// Numbers that a program gives as an attribute, as one tensor, or as a list of tensors of one element each
// (Fluid's starts, ends, expand_times, paddings). A tensor takes precedence over the list, and the list over
// the attribute. Numbers from tensors are known only when the op runs. Before that, the attribute may hold
// the numbers that are known already, with -1 for the others.
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

// Returns whether the numbers are known when the program is built.
inline bool IsKnownList(const InferContext& c, std::string_view tensor, std::string_view list) {
  return !c.HasInput(tensor) && !c.HasInput(list);
}

// Returns how many numbers the tensors hold; kUnknownDim if that is not known.
inline Dim ListSize(const InferContext& c, std::string_view tensor, std::string_view list) {
  return c.HasInput(tensor) ? c.ShapeOf(tensor).Count() : c.InputCount(list);
}

// Stores element `at` of an operand of i32 or i64 in `to`. kInvalidArgument E-op-int-list: there is no such
// element, the operand has another element type, or the value does not fit Integer.
template <typename Integer>
Status ReadInteger(const std::string& op, KernelRun& k, const NamedOperand& operand, Dim at, Integer& to) {
  const Tensor& tensor = k[operand];
  if (at >= tensor.count()) {
    return InvalidArgument("E-op-int-list", op, ": ", operand.name, " holds ", tensor.count(),
                           " numbers; there must be ", at + 1);
  }
  if (tensor.dtype() == DType::kInt32) {
    to = static_cast<Integer>(tensor.Data<std::int32_t>()[at]);
    return OkStatus();
  }
  if (tensor.dtype() != DType::kInt64) {
    return InvalidArgument("E-op-int-list", op, ": ", operand.name, " must hold i32 or i64, not ",
                           DTypeName(tensor.dtype()));
  }
  const std::int64_t value = tensor.Data<std::int64_t>()[at];
  to = static_cast<Integer>(value);
  if (to == value) return OkStatus();
  return InvalidArgument("E-op-int-list", op, ": ", operand.name, " holds ", value,
                         ", which does not fit 32 bits");
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
      values_.resize(static_cast<std::size_t>(k.Input(tensor).shape.Count()));
    } else if (!list_.empty()) {
      values_.resize(list_.size());
    }
  }

  bool known() const { return !tensor_ && list_.empty(); }
  const std::vector<Integer>& values() const { return values_; }

  Status Read(KernelRun& k) {
    if (tensor_) {
      for (std::size_t i = 0; i < values_.size(); ++i) {
        PENSTOCK_RETURN_IF_ERROR(ReadInteger(type_, k, tensor_, static_cast<Dim>(i), values_[i]));
      }
      return OkStatus();
    }
    for (std::size_t i = 0; i < list_.size(); ++i) {
      const Tensor& tensor = k[list_[i]];
      if (tensor.count() != 1) {
        return InvalidArgument("E-op-int-list", type_, ": ", list_[i].name, " (", tensor.shape(),
                               ") must hold one element");
      }
      PENSTOCK_RETURN_IF_ERROR(ReadInteger(type_, k, list_[i], 0, values_[i]));
    }
    return OkStatus();
  }

 private:
  std::string type_;
  std::vector<Integer> values_;
  NamedOperand tensor_;
  std::vector<NamedOperand> list_;
};
using IntList = ListOf<std::int32_t>;

// One number, from an attribute or from a tensor of one element (Fluid's axis).
class GivenInt {
 public:
  Status Prepare(const KernelSetup& k, const char* attr, const char* tensor) {
    type_ = k.op().type();
    value_ = k.Attr<std::int32_t>(attr);
    const Argument& given = k.Input(tensor);
    tensor_ = given;
    if (!given || given.shape.Count() == 1) return OkStatus();
    return k.Error(tensor, " (", given.shape, ") must hold one element");
  }
  bool known() const { return !tensor_; }
  std::int32_t value() const { return value_; }
  Status Read(KernelRun& k) { return tensor_ ? ReadInteger(type_, k, tensor_, 0, value_) : OkStatus(); }

 private:
  std::string type_;
  std::int32_t value_ = 0;
  NamedOperand tensor_;
};

// Makes an output whose shape is known only in Run. Keeps its memory if type and shape have not changed.
inline void MakeShaped(Tensor& out, DType type, const Shape& shape) {
  if (!out.initialized() || out.dtype() != type || out.shape() != shape) out.Reset(type, shape);
}

}  // namespace penstock
