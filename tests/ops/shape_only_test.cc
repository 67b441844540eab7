// A gradient does not use the elements of an input that its declaration calls shape_only.
#include <gtest/gtest.h>

#include <cstring>

#include "operators/all_ops.h"
#include "tests/ops/gradient_case.h"

namespace penstock::test {
namespace {

TEST(ShapeOnly, ElementsDoNotMatter) {
  int compared = 0;
  ForEachOp([&compared](const Op& op, const Tensors& inputs) {
    Tensors changed = inputs;
    bool has_one = false;
    for (const SlotDef& slot : AllOps().Find(op.type())->inputs()) {
      if (!slot.shape_only) continue;
      for (const std::string& name : op.Input(slot.name)) {
        const auto given = inputs.find(name);
        if (given == inputs.end()) continue;
        has_one = true;
        Tensor& other = changed[name] = given->second.Clone();
        std::memset(other.raw(), 0xff, other.bytes());
      }
    }
    if (!has_one) return;
    const Result<Tensors> is = RunOp(AllOps(), op, changed), wanted = RunOp(AllOps(), op, inputs);
    ASSERT_TRUE(is.ok() && wanted.ok()) << op.type();
    for (const auto& [name, tensor] : *wanted) {
      if (!tensor.initialized()) continue;
      const Tensor& other = is->at(name);
      ASSERT_EQ(other.bytes(), tensor.bytes()) << op.type();
      EXPECT_EQ(std::memcmp(other.raw(), tensor.raw(), tensor.bytes()), 0) << op.type() << ": " << name;
    }
    ++compared;
  });
  EXPECT_GT(compared, 20);
}

}  // namespace
}  // namespace penstock::test
