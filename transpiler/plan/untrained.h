// Finds optimize-role ops that belong to a parameter which is not trained, such as averages of frozen
// parameters and of running statistics. No server has such a parameter, so in the default dialect trainers
// keep these ops. Fluid drops them.
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
  bool is_read_ = false;  // set when the block is first needed
  ViewSet used_;          // by any op
  ViewSet updated_;       // written by optimize-role ops
};

}  // namespace penstock::plan
