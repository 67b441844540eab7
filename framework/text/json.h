// A program as JSON: the fields of the binary form by name, ProgramExtra as "extra". Loses nothing:
//
//   integers  as numbers, 64 bits exact
//   floats    as the shortest number that reads back; "inf", "-inf", "nan"
//   enums     by name
//   strings   as strings, or {"hex": "c3ff"} if they are not UTF-8
//   maps      as arrays of {"key", "value"}, sorted
//   others    unknown fields as "unknown_fields", in hex
//
// kInvalidArgument E-json: not JSON (line:column), or not a program (the path of the field).
#pragma once

#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/ir/program.h"

namespace penstock {

std::string ProgramToJson(const Program& program);
Result<Program> ProgramFromJson(std::string_view text, std::string_view filename);

}  // namespace penstock
