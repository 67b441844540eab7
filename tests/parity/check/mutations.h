// Makes every single edit of a role program that a user, a script or a defect of a transpiler might make in a
// correct set.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/parity/check/edit_set.h"

namespace penstock::test {

struct Mutation {
  std::string what;  // "send.epmap: turned round"; the same for all edits of one kind
  int number =
      0;  // index among the edits of its kind in the program; equal for the same edit of another program
  std::function<void(Program&)> make;
};

// Edits of ops: remove, repeat or move an op; change an argument or attribute. Edits only `per_type` ops of
// each type, because ops of one type are much alike.
std::vector<Mutation> OpMutations(const Program& program, int per_type);
// Edits of variables and blocks: their types, and the block that contains them.
std::vector<Mutation> DeclarationMutations(const Program& program, int per_kind);

}  // namespace penstock::test
