// Reads and writes OpDesc and VarDesc without protobuf's message objects, which cost several times as much as
// the bytes themselves. Writing gives protobuf's bytes. Reading accepts the form that protobuf and Fluid
// write, the plain form. For any other legal form (packed lists, unknown fields, a message in two parts) it
// returns false, and the caller uses protobuf.
#pragma once

#include <string>
#include <string_view>

#include "framework/ir/op.h"
#include "framework/ir/var.h"

namespace penstock {

// Reads into a default-constructed op or variable. False: the bytes are not in the plain form, whether valid
// or not; fields read so far remain. Sets wire_bytes only if writing would give different bytes.
bool ReadPlainOp(std::string_view bytes, Op& op);
bool ReadPlainVar(std::string_view bytes, Var& var);

// Appends the fields of the message, without tag and length.
void AppendOpFields(const Op& op, std::string& out);
void AppendVarFields(const Var& var, std::string& out);

// Appends a length-delimited field: tag, length, bytes.
void AppendBytesField(int number, std::string_view bytes, std::string& out);

}  // namespace penstock
