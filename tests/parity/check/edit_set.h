// Small edits of role programs, for tests that break one property of a correct set.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "transpiler/check/check.h"

namespace penstock::test {

// An op of a program: the n-th of its type in a block, or in any block from 1 on.
struct OpAt {
  int block = 0;
  OpId id = OpId::kNone;
};
std::optional<OpAt> FindOp(const Program& program, int block, const std::string& type, int n = 0);
std::optional<OpAt> FindInner(const Program& program, const std::string& type, int n = 0);
// The first op for which a predicate holds, in any block.
std::optional<OpAt> FindIf(const Program& program, const std::function<bool(const Op&)>& holds);

const Op& OpOf(const Program& program, OpAt at);
void Remove(Program& program, OpAt at);
void Repeat(Program& program, OpAt at);  // inserts a copy after the op
void Change(Program& program, OpAt at, const std::function<void(Op&)>& change);
void MoveBefore(Program& program, OpAt at, OpAt before);  // within one block
void ChangeVar(Program& program, const std::string& name, const std::function<void(Var&)>& change);

}  // namespace penstock::test
