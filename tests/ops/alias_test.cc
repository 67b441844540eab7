// An op with an output that names an input's variable is rejected (E-op-alias), or gives the same values as
// with separate variables.
#include <gtest/gtest.h>

#include <algorithm>

#include "operators/all_ops.h"
#include "tests/ops/gradient_case.h"

namespace penstock::test {
namespace {

// The random numbers of these ops do not depend on the output variable, but no two runs draw the same ones.
bool DrawsAnew(const Op& op) {
  return op.type().find("random") != std::string::npos || op.type() == "dropout";
}

bool Names(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// `op` with argument `i` of its output `slot` named `name`.
Op WithOutput(const Op& op, const Slot& slot, std::size_t i, const std::string& name) {
  std::vector<std::string> args(slot.args);
  args[i] = name;
  Op changed = op;
  changed.AddOutput(slot.name, ArgList(std::move(args)));
  return changed;
}

void ExpectSameInPlace(const Op& op, const Tensors& inputs, const Tensors& expected, int& aliased) {
  for (const Slot& slot : op.outputs()) {
    for (std::size_t i = 0; i < slot.args.size(); ++i) {
      const auto value = expected.find(slot.args[i]);
      if (value == expected.end() || inputs.contains(slot.args[i])) continue;
      for (const std::string& input : op.InputNames()) {
        const auto given = inputs.find(input);
        if (given == inputs.end() || Names(op.OutputNames(), input)) continue;
        if (given->second.dtype() != value->second.dtype() || given->second.count() != value->second.count())
          continue;
        const Op changed = WithOutput(op, slot, i, input);
        const Result<Tensors> made = RunOp(AllOps(), changed, inputs);
        if (!made.ok()) {
          EXPECT_EQ(made.status().id(), "E-op-alias")
              << op.type() << ": " << slot.name << " is " << input << ": " << made.status().ToString();
          continue;
        }
        ++aliased;
        for (const auto& [name, tensor] : expected) {
          const auto found = made->find(name == slot.args[i] ? input : name);
          if (found == made->end() || !tensor.initialized()) continue;
          const Status near = Near(found->second, tensor, 1e-6, 1e-9);
          EXPECT_TRUE(near.ok()) << op.type() << ": " << slot.name << " is " << input << ": " << name << ": "
                                 << near.ToString();
        }
      }
    }
  }
}

TEST(Aliases, AreRefusedOrChangeNoValue) {
  int aliased = 0;
  ForEachOp([&aliased](const Op& op, const Tensors& inputs) {
    if (DrawsAnew(op)) return;
    const Result<Tensors> expected = RunOp(AllOps(), op, inputs);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    ExpectSameInPlace(op, inputs, *expected, aliased);
  });
  EXPECT_GT(aliased, 300);
}

}  // namespace
}  // namespace penstock::test
