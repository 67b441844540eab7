// What a Python Program holds: a program value that its handles (Block, Operator, Variable: Python objects
// that keep the box, a block index and an OpId or a name) read and change through this class. Assigning to
// `program` makes all of them mean the new value; one whose op or variable is not in it raises StateError
// when used.
#pragma once

#include <string>

#include "framework/ir/program.h"

namespace penstock::python {

struct ProgramBox {
  Program program;
  int backwards = 0;  // gradients that were asked for so far, which names them

  const Block& ReadBlock(int block) const;  // throws ProgramError if there is no such block
  Block& WriteBlock(int block);
  const Op& ReadOp(int block, OpId id) const;  // throws StateError if it is gone
  const Var& ReadVar(int block, const std::string& name) const;
};

}  // namespace penstock::python
