// Makes inference programs from training programs.
//
//   Program test = CloneForTest(main);                       // the forward part, in test mode
//   PENSTOCK_ASSIGN_OR_RETURN(Program net, PruneTo(test, {"x"}, {"fc_1.tmp_2"}));
#pragma once

#include <set>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"

namespace penstock {

// Removes the ops of block 0 with a backward, optimize or learning-rate role, the variables that only they
// name, and the blocks that no remaining op runs; renumbers later blocks. Then sets `is_test` on each op, in
// any block, that has this attribute.
Program CloneForTest(const Program& program);

// Keeps only the ops of block 0 that are needed to compute the targets from the feeds, the blocks that these
// ops run, and the variables that they name. A fed variable needs no op that writes it. `target_ops`, ops of
// block 0, are always kept.
// kInvalidArgument E-prune-target: a target is not a variable of block 0.
Result<Program> PruneTo(const Program& program, const std::vector<std::string>& feeds,
                        const std::vector<std::string>& targets, const std::set<OpId>& target_ops = {});

}  // namespace penstock
