// Loops of kernels, divided among the threads of the run (framework/runtime/compute_pool.h). A short loop
// stays on the calling thread, so a kernel states what an item costs and not how many threads it wants.
//
//   ForElements(count, StreamNs<T>(3), [&](Dim begin, Dim end) {
//     for (Dim i = begin; i < end; ++i) out[i] = x[i] + y[i];
//   });
//
// `body` may run on several threads at once, and each call must write its own elements only. A sum over all
// items is a sum per part, combined in the order of the parts.
#pragma once

#include <cstddef>
#include <cstring>

#include "framework/runtime/compute_pool.h"
#include "framework/tensor/shape.h"

namespace penstock {

// The cost of an element of loops that do little but read and write `arrays` arrays of T.
template <typename T>
constexpr double StreamNs(int arrays) {
  return 0.05 * static_cast<double>(sizeof(T)) * arrays;
}

// Calls body(begin, end) for consecutive parts of [0, count) that begin at whole cache lines of any type.
template <typename Body>
void ForElements(Dim count, double element_ns, const Body& body) {
  ParallelFor(count, element_ns, 64, body);
}

// Calls body(begin, end) for consecutive parts of [0, rows).
template <typename Body>
void ForRows(Dim rows, double row_ns, const Body& body) {
  ParallelFor(rows, row_ns, 1, body);
}

// As memcpy.
inline void CopyBytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  ForElements(static_cast<Dim>(bytes), StreamNs<std::byte>(2), [&](Dim begin, Dim end) {
    std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
  });
}

}  // namespace penstock
