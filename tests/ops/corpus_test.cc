// Every op against the numbers that Fluid 1.8.5 computed for it: outputs, input gradients, and the gradient
// ops themselves.
#include "tests/support/corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "framework/ir/wire.h"
#include "operators/all_ops.h"
#include "tests/support/npz.h"
#include "tests/support/op_harness.h"

namespace penstock::test {
namespace {

constexpr double kRelative = 1e-4, kAbsolute = 1e-5;

// Fluid draws other numbers from the same seed, so only types and shapes of these are compared.
const std::set<std::string> kRandomCases = {"gaussian_random_big", "truncated_gaussian_random",
                                            "uniform_random_big"};

struct Case {
  std::string name;
  nlohmann::json json;
  Arrays arrays;
  std::vector<Op> ops;       // of the forward program
  std::vector<Op> grad_ops;  // what the program with gradients has beyond those
};

std::vector<Op> OpsOf(const std::string& path) {
  const Result<Program> program = ParseProgram(BytesOf(path));
  PENSTOCK_CHECK(program.ok(), path + ": " + program.status().ToString());
  std::vector<Op> ops;
  for (const OpEntry& entry : program->main().ops()) ops.push_back(*entry.op);
  return ops;
}

Case LoadCase(const std::string& folder, const std::string& name) {
  Case c;
  c.name = name;
  c.json = nlohmann::json::parse(BytesOf(folder + name + ".json"));
  Result<Arrays> arrays = ReadNpz(BytesOf(folder + name + ".npz"));
  PENSTOCK_CHECK(arrays.ok(), name + ": " + arrays.status().ToString());
  c.arrays = *std::move(arrays);
  c.ops = OpsOf(folder + name + ".pb");
  if (c.json.contains("grad_vars")) {
    const std::vector<Op> all = OpsOf(folder + name + ".grad.pb");
    c.grad_ops.assign(all.begin() + static_cast<std::ptrdiff_t>(c.ops.size()), all.end());
  }
  return c;
}

// The arrays under `prefix`, by variable.
Tensors Named(const Case& c, const std::string& prefix, const std::string& suffix = "") {
  Tensors tensors;
  for (const auto& [name, array] : c.arrays) {
    if (StartsWith(name, prefix)) tensors[name.substr(prefix.size()) + suffix] = array;
  }
  return tensors;
}

Tensors RunAll(const Case& c, const std::vector<Op>& ops, Tensors known) {
  Tensors made;
  for (const Op& op : ops) {
    const Result<Tensors> out = RunOp(AllOps(), op, known);
    EXPECT_TRUE(out.ok()) << c.name << ": " << out.status().ToString();
    if (!out.ok()) return made;
    for (const auto& [name, tensor] : *out) known[name] = made[name] = tensor;
  }
  return made;
}

void ExpectNear(const Case& c, const Tensors& made, const std::string& name, const Tensor& expected) {
  const auto found = made.find(name);
  ASSERT_NE(found, made.end()) << c.name << ": nothing gives " << name;
  if (kRandomCases.contains(c.name)) {
    EXPECT_EQ(found->second.shape(), expected.shape()) << c.name;
    return;
  }
  const Status near = Near(found->second, expected, kRelative, kAbsolute);
  EXPECT_TRUE(near.ok()) << c.name << ": " << name << ": " << near.ToString();
}

// Without the attributes that the framework itself sets on a gradient op.
Op Bare(Op op) {
  op.RemoveAttr(kRoleAttr).RemoveAttr(kDeviceAttr);
  return op;
}

// The gradient ops that our declarations make, in the names of the case's file.
void ExpectSameGradOps(const Case& c) {
  std::set<std::string> wanted;
  for (const auto& [input, grad] : c.json["grad_vars"].items()) wanted.insert(input);
  Result<std::vector<Op>> made = MakeGradOps(AllOps(), c.ops.at(0), wanted);
  ASSERT_TRUE(made.ok()) << c.name << ": " << made.status().ToString();
  ASSERT_EQ(made->size(), c.grad_ops.size()) << c.name;
  for (std::size_t i = 0; i < made->size(); ++i) {
    Op ours = Bare((*made)[i]);
    for (const std::string& out : c.ops.at(0).OutputNames())
      ours.Rename(out + kGradSuffix, out + "_headgrad", false);
    const Op theirs = Bare(c.grad_ops[i]);
    EXPECT_EQ(ours.type(), theirs.type()) << c.name;
    for (const Slot& slot : theirs.inputs())
      EXPECT_EQ(ours.Input(slot.name), slot.args) << c.name << " input " << slot.name;
    for (const Slot& slot : theirs.outputs())
      EXPECT_EQ(ours.Output(slot.name), slot.args) << c.name << " output " << slot.name;
    for (const NamedAttr& attr : theirs.attrs()) {
      const Attr* own = ours.FindAttr(attr.name);
      ASSERT_NE(own, nullptr) << c.name << " attribute " << attr.name;
      EXPECT_EQ(*own, attr.value) << c.name << " attribute " << attr.name;
    }
    EXPECT_TRUE(ours.SameAs(theirs)) << c.name << ": it has slots or attributes that Fluid's has not";
  }
}

void CheckCase(const Case& c) {
  const Tensors inputs = Named(c, "in:");
  const Tensors made = RunAll(c, c.ops, inputs);
  for (const auto& [name, expected] : Named(c, "out:")) ExpectNear(c, made, name, expected);
  if (c.grad_ops.empty()) return;

  Tensors known = made;
  known.insert(inputs.begin(), inputs.end());
  for (const auto& [name, tensor] : Named(c, "out:"))
    known[name] = tensor;  // Fluid's own, where it told them
  for (const auto& [name, tensor] : Named(c, "headgrad:", "_headgrad")) known[name] = tensor;
  const Tensors grads = RunAll(c, c.grad_ops, known);
  for (const auto& [input, grad] : c.json["grad_vars"].items()) {
    ExpectNear(c, grads, grad.get<std::string>(), c.arrays.at("ingrad:" + input));
  }
  ExpectSameGradOps(c);
}

// Runs the cases of a folder whose op can run; the number of them.
int CheckFolder(const std::string& folder, std::set<std::string>* passed_over) {
  int compared = 0;
  for (const std::string& name : FilesEndingIn(folder, ".json")) {
    const Case c = LoadCase(folder, name);
    const OpDef* def = AllOps().Find(c.json["op"].get<std::string>());
    if (def == nullptr || !def->has_kernel(DeviceKind::kCpu)) {
      passed_over->insert(c.json["op"].get<std::string>());
      continue;
    }
    CheckCase(c);
    ++compared;
  }
  return compared;
}

// As many cases are compared as there are of the ops that this tree has; fewer means that an op or a file got
// lost.
void ExpectCases(const std::string& folder, int expected) {
  std::set<std::string> passed_over;
  const int compared = CheckFolder(folder, &passed_over);
  EXPECT_GE(compared, expected) << folder;
  std::cout << compared << " cases compared; no kernel yet: " << Join(passed_over, " ") << "\n";
}

TEST(CorpusOps, GiveFluidsNumbersAndGradients) {
  if (CorpusFolder().empty()) GTEST_SKIP() << "the corpus is not beside this checkout";
  ExpectCases(CorpusFolder() + "/open/ops/", 86);
}

TEST(CorpusOps, GiveTheNumbersOfTheSelectionInTheTree) { ExpectCases(SelectionFolder() + "/open/ops/", 38); }

}  // namespace
}  // namespace penstock::test
