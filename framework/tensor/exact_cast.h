// Copies numbers to another element type, and finds the first number that the type cannot hold.
//
//   if (const auto misfit = CastNumbers({NumberKind::kSigned, 8}, ids, count, DType::kInt32, out)) {
//     return InvalidArgument("E-feed-value", "element ", misfit->index, ' ', misfit->why);
//   }
//
// A number keeps its value, with one exception: a float is rounded to a shorter float type, to nearest, ties
// to even. A finite float stays finite. NaN and infinity have no value in integer types.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "framework/tensor/dtype.h"

namespace penstock {

enum class NumberKind { kBool, kSigned, kUnsigned, kFloat };

// A number type of the host, including those that tensors lack: unsigned integers, and long double.
struct NumberType {
  NumberKind kind;
  std::size_t bytes;
};

struct Misfit {
  std::size_t index;
  std::string value;
  std::string why;  // such as "is outside the range of i32, -2147483648 to 2147483647"
};

// Whether CastNumbers accepts numbers of this type.
bool IsCastable(NumberType from);

// `in` and `out` hold `count` numbers, aligned. After a misfit `out` is not completely written.
std::optional<Misfit> CastNumbers(NumberType from, const void* in, std::size_t count, DType to, void* out);

}  // namespace penstock
