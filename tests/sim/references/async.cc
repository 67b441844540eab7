#include "tests/sim/references/async.h"

#include "framework/base/check.h"
#include "tests/sim/sim_ops.h"

namespace penstock::test {

std::vector<std::vector<float>> AsyncChunk::Replay(const std::vector<AsyncUpdate>& updates) const {
  // One trainer and one server that have the chunk alone: what the parameter's own block makes of it.
  ToyParam chunk = param_;
  chunk.shape = param_.shape.WithRows(end_ - begin_);
  chunk.table = false;
  chunk.server = 0;
  ToyParam param = chunk;
  param.shape = param_.shape;
  const ToyJob alone{.trainers = 1, .servers = {"one:1"}, .params = {chunk}};
  const Program program = alone.Pserver(0);
  Scope whole, scope;
  ToyJob{.trainers = 1, .servers = {"one:1"}, .params = {param}}.Start(0, whole);
  alone.Start(0, scope);
  for (const VarRef& var : program.main().vars()) scope.FindOrCreate(var->name);
  const auto value = scope.Find(param_.name)->As<Tensor>().Span<float>();
  const Tensor rows = whole.Find(param_.name)->As<Tensor>().Rows(begin_, end_);
  std::copy(rows.Span<float>().begin(), rows.Span<float>().end(), value.begin());

  SimBlockRunner runner;
  std::vector<std::vector<float>> versions = {{value.begin(), value.end()}};
  for (const AsyncUpdate& update : updates) {
    std::vector<float> dense = update.gradient;
    if (param_.table) {
      const Dim width = param_.shape.RowWidth();
      dense.assign(value.size(), 0.0f);
      for (std::size_t i = 0; i < update.gradient.size(); ++i) {
        const auto row = static_cast<std::size_t>(update.rows[i / static_cast<std::size_t>(width)]);
        const auto columns = static_cast<std::size_t>(width);
        dense[row * columns + i % columns] += update.gradient[i];
      }
    }
    Tensor& gradient = scope.Find(alone.GradName(chunk, 0))->As<Tensor>();
    gradient = Tensor(DType::kFp32, chunk.shape);
    std::copy(dense.begin(), dense.end(), gradient.Span<float>().begin());
    scope.Find("rate")->As<Tensor>().Span<float>()[0] = update.rate;
    PENSTOCK_CHECK(runner.RunBlock(program, 1, scope).ok(), "the reference runs");
    versions.emplace_back(value.begin(), value.end());
  }
  return versions;
}

}  // namespace penstock::test
