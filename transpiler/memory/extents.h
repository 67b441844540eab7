// Which unknown extents of a program's variables are the same number, whatever is fed.
//
//   data words : i64[?, 1] lod=1        the rows of words
//   e : f32[?, 8] = lookup_table(...)   as many: the op gives its output as many as the ids have
//   s : f32[?, 8] = sequence_pool(X=e)  as many as there are sequences, which nothing tells
//
// Shape inference is asked: numbers that stand for nothing else take the place of what is unknown, and an
// output's extent that comes out as one of them is that one. Where an op wants some of them to be equal
// (it refuses different numbers and takes equal ones), they are. What no op tells stays apart.
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

  // Of a variable that has a shape: its extents as declared; in the place of an unknown one what stands for
  // it, below kUnknownDim. That itself, if no op that is run names the variable.
  std::vector<Dim> Of(const Var& var) const;
  // What that is for a person: "batch item", "row of words", "extent 1 of mask".
  std::string NameOf(Dim symbol) const;

 private:
  friend class ExtentReader;
  // An unknown extent. Those that are found to be equal form a tree below one of them.
  struct Unknown {
    const Var* var = nullptr;  // where it was met first
    int axis = 0;
    bool fed = false;  // no op makes the variable
    int same_as = -1;  // one that was met before; -1: the first of its kind
  };
  int Root(int unknown) const;

  std::vector<Unknown> unknowns_;
  std::unordered_map<const Var*, std::vector<Dim>> extents_;  // asked, never walked
  int fed_batches_ = 0;  // how many different numbers of rows without sequences are fed
};

}  // namespace penstock::memory
