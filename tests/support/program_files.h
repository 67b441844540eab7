// Every serialized program below a folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "framework/ir/program.h"

namespace penstock::test {

// Sorted: *.pb, *.pb.gz, *.pdmodel, __model__, and the `model` of a combined/ folder. None if there is no
// such folder.
std::vector<std::filesystem::path> ProgramFiles(const std::filesystem::path& folder);

// The first difference between two programs, blocks, ops in order, variables by name; "" if there is none.
// What SameAs leaves out (presence of optional fields) does not count; facts, locations and the program's own
// attributes do.
std::string Difference(const Program& a, const Program& b);

}  // namespace penstock::test
