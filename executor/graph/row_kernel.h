// The kernel of an instruction that runs several ops by rows (row_chain.h).
#pragma once

#include <memory>

#include "executor/graph/row_chain.h"
#include "framework/op/kernel.h"

namespace penstock::exec {

// Each thread runs the ops' own kernels on consecutive parts of the rows, which fit a near cache, and has
// kernels and temporaries of its own.
std::unique_ptr<Kernel> NewRowKernel(std::shared_ptr<const RowChain> chain);

}  // namespace penstock::exec
