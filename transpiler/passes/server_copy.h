// Copies of the user's ops and variables for a pserver: what both its main and its start-up program are made
// of.
#pragma once

#include <string>
#include <unordered_map>

#include "framework/ir/program.h"
#include "transpiler/passes/context.h"

namespace penstock {

// The op as Fluid's append_op would write it anew: every input slot of its declaration, no name scope.
Op ServerCopy(const Op& op, const OpRegistry& ops);
// Lives as long as the server does. Only step scopes keep what they were.
Var ServerCopy(const Var& var);

// What one pserver calls the parameters and gradients of the plan.
class ServerNames {
 public:
  ServerNames(const PlacementPlan& plan, int pserver);
  // The slice held here, in the name of its whole: w -> w.block1, w@GRAD -> w@GRAD.block1. Null if none is.
  const std::string* Held(const std::string& name) const;
  // As trainer 0 names it after NameGradients, for op_role_var.
  const std::string& OnTrainer(const std::string& name) const;

 private:
  std::unordered_map<std::string, std::string> held_;
  std::unordered_map<std::string, std::string> on_trainer_;
};

// The updates that one pserver runs: slices it holds whose parameter has an optimizer, in the order of the
// optimizer ops. Their blocks are the last ones of its program, in this order.
struct ServerUpdate {
  SliceRef at;
  const ParamPlacement* placement = nullptr;
  const TrainedParam* trained = nullptr;
};
std::vector<ServerUpdate> UpdatesOn(const PassContext& context, int pserver);

}  // namespace penstock
