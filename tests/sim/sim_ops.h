// A few simple ops, enough for optimize blocks without operators/ and the executor.
#pragma once

#include <functional>

#include "framework/op/op_registry.h"
#include "framework/runtime/block_runner.h"

namespace penstock::test {

// sum, scale, elementwise_add, _sub, _mul, ref_by_trainer_id, sgd, momentum, adam; and broken, an optimizer
// that fails when it runs.
const OpRegistry& SimOps();

class SimBlockRunner : public BlockRunner {
 public:
  Status RunBlock(const Program& program, int block, Scope& scope) override;
  std::function<void(const Program&, int block, Scope&)> before;  // called before each block runs
  // Called in the middle of each update, when one half of the parameter is new and the other old, to run
  // other events at that time.
  std::function<void()> meanwhile = [] {};
  Result<std::unique_ptr<PreparedBlock>> PrepareBlock(const Program& program, int block,
                                                      std::vector<std::string> keeps) override;
};

}  // namespace penstock::test
