// A few simple ops for tests of the executor.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "executor/schedule/frame.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock::test {

// toy_add(X, Y) -> Out        the sum of two tensors of one shape
// toy_fill() -> Out           attributes shape (longs), value (float)
// toy_step(Param, Grad) -> ParamOut   Param - Grad, in place
// toy_positive(X) -> Out      the elements above 0; their number depends on values
// toy_hook(X) -> Out          copies; calls PrepareHook() when it is prepared and Hook() while it runs
// toy_fail(X) -> Out          fails when it runs
// toy_send(X)                 has a side effect: appends X to Sent()
// toy_blocks(X) -> Out        runs the block of its attribute sub_block
void RegisterToyOps(OpRegistry& ops);
const OpRegistry& ToyOps();
std::function<void()>& Hook();
std::function<void()>& PrepareHook();
std::vector<Tensor>& Sent();
std::atomic<int>& PrepareCount();

// Builds programs, one call per op.
class ToyProgram {
 public:
  Program program;
  void Data(const std::string& name, Shape shape, DType type = DType::kFp32);
  void Persistable(const std::string& name, Shape shape);
  void Temporary(const std::string& name, Shape shape, int block = 0);
  void Add(const std::string& type, std::vector<std::pair<std::string, std::string>> in,
           std::vector<std::pair<std::string, std::string>> out, int block = 0,
           std::vector<NamedAttr> attrs = {}, const std::string& location = "");
};

// out = (x + y) + x, with x, y and the temporaries h and out of shape [?, 2]
ToyProgram TwoAdds();

Tensor Values(std::vector<float> values, Shape shape = {});
Tensor Filled(const Shape& shape, float value);
// x and y of TwoAdds, each filled with one value.
std::vector<exec::Feed> TwoFeeds(Dim rows, float x, float y);

}  // namespace penstock::test
