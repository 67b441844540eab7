// The line of the user that led to each collective op of a block, for messages: found for all ops in one walk
// over it, because a walk for each op would take time quadratic in their number.
//
//   const RingSites sites(program.block(0));
//   if (const std::string_view* line = sites.Find(op)) ...
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
  explicit RingSites(const Block& block);
  // The op's own line, or that of the op that made what it takes: passes' ops have none. A view of the block;
  // empty if there is none. Null if the op is not in the block or belongs to no ring.
  const std::string_view* Find(const Op& op) const;

 private:
  std::unordered_map<const Op*, std::string_view> lines_;
};

}  // namespace penstock
