// Finds which unknown extents of a program's variables are always equal, whatever is fed.
//
//   data words : i64[?, 1] lod=1        the rows of words
//   e : f32[?, 8] = lookup_table(...)   equal: the op's output has as many rows as the ids
//   s : f32[?, 8] = sequence_pool(X=e)  different: the number of sequences, which no declaration states
//
// The method is to run shape inference with unique numbers in place of unknown extents. An output extent that
// equals one of these numbers is that unknown extent. If an op rejects different numbers for some extents and
// accepts equal ones, these extents are equal. All others count as different.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock::memory {

class Extents {
 public:
  // Both must outlive it. Cost: a few inferences for each op.
  Extents(const OpRegistry& ops, const Program& program);

  // The declared extents of a variable that has a shape, with each unknown extent replaced by its symbol, a
  // number below kUnknownDim; equal symbols mean equal extents. An extent stays kUnknownDim if no op that
  // runs names the variable.
  std::vector<Dim> Of(const Var& var) const;
  // The symbol's name in reports: "batch item", "row of words", "extent 1 of mask".
  std::string NameOf(Dim symbol) const;

 private:
  friend class ExtentReader;
  // An unknown extent. Equal ones form a tree (union-find).
  struct Unknown {
    const Var* var = nullptr;  // the first variable that has it
    int axis = 0;
    bool fed = false;  // no op makes the variable
    int same_as = -1;  // its parent in the tree, an earlier one; -1: it is a root
  };
  int Root(int unknown) const;

  std::vector<Unknown> unknowns_;
  std::unordered_map<const Var*, std::vector<Dim>> extents_;  // looked up, never iterated
  int fed_batches_ = 0;  // the number of different first extents of fed variables without sequences
};

}  // namespace penstock::memory
