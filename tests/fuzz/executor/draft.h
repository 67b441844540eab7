// A program as plain lists, for edits that may produce invalid programs.
//
//   Draft draft = DraftOf(program);
//   draft.blocks[0].ops.erase(draft.blocks[0].ops.begin());
//   Program changed = ProgramOf(draft);
#pragma once

#include <string>
#include <vector>

#include "framework/ir/program.h"

namespace penstock::fuzz {

struct DraftBlock {
  int parent = -1;
  int forward = -1;  // the block that this block differentiates; -1: none
  std::vector<Var> vars;
  std::vector<Op> ops;
};

struct Draft {
  std::vector<DraftBlock> blocks;  // at least one
};

Draft DraftOf(const Program& program);
Program ProgramOf(const Draft& draft);

}  // namespace penstock::fuzz
