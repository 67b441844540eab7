// The parts of one server: what it continues from when it alone is started again.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const std::optional<OwnPart> part,
//                             NewestOwnPart(disk, "DIR", {.server = 0, .servers = 2, .run = "job7.0"}));
//   part->manifest.step      // 10: part->folder has its values, whether other servers have theirs or not
#pragma once

#include <optional>
#include <string>

#include "executor/checkpoint/folder.h"

namespace penstock::checkpoint {

struct PartOwner {
  int server = 0, servers = 1;
  std::string run;
};

struct OwnPart {
  std::string folder;
  Manifest manifest;
};

// nullopt: the server has completed none in this run. What is not whole was not completed, and does not
// count.
Result<std::optional<OwnPart>> NewestOwnPart(Disk& disk, const std::string& folder, const PartOwner& owner);

}  // namespace penstock::checkpoint
