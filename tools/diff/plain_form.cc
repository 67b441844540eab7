#include "tools/diff/plain_form.h"

#include <algorithm>

#include "framework/base/strings.h"
#include "framework/text/printer.h"
#include "framework/verify/show_options.h"

namespace penstock::tools {
namespace {

bool IsControl(const Var& var) {
  return var.kind == VarKind::kTensor && !var.type.has_value() && !var.persistable;
}

}  // namespace

PlainForm::PlainForm(const OpRegistry& ops, const Program& program) : ops_(ops), program_(program) {
  std::map<std::string, int> called;
  for (int b = 0; b < program.block_count(); ++b) {
    for (const OpEntry& entry : program.block(b).ops()) {
      for (const std::string& name : entry.op->OutputNames()) {
        const Var* var = program.FindVar(b, name);
        if (var == nullptr || !IsControl(*var) || control_.contains(name)) continue;
        const auto pairs = entry.op->RolePairs();
        std::string text = StrCat(entry.op->type(), " of ", pairs.empty() ? "all" : pairs.front().first);
        const int before = called[text]++;
        control_[name] = before == 0 ? text : StrCat(text, ", ", before + 1);
      }
    }
  }
}

std::string PlainForm::NameOf(const std::string& name) const {
  const auto it = control_.find(name);
  return it == control_.end() ? name : it->second;
}

Op PlainForm::PlainOp(const Op& op) const {
  const auto by_name = [](const auto& left, const auto& right) { return left.name < right.name; };
  std::vector<Slot> inputs = op.inputs(), outputs = op.outputs();
  std::vector<NamedAttr> attrs = op.attrs();
  std::stable_sort(inputs.begin(), inputs.end(), by_name);
  std::stable_sort(outputs.begin(), outputs.end(), by_name);
  std::stable_sort(attrs.begin(), attrs.end(), by_name);
  Op plain(op.type());
  const auto rename = [this](ArgList& args) {
    for (std::string& name : args) name = NameOf(name);
  };
  for (Slot& slot : inputs) {
    rename(slot.args);
    if (!slot.args.empty()) plain.AddInput(slot.name, std::move(slot.args));
  }
  for (Slot& slot : outputs) {
    rename(slot.args);
    if (!slot.args.empty()) plain.AddOutput(slot.name, std::move(slot.args));
  }
  const PrintOptions options = ShowOptions(ops_);
  for (NamedAttr& attr : attrs) {
    if (!options.is_default || !options.is_default(op, attr)) plain.Set(attr.name, std::move(attr.value));
  }
  return plain;
}

std::string PlainForm::OpText(const Op& op) const { return PrintOp(PlainOp(op), ShowOptions(ops_)); }

std::map<std::string, std::string> PlainForm::VarTexts(int block) const {
  std::map<std::string, std::string> texts;
  for (const VarRef& var : program_.block(block).vars()) {
    if (!control_.contains(var->name)) texts.emplace(var->name, PrintVar(*var));
  }
  return texts;
}

}  // namespace penstock::tools
