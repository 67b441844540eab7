// OpDesc and VarDesc read and written without protobuf's message objects, which cost several times the work
// of the bytes themselves. Writing gives the bytes that protobuf gives. Reading takes the form that protobuf
// and Fluid write; whatever else is legal (packed lists, unknown fields, a message in two parts) is left to
// protobuf by answering false.
#pragma once

#include <string>
#include <string_view>

#include "framework/ir/op.h"
#include "framework/ir/var.h"

namespace penstock {

// Into an op or variable that is as it was made. False: not in the plain form; nothing is said of whether the
// bytes are right, and what was read until there is left. wire_bytes is set only where writing would give
// other bytes.
bool ReadPlainOp(std::string_view bytes, Op& op);
bool ReadPlainVar(std::string_view bytes, Var& var);

// The fields of the message, without tag and length.
void AppendOpFields(const Op& op, std::string& out);
void AppendVarFields(const Var& var, std::string& out);

// A length-delimited field: tag, length, bytes.
void AppendBytesField(int number, std::string_view bytes, std::string& out);

}  // namespace penstock
