#include "tools/bench/job/job.h"

#include <algorithm>
#include <vector>

#include "framework/base/strings.h"

namespace penstock::bench {
namespace {

Var Persistable(std::string name, const Shape& shape) {
  Var var = TensorVar(std::move(name), DType::kFp32, shape);
  var.persistable = true;
  return var;
}

Var Gradient(const Job& job, std::string name) {
  Var var = TensorVar(std::move(name), DType::kFp32, job.shape);
  if (job.rows) var.kind = VarKind::kSelectedRows;
  return var;
}

void Fill(Scope& scope, const std::string& name, const Shape& shape, float value) {
  Tensor& tensor = scope.FindOrCreate(name)->As<Tensor>();
  tensor = Tensor(DType::kFp32, shape);
  std::fill(tensor.Span<float>().begin(), tensor.Span<float>().end(), value);
}

// Adds the block that updates one variable; returns its index.
BlockRef AddUpdate(const Job& job, int variable, Program& program) {
  const std::string param = job.Param(variable), grad = param + "@GRAD";
  std::vector<std::string> grads;
  grads.reserve(static_cast<std::size_t>(job.trainers));
  for (int t = 0; t < job.trainers; ++t) grads.push_back(job.Grad(variable, t));
  Block& main = program.MutableBlock(0);
  main.SetVar(Persistable(param, job.shape));
  main.SetVar(Gradient(job, grad));
  for (const std::string& name : grads) main.SetVar(Gradient(job, name));
  Block& body = program.AddBlock(0);
  body.Append(Op("sum").AddInput("X", grads).AddOutput("Out", {grad}));
  body.Append(Op("scale")
                  .AddInput("X", {grad})
                  .AddOutput("Out", {grad})
                  .Set("scale", 1.0f / static_cast<float>(job.trainers)));
  body.Append(Op("sgd")
                  .AddInput("Param", {param})
                  .AddInput("Grad", {grad})
                  .AddInput("LearningRate", {"rate"})
                  .AddOutput("ParamOut", {param}));
  return {body.index()};
}

}  // namespace

const std::string& Job::ServerOf(int variable) const {
  return servers[static_cast<std::size_t>(variable) % servers.size()];
}
std::string Job::Param(int variable) const { return StrCat("w", 100000 + variable); }
std::string Job::Grad(int variable, int trainer) const {
  return StrCat(Param(variable), "@GRAD.trainer_", trainer);
}

Program TrainerProgram(const Job& job, int trainer) {
  Program program;
  Block& main = program.MutableBlock(0);
  for (int i = 0; i < job.variables; ++i) {
    const std::string param = job.Param(i), grad = job.Grad(i, trainer);
    const std::vector<std::string> server = {job.ServerOf(i)};
    main.SetVar(TensorVar(param, DType::kFp32, job.shape));
    main.SetVar(TensorVar(grad, DType::kFp32, job.shape));
    main.Append(Op("send").AddInput("X", {grad}).Set("epmap", server));
    main.Append(
        Op("recv").AddOutput("Out", {param}).Set("trainer_id", std::int32_t{trainer}).Set("epmap", server));
  }
  main.Append(Op("send_barrier").Set("endpoints", job.servers).Set("trainer_id", std::int32_t{trainer}));
  main.Append(Op("fetch_barrier").Set("endpoints", job.servers).Set("trainer_id", std::int32_t{trainer}));
  return program;
}

Program ServerProgram(const Job& job, int server) {
  Program program;
  program.MutableBlock(0).SetVar(Persistable("rate", {1}));
  std::vector<std::string> received;
  std::vector<BlockRef> blocks;
  for (int i = server; i < job.variables; i += static_cast<int>(job.servers.size())) {
    blocks.push_back(AddUpdate(job, i, program));
    for (int t = 0; t < job.trainers; ++t) received.push_back(job.Grad(i, t));
  }
  program.MutableBlock(0).Append(Op("listen_and_serv")
                                     .AddInput("X", received)
                                     .Set("endpoint", job.ServerOf(server))
                                     .Set("Fanin", std::int32_t{job.trainers})
                                     .Set("optimize_blocks", blocks));
  return program;
}

void FillServer(const Job& job, int server, Scope& scope) {
  Fill(scope, "rate", {1}, 0.1f);
  for (int i = server; i < job.variables; i += static_cast<int>(job.servers.size()))
    Fill(scope, job.Param(i), job.shape, 0.5f);
}

}  // namespace penstock::bench
