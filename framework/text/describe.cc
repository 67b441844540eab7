#include "framework/text/describe.h"

#include <algorithm>
#include <string>
#include <vector>

#include "framework/text/lexer.h"
#include "framework/text/printer.h"

namespace penstock {
namespace {

constexpr std::size_t kFactsMax = 12;  // an op may have thousands of arguments

struct Fact {
  std::string what;  // "X = fc_0.out"
  std::string type;
};

std::vector<Fact> InputFacts(const Program& program, int block, const Op& op) {
  std::vector<Fact> facts;
  for (const Slot& slot : op.inputs()) {
    for (const std::string& arg : slot.args) {
      const Var* var = program.FindVar(block, arg);
      facts.push_back({StrCat(SpellName(slot.name), " = ", SpellName(arg)),
                       var == nullptr ? "not declared" : PrintVarType(*var)});
      if (facts.size() == kFactsMax) return facts;
    }
  }
  return facts;
}

}  // namespace

Status AtOp(Status status, const Program& program, int block, int position, const Op& op) {
  if (status.ok()) return status;
  status.With(StrCat("op ", position, " of block ", block, ":  ", PrintOp(op)));
  const std::vector<Fact> facts = InputFacts(program, block, op);
  std::size_t width = 0;
  for (const Fact& fact : facts) width = std::max(width, fact.what.size());
  for (const Fact& fact : facts) {
    status.With(StrCat("  ", fact.what, std::string(width - fact.what.size(), ' '), " : ", fact.type));
  }
  if (!op.location().empty()) status.With(StrCat("written at ", op.location()));
  return status;
}

}  // namespace penstock
