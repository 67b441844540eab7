// The job linear_sgd_sync of the corpus: two trainers and two pservers with little computation, for tests of
// processes and failures.
#pragma once

#include <string>
#include <vector>

#include "tests/support/corpus.h"
#include "tests/support/reference_job.h"
#include "tests/support/run_program.h"

namespace penstock::test {

// The programs of both trainers ("trainer") or both pservers ("pserver").
inline std::vector<RolePrograms> Roles(const std::string& kind) {
  const std::string folder = CorpusOrSelection() + "/open/dist_numeric/linear_sgd_sync/";
  std::vector<RolePrograms> roles;
  for (const char* suffix : {"_0.pb", "_1.pb"}) {
    roles.push_back({ProgramOf(folder + kind + "_startup" + suffix), ProgramOf(folder + kind + suffix)});
  }
  return roles;
}

inline Tensor Constant(const Shape& shape, float value) {
  Tensor tensor(DType::kFp32, shape);
  for (float& element : tensor.Span<float>()) element = value;
  return tensor;
}

}  // namespace penstock::test
