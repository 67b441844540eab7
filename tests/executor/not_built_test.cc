// Ops that are declared but have no kernel: a program with such an op fails to compile, with an error that
// names the op and an alternative.
#include <gtest/gtest.h>

#include "executor/schedule/executor.h"
#include "framework/text/parser.h"
#include "operators/all_ops.h"

namespace penstock {
namespace {

std::string RefusalOf(const std::string& text) {
  const Result<Program> program = ParseText(text, "test");
  PENSTOCK_CHECK(program.ok(), program.status().ToString());
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  const Status status = executor.Run(*program, scope, {}, {}).status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  return status.ToString();
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

TEST(OpsThatAreNotBuilt, AreRefusedWithAnAlternative) {
  EXPECT_EQ(FirstLine(RefusalOf(R"(program
block 0 {
  var x : f32[1]
  var y : f32[1]
  x = fill_constant() {shape=[1l], value=1.0}
  (Out=[x, y]) = exchange_sums(X=[x]) {epmap=["a:1", "b:1"], endpoints=["a:1", "b:1"]}
}
)")),
            "exchange_sums: it is declared, not run: a pserver exchanges sums by itself, between the merges "
            "and updates of listen_and_serv; no other program can   [E-kernel-missing]");
  EXPECT_EQ(
      FirstLine(RefusalOf("program\nblock 0 {\n  () = sparse_tensor_load()\n}\n")),
      "sparse_tensor_load: it is declared, not run: servers keep their state by themselves; save and load "
      "by fluid.io instead   [E-kernel-missing]");
}

// Also without inputs and outputs from which the type could be inferred.
TEST(OpsThatAreNotBuilt, HaveNoKernel) {
  int count = 0;
  for (const OpDef* def : AllOps().All()) {
    if (def->not_built().empty()) continue;
    EXPECT_FALSE(def->has_kernel(DeviceKind::kCpu)) << def->type();
    ++count;
  }
  EXPECT_EQ(count, 4);
}

}  // namespace
}  // namespace penstock
