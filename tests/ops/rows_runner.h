// One op on variables of any kind (selected rows, arrays, rank tables), run by hand; and the dense update
// that rows stand for.
//
//   Variables variables = ReadVariables(arrays, "in:");
//   PENSTOCK_RETURN_IF_ERROR(RunTwice(op, variables));      // the outputs are in `variables` then
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

// Variables of a case of the corpus: `in:x` is a tensor, `in:x:rows`, `:value` and `:height` are rows.
Variables ReadVariables(const Arrays& arrays, const std::string& prefix);

// Runs the op on the variables, which get its outputs; twice, because a kernel keeps memory between runs.
// What it works on in place is put back in between. `second` is told when the second run begins and ends.
Status RunTwice(const Op& op, Variables& variables, const SecondRun& second = {});
// The same; a test fails if the second run allocates: what a kernel needs it has from its first one.
Status RunWithoutAllocating(const std::string& name, const Op& op, Variables& variables);

// The tall tensor that rows stand for; `like` says its shape where they have no values.
Tensor Densify(const SelectedRows& rows, const Shape& like = {});
// Those rows of a tensor.
SelectedRows SomeRowsOf(const Tensor& tall, const std::vector<std::int64_t>& rows);

// The outputs of an optimizer op whose gradient is made dense first. Rows that it did not list keep what they
// had if the op has lazy_mode set.
Result<Variables> DenseUpdate(const Op& op, const Variables& in);

}  // namespace penstock::test
