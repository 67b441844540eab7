// Errors of Fluid 1.8.5 in updates by selected rows, made on purpose. Our updates by rows are those of the
// dense gradient; with these errors put in, a program of Fluid's has Fluid's numbers, so that any other
// difference shows.
//
//   sparse_momentum_rmsprop_unsorted    momentum and rmsprop lose the gradient of some rows that are listed
//                                       once each and not ascending
#pragma once

#include <map>
#include <string>
#include <vector>

#include "executor/schedule/executor.h"
#include "framework/ir/program.h"

namespace penstock::test {

// The powers of beta that an adam leaves in the variables which it takes them from: by variable, the beta. By
// rows adam takes the next step's; the dense one does if its powers start a step ahead.
std::map<std::string, float> BetasInPlace(const Op& op);
// The same of every adam with a gradient of rows, in all blocks.
std::map<std::string, float> BetasOfRows(const Program& program);

// The program with dense gradients instead of rows.
Program WithDenseGradients(Program program);

// Momentum and rmsprop as Fluid updates by rows: the program with dense gradients, in which a mask, fed with
// each step, takes out the rows that Fluid does not find.
class LostRows {
 public:
  // The ids of the tables must be fed. The program stays as it is if it has no such update.
  explicit LostRows(const Program& program);

  const Program& program() const { return program_; }
  // The masks of a step with these feeds, which have the ids. How many rows are lost is added to `lost`.
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
