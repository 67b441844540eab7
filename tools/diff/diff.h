// Two programs, op for op: what is only in one of them, and in which slots and attributes ops differ that
// stand for each other.
//
//   const ProgramDiff diff = DiffPrograms(ops, left, right);
//   if (!diff.equal()) std::cout << diff.text;
//
// What goes without saying does not count: the order of slots, attributes and variables, attributes that hold
// their default, locations, the names of control variables. Ops are aligned by a longest common subsequence
// of their texts; of those left over between two aligned ones, the ones of equal type stand for each other in
// turn.
#pragma once

#include <string>

#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock::tools {

struct ProgramDiff {
  int ops = 0;    // that differ or are only in one; two that stand for each other are one
  int vars = 0;   // the same of variables
  int other = 0;  // of blocks and of the program itself
  // For each block that differs its lines: "-" of the first program, "+" of the second, "=" what else is
  // known.
  std::string text;

  bool equal() const { return ops == 0 && vars == 0 && other == 0; }
};

ProgramDiff DiffPrograms(const OpRegistry& ops, const Program& a, const Program& b);

// "2 ops, 1 variable differ"; "nothing differs".
std::string CountText(const ProgramDiff& diff);

}  // namespace penstock::tools
