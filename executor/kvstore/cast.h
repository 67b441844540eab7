// Copies of tensors in other types, and sums, for values of a key-value store.
//
//   Tensor sum = SumOf(values, DType::kFp32, SumOrder::kLeftToRight);
//   CastInto(value, out);
#pragma once

#include <cstddef>
#include <span>

#include "framework/tensor/tensor.h"

namespace penstock::kvstore {

// Whether a store holds values of the type: f16, f32, f64, i8, i16, i32, i64, u8.
bool CanStore(DType type);
// The type in which the store keeps and sums them: f32 for f16, else the same.
DType KeptType(DType type);

// Converts all elements to out's type and writes them there. Both types can be stored, and both tensors have
// equally many elements. Floats become integers by truncation.
void CastInto(const Tensor& from, Tensor& out);

// Adds `count` elements of a type in which values are kept. Integers wrap.
void AddElements(DType type, const std::byte* more, std::byte* sum, std::size_t count);

// As MXNet adds the values of several devices: one after the other, or the first with sums of four others.
enum class SumOrder { kLeftToRight, kInFours };
// The sum of tensors of one shape, whose types can be stored, as a new tensor of type `type`. Integers wrap.
Tensor SumOf(std::span<const Tensor> values, DType type, SumOrder order);

}  // namespace penstock::kvstore
