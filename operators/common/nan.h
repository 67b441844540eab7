// Minimum, maximum and selection that propagate NaN. Plain comparisons do not: a comparison with NaN is
// false, so `x > 0 ? x : 0` turns NaN into 0.
//
//   out[i] = MaxOrNan(x[i], y[i]);
//   dx[i] = Choose(x[i] > y[i], dout[i], T{0}, x[i], y[i]);    // NaN if x[i] or y[i] is
#pragma once

#include <type_traits>

namespace penstock {

template <typename T>
constexpr bool IsNan(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    return x != x;
  } else {
    return false;
  }
}

// The larger (smaller) of two numbers; NaN if either is NaN.
template <typename T>
constexpr T MaxOrNan(T a, T b) {
  return a > b || IsNan(a) ? a : b;
}
template <typename T>
constexpr T MinOrNan(T a, T b) {
  return a < b || IsNan(a) ? a : b;
}

// Returns `yes` if `which` holds, else `x` if it is NaN, else `no`. `x` is the number that `which` compares,
// so `which` is false if `x` is NaN.
template <typename T>
constexpr T Choose(bool which, T yes, T no, T x) {
  return which ? yes : IsNan(x) ? x : no;
}
// The same for a `which` that compares further numbers.
template <typename T, typename... More>
constexpr T Choose(bool which, T yes, T no, T x, More... more) {
  return Choose(which, yes, Choose(false, yes, no, more...), x);
}

}  // namespace penstock
