// What ranks exchange already, because an earlier transpile rewrote the program: a program with several
// optimizers may be rewritten after each of them. Each rewriting adds the exchange of what it finds new.
//
//   const Exchanged earlier(main);
//   if (!earlier.gradients.contains("w@GRAD")) ... plan its reduction ...
#pragma once

#include <set>

#include "framework/base/view_map.h"
#include "framework/ir/program.h"

namespace penstock::plan {

// The names are views of the program.
struct Exchanged {
  explicit Exchanged(const Program& main);

  ViewSet gradients;      // that a backward op reduces
  ViewSet updates;        // parameters that ranks average
  std::set<OpId> losses;  // ops that start a backward pass whose gradients are exchanged
};

// The variables to which a startup program gives rank 0's value last.
ViewSet BroadcastIn(const Program& startup);

}  // namespace penstock::plan
