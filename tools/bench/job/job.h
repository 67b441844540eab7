// Makes the role programs of a job whose variables all have the same shape, as the transpiler would. Used by
// the benchmarks of the client, the server and its memory.
//
//   const Job job{.variables = 200, .shape = {16, 16}, .trainers = 2, .servers = {"127.0.0.1:6174"}};
//   session.Attach(TrainerProgram(job, 0));
//   const Program server = ServerProgram(job, 0);      // its last op is listen_and_serv
//   FillServer(job, 0, scope);
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/tensor/scope.h"

namespace penstock::bench {

template <typename T>
T Must(Result<T> result) {
  PENSTOCK_CHECK(result.ok(), result.status().ToString());
  return *std::move(result);
}
inline void Must(const Status& status) { PENSTOCK_CHECK(status.ok(), status.ToString()); }

struct Job {
  int variables = 1;  // variable i is on server ServerOf(i)
  Shape shape = {1};
  int trainers = 1;
  std::vector<std::string> servers = {"server:1"};  // addresses
  bool rows = false;                                // gradients are selected rows

  const std::string& ServerOf(int variable) const;
  std::string Param(int variable) const;
  std::string Grad(int variable, int trainer) const;
};

Program TrainerProgram(const Job& job, int trainer);
// Merges the gradients of all trainers and updates with sgd.
Program ServerProgram(const Job& job, int server);
// Sets the variables of server `server` to initial values, in place of a startup program.
void FillServer(const Job& job, int server, Scope& scope);

}  // namespace penstock::bench
