// Which blocks stand within which, asked without walking through every block in between: a program may nest
// tens of thousands of them.
#pragma once

#include <string_view>
#include <vector>

#include "framework/base/view_map.h"
#include "framework/ir/program.h"

namespace penstock::memory {

// A forest of blocks.
class Nesting {
 public:
  // By block: the earlier block around it, or -1.
  explicit Nesting(const std::vector<int>& around);

  // Whether `inner` is `outer` or stands somewhere within it. Constant.
  bool IsWithin(int inner, int outer) const {
    return enter_[At(outer)] <= enter_[At(inner)] && enter_[At(inner)] < leave_[At(outer)];
  }
  // The block directly within `outer` on the way to `inner`, which stands within it and is another block.
  // Logarithmic.
  int StepToward(int inner, int outer) const;
  // Where a block comes in a walk from the outside in.
  int Enter(int block) const { return enter_[At(block)]; }

 private:
  static std::size_t At(int block) { return static_cast<std::size_t>(block); }

  std::vector<int> enter_, leave_;        // [enter, leave) holds those of all blocks within
  std::vector<std::vector<int>> within_;  // directly, in the order of the walk
};

// Program::FindVar for a program that stays as it is.
class VarFinder {
 public:
  // The program must outlive it.
  explicit VarFinder(const Program& program);

  const Var* Find(int block, std::string_view name) const;

 private:
  struct Declaration {
    const Var* var = nullptr;
    int block = -1;
    int around = -1;  // the nearest one of the name around this one: where it stands in the list
  };
  // Those of one name, in the order of the walk.
  using Declarations = std::vector<Declaration>;

  const Declaration* FindIn(const Declarations& declarations, int block) const;
  void Add(int block, const Var& var);

  const Program& program_;
  // By block: whether the way out of it leads through earlier parents alone. A block whose gradient another
  // one is stands aside of that way; the program itself knows how to find what such a block sees.
  std::vector<bool> plain_;
  Nesting nesting_;
  ViewMap<Declarations> declared_;  // of plain blocks
};

}  // namespace penstock::memory
