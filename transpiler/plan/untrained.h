// Ops that a program runs to optimize and that are for a parameter which is not trained: averages of frozen
// parameters and of running statistics. No server has such a parameter, so by default trainers go on to run
// them. Fluid drops them.
#pragma once

#include "framework/base/view_map.h"
#include "framework/ir/program.h"
#include "transpiler/plan/config.h"

namespace penstock::plan {

class UntrainedFinder {
 public:
  // The block must outlive it.
  UntrainedFinder(const Block& main, Dialect dialect) : main_(main), dialect_(dialect) {}
  bool IsOfUntrained(const Op& op);

 private:
  void ReadBlock();

  const Block& main_;
  Dialect dialect_;
  bool is_read_ = false;  // when it is first needed
  ViewSet used_;          // by any op
  ViewSet updated_;       // written to optimize
};

}  // namespace penstock::plan
