// A program in the form in which it is compared: what goes without saying is the same in all that mean the
// same.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock::tools {

class PlainForm {
 public:
  PlainForm(const OpRegistry& ops, const Program& program);

  // Slots and attributes by name; control variables called by what sets them.
  Op PlainOp(const Op& op) const;
  std::string OpText(const Op& op) const;
  // By name: the declaration. Without control variables, which ops declare by setting them.
  std::map<std::string, std::string> VarTexts(int block) const;

 private:
  std::string NameOf(const std::string& name) const;

  const OpRegistry& ops_;
  const Program& program_;
  std::map<std::string, std::string> control_;  // variable -> what it is called here
};

}  // namespace penstock::tools
