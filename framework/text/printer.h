// Prints programs as text; ParseText (parser.h) reads it back. The grammar is in this folder's README.md.
//
//   PrintProgram(program, PrintOptions::Everything());   // loses nothing: `penstock convert`
//   PrintProgram(program);                               // for people: `penstock show`
#pragma once

#include <functional>
#include <string>

#include "framework/ir/program.h"

namespace penstock {

struct PrintOptions {
  // Each flag adds something that is omitted by default.
  bool defaults = false;      // attributes that hold their default, the framework's own empty ones included
  bool forward_role = false;  // @forward
  bool locations = false;     // at "...", by "...", op_callstack
  bool carried = false;       // at the top: plan, job_facts, chunk_rows, op_compatible_map, unknown fields

  // Whether an attribute holds its schema's default; used only without `defaults`. Null: unknown.
  std::function<bool(const Op&, const NamedAttr&)> is_default;

  static PrintOptions Everything() {
    return {.defaults = true, .forward_role = true, .locations = true, .carried = true};
  }
};

// The result ends with a newline. A plain temporary's type is printed where it is first written; all other
// variables are declared at the head of their block, in the block's order.
std::string PrintProgram(const Program& program, const PrintOptions& options = {});

// One op on one line, without types and without a newline, as errors show it.
std::string PrintOp(const Op& op, const PrintOptions& options = {});
// The same with the types of its outputs, as declared in the block.
std::string PrintOp(const Program& program, int block, const Op& op, const PrintOptions& options = {});

// "f32[?, 784]", "rows<f32[?, 16]>", "control"
std::string PrintVarType(const Var& var);
// "param w : f32[13, 1] stop_gradient"
std::string PrintVar(const Var& var);

}  // namespace penstock
