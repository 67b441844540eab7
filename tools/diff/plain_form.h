// The canonical form in which programs are compared: programs that differ only in insignificant details have
// the same form.
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

  // The op with slots and attributes sorted by name, without empty slots and default attributes. Control
  // variables are named after the op that sets them.
  Op PlainOp(const Op& op) const;
  std::string OpText(const Op& op) const;
  // The declarations by name, without control variables, which appear only in the ops that set and read them.
  std::map<std::string, std::string> VarTexts(int block) const;

 private:
  std::string NameOf(const std::string& name) const;

  const OpRegistry& ops_;
  const Program& program_;
  std::map<std::string, std::string> control_;  // variable -> its canonical name
};

}  // namespace penstock::tools
