// The variables of blocks.
#pragma once

#include <initializer_list>
#include <map>
#include <string>

#include "framework/ir/program.h"

namespace penstock::pserver {

// The names in the ops of these blocks, each with whether an op writes it. Skips block -1.
inline std::map<std::string, bool> NamesOf(const Program& program, std::initializer_list<int> blocks) {
  std::map<std::string, bool> names;
  for (const int block : blocks) {
    if (block < 0) continue;
    for (const OpEntry& entry : program.block(block).ops()) {
      for (const std::string& name : entry.op->InputNames()) names.try_emplace(name, false);
      for (const std::string& name : entry.op->OutputNames()) names[name] = true;
    }
  }
  names.erase(kEmptyVarName);
  names.erase("");
  return names;
}

}  // namespace penstock::pserver
