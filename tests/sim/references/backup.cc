#include "tests/sim/references/backup.h"

#include <algorithm>

#include "tests/sim/sim_ops.h"

namespace penstock::test {

ToyValues BackupReference(const ToyJob& job, int server, const std::vector<BackupSet>& sets) {
  SimBlockRunner runner;
  Scope scope;
  job.Start(server, scope);
  ToyValues values;
  const auto read = [&](const ToyParam& param) {
    const auto now = scope.Find(param.name)->As<Tensor>().Span<float>();
    values[param.name].assign(now.begin(), now.end());
  };
  for (const ToyParam& param : job.params) {
    if (param.server == server) read(param);
  }
  for (const BackupSet& set : sets) {
    ToyJob of_these = job;  // as if there were no other trainers
    of_these.trainers = static_cast<int>(set.size());
    const Program program = of_these.Pserver(server);
    for (const VarRef& var : program.main().vars()) scope.FindOrCreate(var->name);
    for (const ToyParam& param : job.params) {
      for (std::size_t i = 0; param.server == server && i < set.size(); ++i) {
        const auto gradient = ToyGradient(values[param.name], param.name, set[i].first, set[i].second);
        Tensor& tensor = scope.Find(job.GradName(param, static_cast<int>(i)))->As<Tensor>();
        tensor = Tensor(DType::kFp32, param.shape);
        std::copy(gradient.begin(), gradient.end(), tensor.Span<float>().begin());
      }
    }
    for (int block = 1; block < program.block_count(); ++block)
      PENSTOCK_CHECK(runner.RunBlock(program, block, scope).ok(), "the reference runs");
    for (const ToyParam& param : job.params) {
      if (param.server == server) read(param);
    }
  }
  return values;
}

}  // namespace penstock::test
