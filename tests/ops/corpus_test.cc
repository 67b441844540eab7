// Every op compared with the numbers of Fluid 1.8.5: outputs, input gradients, and the gradient ops
// themselves.
#include "tests/support/corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "framework/op/tensor_desc.h"
#include "framework/wire/wire.h"
#include "operators/all_ops.h"
#include "tests/ops/allocations.h"
#include "tests/support/npz.h"
#include "tests/support/op_harness.h"

namespace penstock::test {
namespace {

constexpr double kAbsolute = 1e-5;

// Ops that sum many products in another order than Fluid have a larger tolerance.
double RelativeOf(const std::string& op) {
  static const std::set<std::string> kLongSums = {"batch_norm",
                                                  "conv2d",
                                                  "conv2d_transpose",
                                                  "depthwise_conv2d",
                                                  "gru",
                                                  "gru_unit",
                                                  "layer_norm",
                                                  "lrn",
                                                  "lstm",
                                                  "lstmp",
                                                  "norm",
                                                  "pool2d",
                                                  "sequence_conv"};
  return kLongSums.contains(op) ? 1e-4 : 1e-5;
}

// Fluid draws other numbers from the same seed, so only types and shapes of these are compared.
const std::set<std::string> kRandomCases = {"gaussian_random_big", "truncated_gaussian_random",
                                            "uniform_random_big"};

struct Case {
  std::string name;
  nlohmann::json json;
  Arrays arrays;
  std::vector<Op> ops;       // ops of the forward program
  std::vector<Op> grad_ops;  // the additional ops of the program with gradients
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

// The lengths under `<prefix>:<variable>`, or `<prefix>0:`, `<prefix>1:`, ..., as offsets.
LoD LodOf(const Case& c, const std::string& prefix, const std::string& variable) {
  LoD lod;
  for (const std::string level : {"", "0", "1", "2"}) {
    const auto lengths = c.arrays.find(StrCat(prefix, level, ":", variable));
    if (lengths == c.arrays.end()) continue;
    lod.push_back({0});
    for (const std::int64_t length : lengths->second.Span<std::int64_t>())
      lod.back().push_back(lod.back().back() + static_cast<std::uint64_t>(length));
  }
  return lod;
}

// The arrays under `prefix`, by variable, with the sequence lengths under `lens`.
Tensors Named(const Case& c, const std::string& prefix, const std::string& lens,
              const std::string& suffix = "") {
  Tensors tensors;
  for (const auto& [name, array] : c.arrays) {
    if (!StartsWith(name, prefix)) continue;
    const std::string variable = name.substr(prefix.size());
    Tensor& tensor = tensors[variable + suffix] = array;
    tensor.set_lod(LodOf(c, lens, variable));
  }
  return tensors;
}
Tensors Inputs(const Case& c) { return Named(c, "in:", "lens"); }
Tensors Outputs(const Case& c) { return Named(c, "out:", "outlens"); }
Tensors HeadGradients(const Case& c) { return Named(c, "headgrad:", "outlens", "_headgrad"); }

// A kernel requests all its memory when it is prepared.
void ExpectNoAllocation(const Case& c, const Op& op, const Tensors& known) {
  std::int64_t allocations = 0;
  EXPECT_TRUE(RunOp(AllOps(), op, known, {}, nullptr, {}, CountInto(allocations)).ok()) << c.name;
  EXPECT_EQ(allocations, 0) << c.name << ": " << op.type() << " allocates when it runs again";
}

Tensors RunAll(const Case& c, const std::vector<Op>& ops, Tensors known) {
  Tensors made;
  for (const Op& op : ops) {
    const Result<Tensors> out = RunOp(AllOps(), op, known);
    EXPECT_TRUE(out.ok()) << c.name << ": " << out.status().ToString();
    if (!out.ok()) return made;
    ExpectNoAllocation(c, op, known);
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
  if (expected.count() == 0) {  // an empty NumPy array is f64, whatever its origin
    EXPECT_EQ(found->second.count(), 0) << c.name << ": " << name;
    return;
  }
  const Status near = Near(found->second, expected, RelativeOf(c.json["op"]), kAbsolute);
  EXPECT_TRUE(near.ok()) << c.name << ": " << name << ": " << near.ToString();
}

// The op without attributes that the framework sets on gradient ops.
Op Bare(Op op) {
  op.RemoveAttr(kRoleAttr).RemoveAttr(kDeviceAttr);
  return op;
}

// The gradient ops that our declarations make, with the names of the case's file.
void ExpectSameGradOps(const Case& c) {
  std::set<std::string> wanted;
  for (const auto& [input, grad] : c.json["grad_vars"].items()) wanted.insert(input);
  std::set<std::string> without;
  for (const std::string& out : c.ops.at(0).OutputNames()) {
    if (!c.arrays.contains("headgrad:" + out)) without.insert(out);
  }
  Result<std::vector<Op>> made = MakeGradOps(AllOps(), c.ops.at(0), wanted, without);
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

// Cases in which Fluid 1.8.5 is wrong; ours are right by central differences (gradient_test.cc), or rejected.
const std::map<std::string, std::string> kWrongGradients = {
    {"lstm", "it leaves out the gradient of Cell"},
    {"lstm_cell_target", "it leaves out the gradient of Cell"}};

void CheckGradients(const Case& c, const Tensors& made, const Tensors& inputs) {
  Tensors known = made;
  known.insert(inputs.begin(), inputs.end());
  for (const auto& [name, tensor] : Outputs(c)) known[name] = tensor;  // Fluid's own, if the case has them
  for (const auto& [name, tensor] : HeadGradients(c)) known[name] = tensor;
  const Tensors grads = RunAll(c, c.grad_ops, known);
  for (const auto& [input, grad] : c.json["grad_vars"].items()) {
    ExpectNear(c, grads, grad.get<std::string>(), c.arrays.at("ingrad:" + input));
  }
}

void CheckCase(const Case& c) {
  const Tensors inputs = Inputs(c);
  const Tensors made = RunAll(c, c.ops, inputs);
  for (const auto& [name, expected] : Outputs(c)) {
    ExpectNear(c, made, name, expected);
    const auto found = made.find(name);
    if (found != made.end()) {
      EXPECT_EQ(found->second.lod(), expected.lod()) << c.name << ": sequences of " << name;
    }
  }
  if (c.grad_ops.empty()) return;
  CheckGradients(c, made, inputs);
  if (!kWrongGradients.contains(c.name)) ExpectSameGradOps(c);
}

// Runs all cases of a folder; fewer than `at least` means that a file is missing.
void CheckFolder(const std::string& folder, std::size_t at_least) {
  const std::vector<std::string> names = FilesEndingIn(folder, ".json");
  for (const std::string& name : names) CheckCase(LoadCase(folder, name));
  EXPECT_GE(names.size(), at_least) << folder;
}

TEST(CorpusOps, ComputeFluidsOutputsAndGradients) {
  if (CorpusFolder().empty()) GTEST_SKIP() << "the corpus is not beside this checkout";
  CheckFolder(CorpusFolder() + "/open/ops/", 120);
}

// Cases in which Fluid's sequences are invalid: the right result is an error, or other sequences.
const std::map<std::string, std::string> kInvalidSequences = {
    {"lod_reset_append", "the new level has another number of sequences than the one above it says"},
    {"sequence_concat_2l", "it joins outer sequences by the offsets of inner ones"}};
// Fluid takes one level only; here the innermost counts.
const std::set<std::string> kTakesMoreLevels = {"gru_2l", "sequence_conv_2l", "sequence_reverse_2l",
                                                "sequence_reverse_2l_empty"};

// A case that Fluid rejects gives an error, not a crash, or works.
void CheckRefusal(const Case& c) {
  Tensors known = Inputs(c);
  const Result<Tensors> out = RunOp(AllOps(), c.ops.at(0), known);
  EXPECT_EQ(out.ok(), kTakesMoreLevels.contains(c.name)) << c.name << ": " << out.status().ToString();
}

// Compares with the output declarations of Fluid's shape inference.
void CheckDeclared(const std::string& folder, const Case& c) {
  // Fluid does not declare that their outputs are sequences.
  static const std::set<std::string> kKnowsLevel = {"ctc_align", "sequence_slice"};
  const Result<Program> program = ParseProgram(BytesOf(folder + c.name + ".pb"));
  TensorDescs declared;
  for (const std::string& name : c.ops.at(0).InputNames())
    declared[name] = DescOf(*program->main().FindVar(name));
  const Result<TensorDescs> inferred = InferOp(AllOps(), c.ops.at(0), declared);
  ASSERT_TRUE(inferred.ok()) << c.name << ": " << inferred.status().ToString();
  for (const auto& [name, expected] : c.json["declared_out"].items()) {
    const TensorDesc& info = inferred->at(name);
    // Fluid declares one row per image, not per window.
    if (c.json["op"] != "im2sequence") {
      EXPECT_EQ(info.shape, Shape(expected["shape"].get<std::vector<Dim>>())) << c.name << ": " << name;
    }
    const int level = kKnowsLevel.contains(c.json["op"]) ? 1 : expected["lod_level"].get<int>();
    EXPECT_EQ(info.lod_level, level) << c.name << ": " << name;
  }
}

// Runs all cases of a folder that have a program; at least so many must give numbers, and be rejected.
void CheckSequences(const std::string& folder, int numbers, int refusals) {
  int compared = 0, refused = 0;
  for (const std::string& name : FilesEndingIn(folder, ".json")) {
    const auto json = nlohmann::json::parse(BytesOf(folder + name + ".json"));
    if (json.contains("error") && json["error"]["stage"] == "build")
      continue;  // no program: the shape cases have one
    const Case c = LoadCase(folder, name);
    if (json.contains("error") || name == "lod_reset_append") {
      CheckRefusal(c);
      ++refused;
      continue;
    }
    CheckDeclared(folder, c);
    if (kInvalidSequences.contains(name)) continue;
    CheckCase(c);
    ++compared;
  }
  EXPECT_GE(compared, numbers);
  EXPECT_GE(refused, refusals);
}

TEST(CorpusOps, SequenceOpsComputeFluidsOutputsAndGradients) {
  if (CorpusFolder().empty()) GTEST_SKIP() << "the corpus is not beside this checkout";
  CheckSequences(CorpusFolder() + "/open/ops_seq/", 77, 9);
}

TEST(CorpusOps, ComputeTheOutputsOfTheSelection) {
  CheckFolder(SelectionFolder() + "/open/ops/", 38);
  CheckSequences(SelectionFolder() + "/open/ops_seq/", 2, 0);
}

}  // namespace
}  // namespace penstock::test
