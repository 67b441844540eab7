// Decides which temporaries take over the memory of an input of the op that first writes them.
//
//   d = elementwise_add_grad(Out@GRAD=g)     d has the memory of g, if nothing reads g afterwards
//
// Less memory moves through the caches then, and a copy of all elements need not be made at all.
#pragma once

#include <vector>

#include "executor/graph/specialise.h"

namespace penstock::exec {

// Whether the instruction computes the output, a slot, in the memory of the input, a slot of as many elements
// of its type that nothing reads afterwards. `alike`: both have one shape.
bool ComputesInPlace(const Instruction& instruction, int output, int input, bool alike);

// For each place, the place whose memory it takes over; -1: none. `place_of`: the place of each slot, or -1.
// An output takes over an input's place if
//   * both are temporaries in the arena, of one element type and size, and the op first writes the output and
//     last uses the input;
//   * the op declares it (OpDef::InPlace), or is elementwise, has no other output, and both have one shape;
//   * no other place has taken over the input's, and no other output of the op takes over a place;
//   * neither is fetched, viewed, or named by a nested block, and the op holds no arguments (Effects) and
//     runs no block.
std::vector<int> PlacesToTakeOver(const Specialisation& specialisation, const std::vector<int>& place_of);

}  // namespace penstock::exec
