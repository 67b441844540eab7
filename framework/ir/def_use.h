// Who writes and who reads each variable of one block, by OpId, in program order.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/ir/program.h"

namespace penstock {

class DefUse {
 public:
  explicit DefUse(const Block& block);
  // Empty if there are none. An op that names a variable twice is listed once.
  const std::vector<OpId>& Writers(std::string_view var) const;
  const std::vector<OpId>& Readers(std::string_view var) const;

 private:
  std::map<std::string, std::vector<OpId>, std::less<>> writers_;
  std::map<std::string, std::vector<OpId>, std::less<>> readers_;
};

}  // namespace penstock
