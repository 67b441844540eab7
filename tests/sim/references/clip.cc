#include "tests/sim/references/clip.h"

#include <algorithm>

#include "tests/sim/sim_ops.h"

namespace penstock::test {

std::vector<ToyValues> ClipReference(const ToyJob& job, int steps, const std::vector<int>& ends) {
  SimBlockRunner runner;
  ToyJob joined = job;  // the same with one server, which has nothing to exchange
  joined.servers = {"all:1"};
  for (ToyParam& param : joined.params) param.server = 0;
  const Program program = joined.Pserver(0);
  Scope scope;
  joined.Start(0, scope);
  for (const VarRef& var : program.main().vars()) scope.FindOrCreate(var->name);
  std::vector<ToyValues> versions(static_cast<std::size_t>(steps) + 1);
  for (int step = 0; step <= steps; ++step) {
    for (const ToyParam& param : job.params) {
      const auto values = scope.Find(param.name)->As<Tensor>().Span<float>();
      std::vector<float>& now = versions[static_cast<std::size_t>(step)][param.name];
      now.assign(values.begin(), values.end());
      for (int t = 0; t < job.trainers; ++t) {
        Tensor& gradient = scope.Find(job.GradName(param, t))->As<Tensor>();
        gradient = Tensor(DType::kFp32, param.shape);
        std::vector<float> made = ToyGradient(now, param.name, t, static_cast<std::uint64_t>(step));
        if (step >= ends[static_cast<std::size_t>(t)]) made.assign(made.size(), 0.0f);
        std::copy(made.begin(), made.end(), gradient.Span<float>().begin());
      }
    }
    for (int block = 1; block < program.block_count() && step < steps; ++block)
      PENSTOCK_CHECK(runner.RunBlock(program, block, scope).ok(), "the reference runs");
  }
  return versions;
}

}  // namespace penstock::test
