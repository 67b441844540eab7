// Reproduces errors of Fluid 1.8.5 in updates by selected rows. Our updates by rows equal those of the dense
// gradient; with these errors added, a program has Fluid's numbers, so that a comparison shows any other
// difference.
//
//   sparse_momentum_rmsprop_unsorted    momentum and rmsprop lose the gradients of some rows if the list of
//                                       rows has no duplicates and is not ascending
#pragma once

#include <map>
#include <string>
#include <vector>

#include "executor/schedule/executor.h"
#include "framework/ir/program.h"

namespace penstock::test {

// The beta of each variable of beta powers that an adam op updates in place. In Fluid, adam by rows uses the
// powers of the next step; dense adam gives the same numbers if its powers start a step ahead.
std::map<std::string, float> BetasInPlace(const Op& op);
// The same for every adam op with a gradient of rows, in all blocks.
std::map<std::string, float> BetasOfRows(const Program& program);

// The program with dense gradients instead of selected rows.
Program WithDenseGradients(Program program);

// Momentum and rmsprop with Fluid's update by rows: a program with dense gradients, in which a mask that is
// fed in each step removes the rows that Fluid does not find.
class LostRows {
 public:
  // The ids of the tables must be fed. A program without such an update is not changed.
  explicit LostRows(const Program& program);

  const Program& program() const { return program_; }
  // The masks of a step whose feeds contain the ids. Adds the number of lost rows to `lost`.
  std::vector<exec::Feed> Masks(const std::vector<exec::Feed>& feeds, int& lost) const;

 private:
  struct Table {
    std::string mask;  // the variable
    Dim height = 0;
    std::vector<std::string> ids;  // of its look-ups, in the order of the program
  };
  Program program_;
  std::vector<Table> tables_;
};

}  // namespace penstock::test
