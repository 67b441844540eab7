// An op with an output that names an input's variable is rejected (E-op-alias), or gives the same values as
// with separate variables.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "operators/all_ops.h"
#include "tests/ops/gradient_case.h"

namespace penstock::test {
namespace {

using Ints = std::vector<std::int32_t>;

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

Op GradOp(const std::string& type, const std::vector<std::string>& inputs, const std::string& grad_of = "X") {
  return WithSlots(type + "_grad", inputs, {grad_of + "@GRAD"});
}

// Sizes with which an output is as large as the gradient that the op reads. Kernels that clear an output, or
// write it in another order than they read, must not be given one variable for both.
std::vector<PlainCase> CasesOfEqualSizes() {
  const Tensor square = Mixed({2, 2}), column = Mixed({2, 1}, 2), image = Mixed({1, 2, 2, 2}, 3);
  const Tensor ids = TensorOf<std::int64_t>({2}, {1, 0});
  const Tensor order = TensorOf<std::int64_t>({2, 2}, {1, 0, 0, 1});
  const Ints one_one = {1, 1};
  std::vector<PlainCase> cases;
  for (const char* type : {"lookup_table_v2", "gather", "index_select"}) {
    const bool looks_up = type == std::string("lookup_table_v2");
    const std::string table = looks_up ? "W" : "X", index = looks_up ? "Ids" : "Index";
    Op op = GradOp(type, {table, index, "Out@GRAD"}, table);
    cases.push_back({op, {{table, square}, {index, ids}, {"Out@GRAD", square}}});
  }
  cases.push_back({GradOp("expand", {"X", "Out@GRAD"}).Set("expand_times", one_one),
                   {{"X", square}, {"Out@GRAD", square}}});
  Op slice = GradOp("slice", {"Input", "Out@GRAD"}, "Input");
  slice.Set("axes", Ints{0}).Set("starts", Ints{0}).Set("ends", Ints{2});
  cases.push_back({slice, {{"Input", square}, {"Out@GRAD", square}}});
  cases.push_back({GradOp("top_k", {"X", "Indices", "Out@GRAD"}).Set("k", 2),
                   {{"X", square}, {"Indices", order}, {"Out@GRAD", square}}});
  cases.push_back({GradOp("maxout", {"X", "Out", "Out@GRAD"}).Set("groups", 1),
                   {{"X", image}, {"Out", image}, {"Out@GRAD", image}}});
  cases.push_back({GradOp("pad2d", {"X", "Out@GRAD"}).Set("paddings", Ints{0, 0, 0, 0}),
                   {{"X", image}, {"Out@GRAD", image}}});
  for (const char* pooling : {"max", "avg"}) {
    Op pool = GradOp("pool2d", {"X", "Out", "Out@GRAD"});
    pool.Set("pooling_type", std::string(pooling)).Set("ksize", one_one);
    cases.push_back({pool, {{"X", image}, {"Out", image}, {"Out@GRAD", image}}});
  }
  for (const char* type : {"sequence_expand", "sequence_expand_as"}) {
    const Tensor rows = InRows(column, {{0, 1, 2}});
    cases.push_back({GradOp(type, {"X", "Y", "Out@GRAD"}), {{"X", rows}, {"Y", rows}, {"Out@GRAD", rows}}});
  }
  const std::vector<std::string> distances = {"X@GRAD", "Y@GRAD"};
  cases.push_back({WithSlots("squared_l2_distance_grad", {"X", "Y", "sub_result", "Out@GRAD"}, distances),
                   {{"X", column}, {"Y", column}, {"sub_result", column}, {"Out@GRAD", column}}});
  cases.push_back({WithSlots("smooth_l1_loss_grad", {"Diff", "Out@GRAD"}, distances),
                   {{"Diff", column}, {"Out@GRAD", column}}});
  cases.push_back({WithSlots("cos_sim_grad", {"X", "Y", "XNorm", "YNorm", "Out", "Out@GRAD"}, distances),
                   {{"X", column},
                    {"Y", column},
                    {"XNorm", column},
                    {"YNorm", column},
                    {"Out", column},
                    {"Out@GRAD", column}}});
  cases.push_back({GradOp("cross_entropy", {"X", "Label", "Y@GRAD"}),
                   {{"X", column}, {"Label", TensorOf<std::int64_t>({2, 1}, {0, 0})}, {"Y@GRAD", column}}});
  cases.push_back({WithSlots("layer_norm_grad", {"X", "Scale", "Bias", "Mean", "Variance", "Y@GRAD"},
                             {"X@GRAD", "Scale@GRAD", "Bias@GRAD"})
                       .Set("begin_norm_axis", 1),
                   {{"X", Mixed({1, 3})},
                    {"Scale", Mixed({3}, 2)},
                    {"Bias", Mixed({3}, 3)},
                    {"Mean", Mixed({1}, 4)},
                    {"Variance", Values({1}, 1, 2)},
                    {"Y@GRAD", Mixed({1, 3}, 5)}}});
  return cases;
}

TEST(Aliases, AreRefusedOrChangeNoValueWhereSizesAreEqual) {
  for (const PlainCase& each : CasesOfEqualSizes()) {
    const Result<Tensors> expected = RunOp(AllOps(), each.op, each.inputs);
    ASSERT_TRUE(expected.ok()) << each.op.type() << ": " << expected.status().ToString();
    int aliased = 0;
    ExpectSameInPlace(each.op, each.inputs, *expected, aliased);
  }
}

}  // namespace
}  // namespace penstock::test
