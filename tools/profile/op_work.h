// What an op of a plan has to do, as far as the shapes of its arguments tell it.
//
//   const OpWork work = WorkOf(plan, 3);
//   if (work.flops) Print(*work.flops / *work.bytes);
//
// flops   of products and convolutions: their multiplications and additions, in gradients those of each
//         gradient that is computed; of elementwise ops: one for each element of the largest result
// bytes   each input read once and each output written once. Of a table, only as many rows as are looked up
#pragma once

#include <cstddef>
#include <optional>

#include "executor/graph/specialise.h"

namespace penstock::profile {

// Absent: not known.
struct OpWork {
  std::optional<double> flops;
  std::optional<double> bytes;
};

OpWork WorkOf(const exec::Specialisation& plan, std::size_t instruction);

}  // namespace penstock::profile
