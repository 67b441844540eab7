// What the kernels of collective ops must know of their block: found for all ops in two walks over it,
// because a walk for each op would take time quadratic in their number.
//
//   const RingSites sites(program.block(0));
//   if (const RingSites::Site* site = sites.Find(op)) ... site->awaited_before_use ...
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "framework/ir/program.h"
#include "framework/runtime/collective_rings.h"

namespace penstock {

class RingSites : public RingSiteCache {
 public:
  struct Site {
    // Of the ops after the op in its block, the first that uses a variable of the op is a c_sync_comm_stream
    // of its ring. Then the operation that the op starts may overlap with the ops before that one. Ops that
    // only order streams count as using no variable, ops with blocks as using all.
    bool awaited_before_use = false;
    // The line that led to the op: its own, or of the op that made what it takes. Passes' ops have none. A
    // view of the block; empty if there is none.
    std::string_view where;
  };

  explicit RingSites(const Block& block);
  // Null if the op is not in the block or belongs to no ring.
  const Site* Find(const Op& op) const;

 private:
  void FindLines(const Block& block);
  void FindWaits(const Block& block);

  std::unordered_map<const Op*, Site> sites_;
};

}  // namespace penstock
