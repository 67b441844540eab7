// Parses the textual form of a program; the grammar is in this folder's README.md. Needs no registry: accepts
// ops of any type.
//
//   PENSTOCK_ASSIGN_OR_RETURN(Program program, ParseText(text, "main.ir"));
//
// kInvalidArgument E-text-syntax, with file:line:column, and the line with a mark under the place.
#pragma once

#include <string_view>

#include "framework/base/status.h"
#include "framework/ir/program.h"

namespace penstock {

Result<Program> ParseText(std::string_view text, std::string_view filename);

}  // namespace penstock
