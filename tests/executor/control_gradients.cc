#include "tests/executor/control_gradients.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "framework/autodiff/backward.h"
#include "operators/all_ops.h"
#include "tests/support/op_harness.h"
#include "tests/support/run_program.h"

namespace penstock::test {
namespace {

// The block that contains the gradients of forward block `block`.
int GradBlockOf(const Program& program, int block) {
  for (int b = 1; b < program.block_count(); ++b) {
    if (program.block(b).forward_block() == block) return b;
  }
  return 0;
}

bool Mentions(const Block& block, const std::string& name) {
  for (const OpEntry& entry : block.ops()) {
    for (const auto& names : {entry.op->InputNames(), entry.op->OutputNames()}) {
      if (std::find(names.begin(), names.end(), name) != names.end()) return true;
    }
  }
  return false;
}

// The file does not contain stop_gradient: a variable without a gradient in `whole` has it.
void MarkStops(Program& forward, const Program& whole) {
  for (int b = 0; b < forward.block_count(); ++b) {
    const Block& grads = whole.block(b == 0 ? 0 : GradBlockOf(whole, b));
    const std::vector<VarRef> vars = forward.block(b).vars();
    for (const VarRef& var : vars) {
      Var marked = *var;
      marked.facts.stop_gradient = !Mentions(grads, GradName(var->name));
      forward.MutableBlock(b).SetVar(std::move(marked));
    }
  }
}

// Without Fluid's own program, all float variables need a gradient.
void MarkIntegers(Program& program) {
  for (int b = 0; b < program.block_count(); ++b) {
    const std::vector<VarRef> vars = program.block(b).vars();
    for (const VarRef& var : vars) {
      Var marked = *var;
      marked.facts.stop_gradient = !var->type || var->type->dtype != DType::kFp32;
      program.MutableBlock(b).SetVar(std::move(marked));
    }
  }
}

// The loss for feeds in which one element of one variable has changed.
double Loss(const ControlCase& c, const std::vector<exec::Feed>& feeds, const std::string& param,
            const Tensor& value) {
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  EXPECT_TRUE(executor.Run(c.startup, scope, {}, {}).ok());
  SetParams(c, scope);
  if (!param.empty()) SetTensor(scope, param, value);
  const std::vector<std::string> fetches = {c.json["outputs"][0].get<std::string>()};
  const auto got = executor.Run(c.main, scope, feeds, fetches);
  EXPECT_TRUE(got.ok()) << c.name << ": " << got.status().ToString();
  return got.ok() ? ElementAt(*(*got)[0].If<Tensor>(), 0) : 0;
}

}  // namespace

Program Differentiated(const ControlCase& c, const std::optional<Program>& whole) {
  Program made = c.main;
  if (whole) {
    MarkStops(made, *whole);
  } else {
    MarkIntegers(made);
  }
  UniqueNames names;
  const auto result = AppendBackward(AllOps(), made, names,
                                     {.loss = c.json["outputs"][0].get<std::string>(),
                                      .parameters = c.json["params"].get<std::vector<std::string>>()});
  EXPECT_TRUE(result.ok()) << c.name << ": " << result.status().ToString();
  return made;
}

void ExpectDifferences(const ControlCase& c, const Program& made, int k, const std::vector<std::string>& of) {
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  ASSERT_TRUE(executor.Run(c.startup, scope, {}, {}).ok());
  SetParams(c, scope);
  std::vector<std::string> fetches;
  for (const std::string& name : of) fetches.push_back(GradName(name));
  const auto grads = executor.Run(made, scope, FeedsOf(c, k), fetches);
  ASSERT_TRUE(grads.ok()) << c.name << ": " << grads.status().ToString();
  constexpr double kStep = 1e-2;
  for (std::size_t n = 0; n < of.size(); ++n) {
    const Tensor& grad = *(*grads)[n].If<Tensor>();
    for (std::int64_t i = 0; i < grad.count(); ++i) {
      double losses[2];
      for (const int side : {0, 1}) {
        std::vector<exec::Feed> feeds = FeedsOf(c, k);
        const float moved = static_cast<float>(side == 0 ? -kStep : kStep);
        std::string param;
        Tensor value;
        const auto feed = std::find_if(feeds.begin(), feeds.end(),
                                       [&](const exec::Feed& each) { return each.name == of[n]; });
        if (feed != feeds.end()) {
          feed->tensor.Data<float>()[i] += moved;
        } else {
          param = of[n];
          value = c.arrays.at("param:" + param).Clone();
          value.Data<float>()[i] += moved;
        }
        losses[side] = Loss(c, feeds, param, value);
      }
      EXPECT_NEAR(ElementAt(grad, i), (losses[1] - losses[0]) / (2 * kStep), 2e-3)
          << c.name << " feed set " << k << ": " << of[n] << "[" << i << "]";
    }
  }
}

}  // namespace penstock::test
