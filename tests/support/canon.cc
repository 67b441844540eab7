#include "tests/support/canon.h"

#include <algorithm>
#include <map>

#include "framework/base/strings.h"
#include "framework/text/printer.h"

namespace penstock::test {
namespace {

// "/optimizer_4/gradient_clip_2@CLIP/" -> "/optimizer/gradient_clip@CLIP/"
std::string Unnumbered(const std::string& scope) {
  std::string out;
  for (std::size_t i = 0; i < scope.size(); ++i) {
    std::size_t end = i + 1;
    while (end < scope.size() && scope[end] >= '0' && scope[end] <= '9') ++end;
    if (scope[i] == '_' && end > i + 1) {
      i = end - 1;
    } else {
      out.push_back(scope[i]);
    }
  }
  return out;
}

class Canonical {
 public:
  std::string Text(const Program& program) {
    std::string out = StrCat("version ", program.meta().version.value_or(0), "\n");
    for (int i = 0; i < program.block_count(); ++i) {
      const Block& block = program.block(i);
      out += StrCat("block ", i, " parent ", block.parent(), " forward ", block.forward_block(), "\n");
      const std::string ops = OpsText(block);
      std::vector<std::string> vars;
      for (const VarRef& var : block.vars()) vars.push_back(VarText(*var));
      std::sort(vars.begin(), vars.end());
      out += StrCat(Join(vars, ""), ops);
    }
    return out;
  }

 private:
  // Sorts adjacent fake_init ops, because Fluid makes them in the order of a set.
  std::string OpsText(const Block& block) {
    std::string out;
    std::vector<std::string> run;
    const auto flush = [&] {
      std::sort(run.begin(), run.end());
      out += Join(run, "");
      run.clear();
    };
    for (const OpEntry& entry : block.ops()) {
      std::string text = OpText(*entry.op);
      if (entry.op->type() == "fake_init") {
        run.push_back(std::move(text));
        continue;
      }
      flush();
      out += text;
    }
    flush();
    return out;
  }

  std::string Name(const std::string& name) {
    const std::size_t at = name.find("@0.");
    if (at == std::string::npos) return name;
    return controls_.emplace(name, StrCat(name.substr(0, at), "@ctl", controls_.size())).first->second;
  }

  std::string SlotTexts(std::vector<Slot> slots, std::string_view label) {
    std::sort(slots.begin(), slots.end(), [](const Slot& a, const Slot& b) { return a.name < b.name; });
    std::string out;
    for (const Slot& slot : slots) {
      std::vector<std::string> args;
      for (const std::string& arg : slot.args) args.push_back(Name(arg));
      out += StrCat("  ", label, " ", slot.name, " = ", Join(args, " "), "\n");
    }
    return out;
  }

  std::string OpText(const Op& op) {
    std::string out = StrCat("op ", op.type(), op.is_target() ? " is_target" : "", "\n");
    out += SlotTexts(op.outputs(), "out");
    out += SlotTexts(op.inputs(), "in");
    std::map<std::string, std::string> attrs;
    for (const NamedAttr& attr : op.attrs()) {
      if (attr.name == kCallstackAttr) continue;
      Attr value = attr.value;
      if (attr.name == "grad_to_block_id") {
        auto& entries = std::get<std::vector<std::string>>(value);
        std::sort(entries.begin(), entries.end());
      } else if (attr.name == kNameScopeAttr) {
        value = Unnumbered(std::get<std::string>(value));
      }
      attrs[attr.name] = StrCat(AttrKindName(KindOf(value)), " ", AttrToString(value));
    }
    for (const auto& [name, text] : attrs) out += StrCat("  attr ", name, " ", text, "\n");
    return out;
  }

  std::string VarText(const Var& var) {
    return StrCat("var ", Name(var.name), " : ", PrintVarType(var),
                  " lod=", var.type ? var.type->lod_level : 0, " persistable=", var.persistable,
                  " need_check_feed=", var.need_check_feed, "\n");
  }

  std::map<std::string, std::string> controls_;
};

}  // namespace

std::string Canon(const Program& program) { return Canonical().Text(program); }

std::string FirstDifference(const std::string& a, const std::string& b) {
  if (a == b) return "";
  const std::vector<std::string> x = Split(a, '\n');
  const std::vector<std::string> y = Split(b, '\n');
  std::size_t at = 0;
  while (at < x.size() && at < y.size() && x[at] == y[at]) ++at;
  std::size_t head = at;  // the op or variable of the line
  while (head > 0 && head < x.size() && StartsWith(x[head], "  ")) --head;
  std::string out = StrCat("line ", at + 1, ", in \"", head < x.size() ? x[head] : "the end", "\":");
  for (std::size_t i = at; i < at + 3; ++i) {
    if (i < x.size()) out += StrCat("\n  - ", x[i]);
    if (i < y.size()) out += StrCat("\n  + ", y[i]);
  }
  return out;
}

}  // namespace penstock::test
