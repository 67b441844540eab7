// Copies of the user's ops and variables for a pserver's main and startup programs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/base/view_map.h"
#include "framework/ir/program.h"
#include "transpiler/passes/context.h"

namespace penstock::passes {

// The op as Fluid's append_op would create it: with every input slot of its declaration, without name scope.
Op ServerCopy(const Op& op, const OpRegistry& ops);
// The variable made persistable. Only step scopes stay as they are.
Var ServerCopy(const Var& var);

// Copies the properties of the program as a whole: version, random seed.
void CopyOrigin(const Program& from, Program& to);

// The blocks of one pserver's updates (shares.h) in a program that PlaceOptimizers has made.
struct UpdateLayout {
  std::vector<int> updates;  // the block of each update
  std::vector<int> merges;   // the block that its gradient enters: an earlier one if it is measured first
  int shared = -1;           // between the two: computes from measures, alike on all servers; -1: none
};
// kInternal: a block does not write the slice that it is to update.
Result<UpdateLayout> LayoutOf(std::string_view pass, const Program& program,
                              const std::vector<ServerUpdate>& updates);
// kInternal, unless the program has the block and an op there writes the variable: an earlier pass has left
// it elsewhere.
Status RequireWrites(std::string_view pass, const Program& program, int block, std::string_view name);
// Whether an update needs measures of other gradients, or its gradient is measured for others.
bool ClipsTogether(const plan::TrainedParam& trained);

// The parameters of which the pserver holds a slice, and those of which every pserver holds a shard.
std::vector<const plan::TrainedParam*> TrainedOn(const PassContext& context, int pserver);

// Maps the user's variables to their names on one pserver.
class ServerNames {
 public:
  ServerNames(const PassContext& context, int pserver);
  // The first slice held here of the given whole: w -> w.block1, w@GRAD -> w@GRAD.block1. Null if there is
  // none.
  const std::string* Held(const std::string& name) const;
  // All variables that replace the given one here: the slices held; or the variable itself and, for second
  // and further slices of one parameter, their own copies of it.
  std::vector<std::string> All(const std::string& name) const;
  // The user's variables that have at least one other name here.
  std::vector<std::string_view> Replaced() const;

 private:
  ViewMap<std::vector<std::string>> pieces_, own_;  // keys are views of the plan and the analysis
};

}  // namespace penstock::passes
