// Compares two programs op by op: lists ops and variables of only one program, and the slots and attributes
// in which corresponding ops differ.
//
//   const ProgramDiff diff = DiffPrograms(ops, left, right);
//   if (!diff.equal()) std::cout << diff.text;
//
// The comparison ignores the order of slots, attributes and variables, attributes with their default value,
// locations, and the names of control variables. Ops are aligned by the longest common subsequence of their
// texts; between two aligned ops, the remaining ops of equal type correspond to each other in order.
#pragma once

#include <string>

#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock::tools {

struct ProgramDiff {
  int ops = 0;    // ops that differ or are in only one program; a corresponding pair counts once
  int vars = 0;   // variables, likewise
  int other = 0;  // differences of blocks and of the program itself
  // The lines of each block that differs: "-" for the first program, "+" for the second, "=" for a remark on
  // the lines above.
  std::string text;

  bool equal() const { return ops == 0 && vars == 0 && other == 0; }
};

ProgramDiff DiffPrograms(const OpRegistry& ops, const Program& a, const Program& b);

// "2 ops, 1 variable differ"; "nothing differs".
std::string CountText(const ProgramDiff& diff);

}  // namespace penstock::tools
