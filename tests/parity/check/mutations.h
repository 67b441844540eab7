// Every single edit of a role program, one at a time: what a hand, a script or a defect of a transpiler might
// do to a correct set.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/parity/check/edit_set.h"

namespace penstock::test {

struct Mutation {
  std::string what;  // "send.epmap: turned round"; edits of one kind are called alike
  int number =
      0;  // among those of its kind in the program: the same edit of another program has the same one
  std::function<void(Program&)> make;
};

// Of a program's ops: one is removed, done again or moved; one of its arguments or attributes is another. Ops
// of one type are much alike: `per_type` of each are edited.
std::vector<Mutation> OpMutations(const Program& program, int per_type);
// Of its variables and blocks: their types, and their places in each other.
std::vector<Mutation> DeclarationMutations(const Program& program, int per_kind);

}  // namespace penstock::test
