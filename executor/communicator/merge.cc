#include "executor/communicator/merge.h"

#include <cstring>
#include <utility>

namespace penstock::communicator {
namespace {

template <typename T>
void AddTo(Tensor& sum, const Tensor& more) {
  T* const into = sum.Data<T>();
  const T* const from = more.Data<T>();
  for (std::int64_t i = 0; i < sum.count(); ++i) into[i] += from[i];
}

template <typename T>
void Scale(Tensor& values, std::size_t count) {
  T* const at = values.Data<T>();
  for (std::int64_t i = 0; i < values.count(); ++i) at[i] /= static_cast<T>(count);
}

bool CanAdd(DType dtype) { return dtype == DType::kFp32 || dtype == DType::kFp64; }

void Add(Tensor& sum, const Tensor& more) {
  sum.dtype() == DType::kFp32 ? AddTo<float>(sum, more) : AddTo<double>(sum, more);
}

void Divide(Tensor& values, std::size_t count) {
  values.dtype() == DType::kFp32 ? Scale<float>(values, count) : Scale<double>(values, count);
}

// Concatenates the rows of all gradients.
SelectedRows Joined(const std::vector<Variable>& gradients) {
  SelectedRows joined;
  const auto* first = gradients.front().If<SelectedRows>();
  joined.height = first->height;
  for (const Variable& one : gradients) {
    const auto& rows = one.If<SelectedRows>()->rows;
    joined.rows.insert(joined.rows.end(), rows.begin(), rows.end());
  }
  joined.ResetValue(first->value.dtype(),
                    first->value.shape().WithRows(static_cast<Dim>(joined.rows.size())));
  std::byte* at = joined.value.raw();
  for (const Variable& one : gradients) {
    const Tensor& value = one.If<SelectedRows>()->value;
    if (value.bytes() == 0) continue;
    std::memcpy(at, value.raw(), value.bytes());
    at += value.bytes();
  }
  return joined;
}

}  // namespace

Result<Variable> Merge(std::vector<Variable> gradients, MergeRule rule) {
  if (gradients.size() == 1) return std::move(gradients.front());
  const bool rows = gradients.front().Is<SelectedRows>();
  Variable merged = rows ? Variable() : std::move(gradients.front());
  if (rows) merged.As<SelectedRows>() = Joined(gradients);
  Tensor& values = rows ? merged.As<SelectedRows>().value : merged.As<Tensor>();
  if (!CanAdd(values.dtype())) {
    return Unimplemented("E-communicator-merge", "gradients of type ", DTypeName(values.dtype()),
                         " are not merged; set communicator_max_merge_var_num to 1");
  }
  for (std::size_t i = 1; !rows && i < gradients.size(); ++i) Add(values, *gradients[i].If<Tensor>());
  if (rule == MergeRule::kMean) Divide(values, gradients.size());
  return merged;
}

}  // namespace penstock::communicator
