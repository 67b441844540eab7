// How a server of a ToyJob merges gradients, and computes the norms of clipped ones.
#include <algorithm>

#include "tests/sim/toy_job.h"

namespace penstock::test {

std::string ToySquares(const std::string& param) { return param + "@SQUARES"; }

// The mean of the trainers' gradients.
void ToyJob::AddMerge(Program& program, int block, const ToyParam& param) const {
  std::vector<std::string> grads;
  for (int t = 0; t < (async ? 1 : trainers); ++t) {
    grads.push_back(GradName(param, t));
    program.MutableBlock(0).SetVar(GradVar(param, grads.back()));
  }
  const std::string grad = param.name + "@GRAD";
  program.MutableBlock(0).SetVar(Persistable(param.name, param.shape));
  program.MutableBlock(0).SetVar(Persistable(grad, param.shape));
  Block& body = program.MutableBlock(block);
  body.Append(Op("sum").AddInput("X", grads).AddOutput("Out", {grad}));
  body.Append(Op("scale")
                  .AddInput("X", {grad})
                  .AddOutput("Out", {grad})
                  .Set("scale", 1.0f / static_cast<float>(grads.size())));
}

// As the transpiler places them: the servers' sums are sent to all, in the order of the parameters.
void ToyJob::AddNorms(Program& program, int server, std::vector<BlockRef>& blocks) const {
  std::vector<std::string> own, all, owners, endpoints;
  for (const ToyParam& param : params) {
    if (!param.clipped) continue;
    all.push_back(ToySquares(param.name));
    owners.push_back(servers[static_cast<std::size_t>(param.server)]);
    program.MutableBlock(0).SetVar(Persistable(all.back(), {1}));
    if (param.server != server) continue;
    own.push_back(all.back());
    const int block = program.AddBlock(0).index();
    blocks.push_back({block});
    AddMerge(program, block, param);
    program.MutableBlock(block).Append(Op("squares")
                                           .AddInput("X", {param.name + "@GRAD"})
                                           .AddOutput("Out", {own.back()})
                                           .SetRole(OpRole::kOptimize));
  }
  if (own.empty()) return;
  for (const std::string& address : servers) {
    if (std::find(owners.begin(), owners.end(), address) != owners.end()) endpoints.push_back(address);
  }
  const int block = program.AddBlock(0).index();
  blocks.push_back({block});
  Block& body = program.MutableBlock(block);
  if (endpoints.size() > 1) {
    body.Append(Op("exchange_sums")
                    .AddInput("X", own)
                    .AddOutput("Out", all)
                    .Set("epmap", owners)
                    .Set("endpoints", endpoints));
  }
  program.MutableBlock(0).SetVar(Persistable("factor", {1}));
  body.Append(Op("clip_factor").AddInput("X", all).AddOutput("Out", {"factor"}).SetRole(OpRole::kOptimize));
}

}  // namespace penstock::test
