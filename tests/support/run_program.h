// What tests of whole programs share: programs and arrays of the corpus, scopes filled from arrays,
// comparison by element.
#pragma once

#include <string>
#include <vector>

#include "executor/schedule/executor.h"
#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "tests/support/npz.h"

namespace penstock::test {

// A program (or what stands under that name with ".gz") or an archive that a test has listed; fails the
// process if it cannot be read.
Program ProgramOf(const std::string& path);
Arrays ArraysOf(const std::string& path);

void SetTensor(Scope& scope, const std::string& name, const Tensor& value);
// The feeds `<prefix><name>` of `arrays`, with the LoD of `<prefix><name>:lens` (sequence lengths) if it is
// there.
std::vector<exec::Feed> FeedsOf(const Arrays& arrays, const std::string& prefix,
                                const std::vector<std::string>& names);

// Ok if both have the same count and |a - b| <= atol + rtol * |b| everywhere; element types may differ.
Status NearValues(const std::string& what, const Tensor& a, const Tensor& b, double rtol, double atol);

}  // namespace penstock::test
