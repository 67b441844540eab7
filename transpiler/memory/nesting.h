// Answers which blocks are nested in which without walking through the blocks in between: a program may nest
// tens of thousands of blocks.
#pragma once

#include <string_view>
#include <vector>

#include "framework/base/view_map.h"
#include "framework/ir/program.h"

namespace penstock::memory {

// A forest of blocks.
class Nesting {
 public:
  // `around[i]` is the block around block i, an earlier one, or -1.
  explicit Nesting(const std::vector<int>& around);

  // Whether `inner` is `outer` or is nested in it at any depth. Constant time.
  bool IsWithin(int inner, int outer) const {
    return enter_[At(outer)] <= enter_[At(inner)] && enter_[At(inner)] < leave_[At(outer)];
  }
  // The child of `outer` that is or contains `inner`. `inner` must be nested in `outer` and differ from it.
  // Logarithmic time.
  int StepToward(int inner, int outer) const;
  // The block's position in a preorder walk.
  int Enter(int block) const { return enter_[At(block)]; }

 private:
  static std::size_t At(int block) { return static_cast<std::size_t>(block); }

  std::vector<int> enter_, leave_;        // [enter, leave) are the positions of the block and all nested ones
  std::vector<std::vector<int>> within_;  // children of each block, in the order of the walk
};

// Program::FindVar for a program that does not change, without walking through the blocks in between.
class VarFinder {
 public:
  // The program must outlive it.
  explicit VarFinder(const Program& program);

  const Var* Find(int block, std::string_view name) const;

 private:
  struct Declaration {
    const Var* var = nullptr;
    int block = -1;
    int around = -1;  // index in the list of the nearest enclosing declaration of the same name; -1: none
  };
  // All declarations of one name, in the order of the walk.
  using Declarations = std::vector<Declaration>;

  const Declaration* FindIn(const Declarations& declarations, int block) const;
  void Add(int block, const Var& var);

  const Program& program_;
  // By block: whether each enclosing block is an earlier parent. For a gradient block, which also sees the
  // block whose gradient it computes, Find falls back on Program::FindVar.
  std::vector<bool> plain_;
  Nesting nesting_;
  ViewMap<Declarations> declared_;  // of plain blocks
};

}  // namespace penstock::memory
