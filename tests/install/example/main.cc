// Reads a program from text, runs it on one feed, and prints the result.
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "executor/schedule/executor.h"
#include "framework/text/parser.h"
#include "operators/all_ops.h"

namespace {

constexpr char kProgram[] = R"(program "twice"
block 0 {
  data x : f32[?, 2]
  y : f32[?, 2] = scale(X=x) {scale=2.0}
}
)";

penstock::Result<std::vector<penstock::Variable>> Run() {
  PENSTOCK_ASSIGN_OR_RETURN(const penstock::Program program, penstock::ParseText(kProgram, "twice.ir"));
  penstock::Tensor x(penstock::DType::kFp32, penstock::Shape({1, 2}));
  x.Span<float>()[0] = 1.5f;
  x.Span<float>()[1] = -2.0f;
  penstock::exec::Executor executor(penstock::AllOps());
  penstock::Scope scope;
  const std::vector<penstock::exec::Feed> feeds = {{"x", std::move(x)}};
  const std::vector<std::string> fetches = {"y"};
  return executor.Run(program, scope, feeds, fetches);
}

}  // namespace

int main() {
  penstock::Result<std::vector<penstock::Variable>> result = Run();
  if (!result.ok()) {
    std::cerr << result.status().message() << "\n";
    return 1;
  }
  penstock::Tensor& y = result->front().As<penstock::Tensor>();
  for (const float value : y.Span<float>()) std::cout << value << " ";
  std::cout << "\n";
}
