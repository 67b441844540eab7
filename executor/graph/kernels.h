// The kernels of a frame. A kernel keeps state between its runs, and its services may be those of one place,
// so each frame has kernels of its own. They are prepared for the types that the plan has found: nothing is
// inferred again.
#pragma once

#include <memory>
#include <vector>

#include "framework/base/status.h"
#include "framework/op/kernel.h"

namespace penstock::exec {

struct Specialisation;

// By step; null: the plan has none, or this frame leaves the step out.
using Kernels = std::vector<std::unique_ptr<Kernel>>;

// Which of several places of a process runs a frame.
enum class PlaceKind {
  kFirst,  // or the only one
  kLater,  // leaves out the instructions that the first place runs alone
};

// Thread-safe for one plan. `services`: with as many threads as the plan was made for. Errors of kernels'
// Prepare.
Result<Kernels> PrepareKernels(const Specialisation& plan, const Services& services,
                               PlaceKind place = PlaceKind::kFirst);

// Removes the kernels of instructions that only the first place runs.
void RemoveKernelsOfFirstPlace(const Specialisation& plan, Kernels& kernels);

}  // namespace penstock::exec
