// The rules of VerifyPlan (verify.h) for plans whose parameters arrive after the run (receive_late.h).
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "executor/graph/specialise.h"

namespace penstock::exec {

struct ArrivalFault {
  std::size_t step = 0;
  std::string rule;
};

// In a plan whose fetch_barrier leaves pulls, each variable of the scope is awaited before, or at, the first
// step that names it; a step that may find others by name awaits all; after the fetch_barrier, what was
// received is named only by joins, which await each piece that they would copy.
std::optional<ArrivalFault> FindArrivalFault(const Specialisation& plan);

}  // namespace penstock::exec
