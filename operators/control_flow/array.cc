#include "operators/control_flow/array.h"

namespace penstock {
namespace {

// A larger index is a mistake; an array of that size would exhaust the memory of the process.
constexpr std::int64_t kElementsMax = std::int64_t{1} << 24;

}  // namespace

Result<std::size_t> ArrayIndex(KernelRun& k, const NamedOperand& index, std::string_view op) {
  const Tensor* tensor = k.Var(index).If<Tensor>();
  if (tensor == nullptr || !tensor->initialized() || tensor->count() != 1) {
    return InvalidArgument("E-op-array-index", op, ": the index ", index.name, " must hold one element");
  }
  std::int64_t value = 0;
  if (tensor->dtype() == DType::kInt64) {
    value = *tensor->Data<std::int64_t>();
  } else if (tensor->dtype() == DType::kInt32) {
    value = *tensor->Data<std::int32_t>();
  } else {
    return InvalidArgument("E-op-array-index", op, ": the index ", index.name, " is ",
                           DTypeName(tensor->dtype()), "; it must be i64");
  }
  if (value < 0 || value >= kElementsMax) {
    return InvalidArgument("E-op-array-index", op, ": the index ", index.name, " is ", value,
                           "; it must be from 0 to ", kElementsMax - 1);
  }
  return static_cast<std::size_t>(value);
}

Result<TensorArray*> ArrayIn(KernelRun& k, const NamedOperand& array, std::string_view op) {
  if (auto* found = k.Var(array).If<TensorArray>()) return found;
  return FailedPrecondition(
      "E-op-array", op, ": ", array.name,
      k.Var(array).initialized() ? " is not a tensor array" : " has no value: nothing was written to it yet");
}

}  // namespace penstock
