// Finds serialized programs, and compares programs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "framework/ir/program.h"

namespace penstock::test {

// The sorted paths of *.pb, *.pb.gz, *.pdmodel, __model__, and `model` in a folder combined/, below `folder`;
// empty if the folder does not exist.
std::vector<std::filesystem::path> ProgramFiles(const std::filesystem::path& folder);

// The first difference between two programs (blocks, ops in order, variables by name), or "". Ignores the
// presence of optional fields, as SameAs does; includes facts, locations and the program's own attributes.
std::string Difference(const Program& a, const Program& b);

}  // namespace penstock::test
