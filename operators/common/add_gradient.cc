#include "operators/common/add_gradient.h"

#include <cstring>
#include <utility>

#include "framework/base/strings.h"
#include "operators/common/parallel.h"

namespace penstock {
namespace {

template <typename T>
void AddAll(const Tensor& part, Tensor& sum) {
  const T* const from = part.Data<T>();
  T* const to = sum.Data<T>();
  ForElements(sum.count(), StreamNs<T>(3), [&](Dim begin, Dim end) {
    for (Dim i = begin; i < end; ++i) to[i] += from[i];
  });
}

Status AddRows(SelectedRows& part, SelectedRows& sum) {
  if (part.rows.empty()) return OkStatus();
  if (sum.rows.empty()) {
    sum = std::move(part);
    return OkStatus();
  }
  const auto whole = [](const SelectedRows& rows) {
    return rows.value.initialized() && rows.value.shape().rank() > 0 &&
           rows.value.shape()[0] == static_cast<Dim>(rows.rows.size());
  };
  const bool match = whole(part) && whole(sum) && part.height == sum.height &&
                     part.value.dtype() == sum.value.dtype() &&
                     part.value.shape().RowWidth() == sum.value.shape().RowWidth();
  if (!match) return InvalidArgument("E-op-gradient", "rows of ", part.height, " and of ", sum.height);
  // One after the other: rows that are named twice add up.
  const std::int64_t rows = static_cast<std::int64_t>(sum.rows.size() + part.rows.size());
  Tensor joined(sum.value.dtype(), sum.value.shape().WithRows(rows));
  std::memcpy(joined.raw(), sum.value.raw(), sum.value.bytes());
  std::memcpy(joined.raw() + sum.value.bytes(), part.value.raw(), part.value.bytes());
  sum.value = std::move(joined);
  sum.rows.insert(sum.rows.end(), part.rows.begin(), part.rows.end());
  return OkStatus();
}

Status AddArray(TensorArray& part, TensorArray& sum) {
  if (sum.size() < part.size()) sum.resize(part.size());
  for (std::size_t i = 0; i < part.size(); ++i) PENSTOCK_RETURN_IF_ERROR(AddGradient(part[i], sum[i]));
  return OkStatus();
}

// The gradient of a table of which no row was read. A trainer whose pservers hold the table has only its
// height and the width of its rows.
Status ZeroRows(const Variable& table, SelectedRows& grad) {
  const auto* remote = table.If<SelectedRows>();
  const Tensor* like = remote == nullptr ? table.If<Tensor>() : &remote->value;
  if (like == nullptr || !like->initialized() || like->shape().rank() == 0)
    return FailedPrecondition("E-op-no-value", "a variable without a value has no gradient");
  grad.rows.clear();
  grad.height = remote == nullptr ? like->shape()[0] : remote->height;
  grad.ResetValue(like->dtype(), like->shape().WithRows(0));
  return OkStatus();
}

}  // namespace

Status AddGradient(Tensor& part, Tensor& sum) {
  if (!part.initialized()) return OkStatus();
  if (!sum.initialized()) {
    sum = part.Clone();
    return OkStatus();
  }
  if (part.dtype() != sum.dtype() || part.shape() != sum.shape()) {
    return InvalidArgument("E-op-gradient", "a gradient ", DTypeName(part.dtype()), part.shape(),
                           " cannot be added to one ", DTypeName(sum.dtype()), sum.shape());
  }
  switch (sum.dtype()) {
    case DType::kFp32:
      AddAll<float>(part, sum);
      return OkStatus();
    case DType::kFp64:
      AddAll<double>(part, sum);
      return OkStatus();
    case DType::kInt32:
      AddAll<std::int32_t>(part, sum);
      return OkStatus();
    case DType::kInt64:
      AddAll<std::int64_t>(part, sum);
      return OkStatus();
    default:
      return InvalidArgument("E-op-gradient", "gradients of ", DTypeName(sum.dtype()), " do not add up");
  }
}

Status AddGradient(Variable& part, Variable& sum) {
  if (auto* tensor = part.If<Tensor>()) return AddGradient(*tensor, sum.As<Tensor>());
  if (auto* rows = part.If<SelectedRows>()) return AddRows(*rows, sum.As<SelectedRows>());
  if (auto* array = part.If<TensorArray>()) return AddArray(*array, sum.As<TensorArray>());
  return InvalidArgument("E-op-gradient", "what a block gave as a gradient is none");
}

Status AddArrays(std::span<const TensorArray* const> arrays, TensorArray& sum) {
  TensorArray total;
  for (const TensorArray* array : arrays) {
    TensorArray part = *array;  // shares the elements, which are only read
    PENSTOCK_RETURN_IF_ERROR(AddArray(part, total));
  }
  sum = std::move(total);
  return OkStatus();
}

Status ZeroGradient(const Variable& forward, Variable& grad, VarKind kind) {
  if (forward.Is<TensorArray>()) {
    grad.As<TensorArray>().clear();
    return OkStatus();
  }
  if (kind == VarKind::kSelectedRows) return ZeroRows(forward, grad.As<SelectedRows>());
  const Tensor* like = forward.If<Tensor>();
  if (like == nullptr || !like->initialized())
    return FailedPrecondition("E-op-no-value", "a variable without a value has no gradient");
  Tensor zeros(like->dtype(), like->shape());
  if (zeros.bytes() > 0) std::memset(zeros.raw(), 0, zeros.bytes());
  zeros.ShareLod(*like);
  grad.As<Tensor>() = std::move(zeros);
  return OkStatus();
}

void CopyTensor(const Tensor& from, Tensor& to) {
  if (!from.initialized()) {
    to = Tensor();
    return;
  }
  to.Reset(from.dtype(), from.shape());
  if (from.bytes() > 0) std::memcpy(to.raw(), from.raw(), from.bytes());
  to.ShareLod(from);
}

void CopyVariable(const Variable& from, Variable& to) {
  if (const auto* tensor = from.If<Tensor>()) {
    CopyTensor(*tensor, to.As<Tensor>());
    return;
  }
  to = from;
  if (auto* rows = to.If<SelectedRows>()) rows->value = rows->value.Clone();
  if (auto* array = to.If<TensorArray>()) {
    for (Tensor& element : *array) element = element.Clone();
  }
}

}  // namespace penstock
