// Helpers for tests of whole programs: read programs and arrays of the corpus, fill scopes and feeds from
// arrays, compare tensors by element.
#pragma once

#include <string>
#include <vector>

#include "executor/schedule/executor.h"
#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "tests/support/npz.h"

namespace penstock::test {

// Reads a program (`path` or `path` + ".gz"), or an archive of arrays. Ends the process if the file cannot be
// read.
Program ProgramOf(const std::string& path);
Arrays ArraysOf(const std::string& path);

void SetTensor(Scope& scope, const std::string& name, const Tensor& value);
// The feeds `<prefix><name>` of `arrays`, with the LoD of `<prefix><name>:lens` (sequence lengths) if it
// exists.
std::vector<exec::Feed> FeedsOf(const Arrays& arrays, const std::string& prefix,
                                const std::vector<std::string>& names);

// Ok if both have the same count and |a - b| <= atol + rtol * |b| everywhere; element types may differ.
Status NearValues(const std::string& what, const Tensor& a, const Tensor& b, double rtol, double atol);

}  // namespace penstock::test
