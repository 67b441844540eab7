// Copies of the user's ops and variables for a pserver: what both its main and its startup program are made
// of.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/base/view_map.h"
#include "framework/ir/program.h"
#include "transpiler/passes/context.h"

namespace penstock::passes {

// The op as Fluid's append_op would write it anew: every input slot of its declaration, no name scope.
Op ServerCopy(const Op& op, const OpRegistry& ops);
// Lives as long as the server does. Only step scopes keep what they were.
Var ServerCopy(const Var& var);

// What a pserver's program has of the user's as a whole: version, random seed.
void CopyOrigin(const Program& from, Program& to);

// The blocks of one pserver's updates (shares.h) in a program that PlaceOptimizers has made.
struct UpdateLayout {
  std::vector<int> updates;  // of each update
  std::vector<int> merges;   // where its gradient comes in: the same, but for what is measured before updates
  int shared = -1;           // what all servers compute alike from measures, between the two; -1: none
};
UpdateLayout LayoutOf(const Program& program, const std::vector<ServerUpdate>& updates);
// Whether an update waits for measures of other gradients, or makes some.
bool ClipsTogether(const plan::TrainedParam& trained);

// The parameters that one pserver has something of: a slice, or a shard as every pserver has.
std::vector<const plan::TrainedParam*> TrainedOn(const PassContext& context, int pserver);

// What one pserver calls the user's variables.
class ServerNames {
 public:
  ServerNames(const PassContext& context, int pserver);
  // The first slice held here, in the name of its whole: w -> w.block1, w@GRAD -> w@GRAD.block1. Null if none
  // is.
  const std::string* Held(const std::string& name) const;
  // All that stands here for the variable: the slices held, or the variable itself and what second and
  // further slices of one parameter have of their own in its place.
  std::vector<std::string> All(const std::string& name) const;
  // The user's variables in whose place something of another name stands here.
  std::vector<std::string_view> Replaced() const;

 private:
  ViewMap<std::vector<std::string>> pieces_, own_;  // by names of the plan and the analysis
};

}  // namespace penstock::passes
