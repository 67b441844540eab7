// The C++ part of a Python Program: a program value that its handles read and change through this class.
// Handles are the Python objects Block, Operator and Variable; each keeps the box, a block index, and an OpId
// or a name. After an assignment to `program` all handles refer to the new value; a handle whose op or
// variable is not in it raises StateError when it is used.
#pragma once

#include <string>

#include "framework/ir/program.h"

namespace penstock::python {

struct ProgramBox {
  Program program;
  int backwards = 0;  // backward passes added so far; part of the names of gradients

  const Block& ReadBlock(int block) const;  // throws ProgramError if there is no such block
  Block& WriteBlock(int block);
  const Op& ReadOp(int block, OpId id) const;                    // throws StateError if it was removed
  const Var& ReadVar(int block, const std::string& name) const;  // throws StateError if it was removed
};

}  // namespace penstock::python
