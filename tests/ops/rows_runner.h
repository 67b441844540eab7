// Runs one op on variables of any kind (selected rows, arrays, rank tables) without an executor, and computes
// the dense update that corresponds to an update by rows.
//
//   Variables variables = ReadVariables(arrays, "in:");
//   PENSTOCK_RETURN_IF_ERROR(RunTwice(op, variables));      // afterwards `variables` contains the outputs
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/ir/op.h"
#include "framework/tensor/variable.h"
#include "tests/support/npz.h"
#include "tests/support/op_harness.h"

namespace penstock::test {

using Variables = std::map<std::string, std::unique_ptr<Variable>>;

// Reads the variables of a case of the corpus: `in:x` is a tensor; `in:x:rows`, `:value` and `:height` are
// selected rows.
Variables ReadVariables(const Arrays& arrays, const std::string& prefix);

// Runs the op on `variables` and adds its outputs to them. Runs it twice, because a kernel keeps memory
// between runs, and restores variables that it changes in place in between. Calls `second` when the second
// run begins and ends.
Status RunTwice(const Op& op, Variables& variables, const SecondRun& second = {});
// Does the same, and fails the test if the second run allocates memory.
Status RunWithoutAllocating(const std::string& name, const Op& op, Variables& variables);

// The dense tensor of `rows`; `like` is its shape if `rows` is empty.
Tensor Densify(const SelectedRows& rows, const Shape& like = {});
// The given rows of a tensor, as selected rows.
SelectedRows SomeRowsOf(const Tensor& tall, const std::vector<std::int64_t>& rows);

// The outputs of an optimizer op after its gradient is converted to dense. With lazy_mode, rows that the
// gradient does not list keep their values.
Result<Variables> DenseUpdate(const Op& op, const Variables& in);

}  // namespace penstock::test
