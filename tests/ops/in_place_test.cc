// An output that takes over the memory of an input (executor/graph/in_place.h) has the bytes that it has in
// memory of its own.
#include <gtest/gtest.h>

#include <cstring>

#include "executor/schedule/executor.h"
#include "framework/text/printer.h"
#include "operators/all_ops.h"
#include "tests/ops/gradient_case.h"

namespace penstock::test {
namespace {

constexpr char kFed[] = "@fed", kCopy[] = "@copy";

void DeclareTensor(Program& program, const std::string& name, const Tensor& like) {
  Var var;
  var.name = name;
  var.type = TensorType{like.dtype(), like.shape(), static_cast<int>(like.lod().size()), true};
  program.MutableBlock(0).SetVar(std::move(var));
}

Op Assign(const std::string& from, const std::string& to) {
  return Op("assign").AddInput("X", {from}).AddOutput("Out", {to});
}

// A program that computes each input of `op` from what is fed, and copies each output before it is fetched:
// all of the op's arguments are temporaries whose memory is free.
struct Case {
  Program program;
  std::vector<exec::Feed> feeds;
  std::vector<std::string> fetches;
};

Case MakeCase(const Op& op, const Tensors& inputs, const Tensors& outputs) {
  Case made;
  for (const auto& [name, value] : inputs) {
    DeclareTensor(made.program, name + kFed, value);
    DeclareTensor(made.program, name, value);
    made.feeds.push_back({name + kFed, value});
    made.program.MutableBlock(0).Append(Assign(name + kFed, name));
  }
  for (const auto& [name, value] : outputs) {
    if (!inputs.contains(name)) DeclareTensor(made.program, name, value);
  }
  made.program.MutableBlock(0).Append(op);
  for (const auto& [name, value] : outputs) {
    if (!value.initialized()) continue;
    DeclareTensor(made.program, name + kCopy, value);
    made.program.MutableBlock(0).Append(Assign(name, name + kCopy));
    made.fetches.push_back(name + kCopy);
  }
  return made;
}

Result<std::vector<Variable>> RunCase(const Case& c, bool in_place) {
  exec::Executor executor(AllOps(), {.threads = 1, .passes = exec::PlanOptions{.in_place = in_place}});
  Scope scope;
  return executor.Run(c.program, scope, c.feeds, c.fetches);
}

bool SameBytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && a.lod() == b.lod() &&
         (a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

TEST(InPlace, GivesTheSameBytes) {
  int compared = 0;
  ForEachOp([&compared](const Op& op, const Tensors& inputs) {
    const Result<Tensors> outputs = RunOp(AllOps(), op, inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
    const Case c = MakeCase(op, inputs, *outputs);
    const auto apart = RunCase(c, false), together = RunCase(c, true);
    ASSERT_EQ(apart.ok(), together.ok()) << op.type();
    if (!apart.ok()) return;
    for (std::size_t i = 0; i < apart->size(); ++i) {
      const Tensor* const a = (*apart)[i].If<Tensor>();
      const Tensor* const b = (*together)[i].If<Tensor>();
      // Not what the op leaves unwritten or draws anew.
      const auto alone = outputs->find(c.fetches[i].substr(0, c.fetches[i].size() - sizeof kCopy + 1));
      if (a == nullptr || !a->initialized() || !SameBytes(*a, alone->second)) continue;
      ASSERT_NE(b, nullptr) << op.type() << ": " << c.fetches[i];
      EXPECT_TRUE(SameBytes(*a, *b)) << op.type() << ": " << c.fetches[i] << "\n" << PrintProgram(c.program);
      ++compared;
    }
  });
  EXPECT_GT(compared, 1000);
}

}  // namespace
}  // namespace penstock::test
