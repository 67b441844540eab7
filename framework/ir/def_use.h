// The writers and readers of each variable of one block, by OpId, in program order. The block's ops must
// outlive it: names are not copied.
#pragma once

#include <string_view>
#include <vector>

#include "framework/base/view_map.h"
#include "framework/ir/program.h"

namespace penstock {

class DefUse {
 public:
  explicit DefUse(const Block& block);
  // Empty if the variable has none. An op that names a variable twice is listed once.
  const std::vector<OpId>& Writers(std::string_view var) const;
  const std::vector<OpId>& Readers(std::string_view var) const;

 private:
  using Table = ViewMap<std::vector<OpId>>;
  static void Note(Table& table, const std::vector<Slot>& slots, OpId id);
  static const std::vector<OpId>& Look(const Table& table, std::string_view var);

  Table writers_, readers_;
};

}  // namespace penstock
