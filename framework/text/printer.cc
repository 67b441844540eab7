#include "framework/text/printer.h"

#include <set>
#include <span>

#include "framework/base/strings.h"
#include "framework/text/lexer.h"
#include "framework/text/program_words.h"
#include "framework/text/role_words.h"
#include "framework/text/var_words.h"

namespace penstock {
namespace {

std::string TensorTypeText(const TensorType& type) { return StrCat(DTypeName(type.dtype), type.shape); }

std::string PartsText(const Var& var) {
  std::vector<std::string> parts;
  for (const TensorType& part : var.reader) {
    parts.push_back(TensorTypeText(part));
    if (part.lod_level != 0) parts.back() += StrCat(" ", kLod, "=", part.lod_level);
  }
  for (const DType element : var.tuple) {
    const auto number = static_cast<std::int32_t>(element);
    parts.push_back(IsDType(number) ? std::string(DTypeName(element)) : StrCat(number));
  }
  return parts.empty() ? "" : StrCat(" of [", Join(parts, ", "), "]");
}

std::string_view DeclarationWord(const Var& var) {
  if (var.persistable) return var.facts.is_parameter ? kParamWord : kPersistWord;
  return var.facts.is_data ? kDataWord : kVarWord;
}

// The flags, each with a space in front.
std::string FlagsText(const Var& var) {
  const std::string_view word = DeclarationWord(var);
  const VarFacts& facts = var.facts;
  std::string out;
  const auto flag = [&out](bool set, const auto&... parts) {
    if (set) out += StrCat(" ", parts...);
  };
  flag(var.type && var.type->lod_level != 0, kLod, "=", var.type ? var.type->lod_level : 0);
  flag(facts.stop_gradient, kStopGradient);
  flag(facts.is_parameter && word != kParamWord, kParameter);
  flag(facts.is_data && word != kDataWord, kData);
  flag(!facts.trainable, kTrainable, "=false");
  flag(facts.learning_rate != 1.0f, kLearningRate, "=", AttrToString(facts.learning_rate));
  flag(facts.is_distributed, kDistributed);
  flag(var.need_check_feed, kNeedCheckFeed);
  if (facts.slice) {
    flag(true, kRows, "=[", facts.slice->row_begin, ", ", facts.slice->row_end, ") of ",
         SpellName(facts.slice->whole), facts.slice->whole_shape);
  }
  return out;
}

std::string ArgsText(std::span<const std::string> args) {
  if (args.size() == 1) return args[0];
  return StrCat("[", Join(args, ", "), "]");
}

bool IsFrameworkDefault(const NamedAttr& attr) {
  const auto* text = std::get_if<std::string>(&attr.value);
  const auto* names = std::get_if<std::vector<std::string>>(&attr.value);
  if (attr.name == kNameScopeAttr) return text != nullptr && (text->empty() || *text == "/");
  if (attr.name == kDeviceAttr) return text != nullptr && text->empty();
  return attr.name == kRoleVarAttr && names != nullptr && names->empty();
}

// The part of an op's role that can be printed behind "@". Other values are printed as attributes.
struct RoleText {
  bool role = false;
  bool pairs = false;
  std::string text;  // " @optimize(w, w@GRAD)"
};

RoleText RoleOf(const Op& op, const PrintOptions& options) {
  RoleText out;
  const auto* number = op.Get<std::int32_t>(kRoleAttr);
  const std::optional<std::string> words =
      number == nullptr ? std::nullopt : RoleWords(static_cast<OpRole>(*number));
  if (!words) return out;
  out.role = true;
  const auto* names = op.Get<std::vector<std::string>>(kRoleVarAttr);
  out.pairs = names != nullptr && !names->empty() && names->size() % 2 == 0;
  if (*number == 0 && !out.pairs && !options.forward_role) return out;
  out.text = StrCat(" @", *words);
  if (!out.pairs) return out;
  for (std::size_t i = 0; i < names->size(); i += 2) {
    out.text += StrCat("(", SpellName((*names)[i]), ", ", SpellName((*names)[i + 1]), ")");
  }
  return out;
}

// " {axis=1}", or the empty text.
std::string AttrsText(const Op& op, const RoleText& role, const PrintOptions& options) {
  std::string out;
  for (const NamedAttr& attr : op.attrs()) {
    if ((role.role && attr.name == kRoleAttr) || (role.pairs && attr.name == kRoleVarAttr)) continue;
    if (!options.locations && attr.name == kCallstackAttr) continue;
    if (!options.defaults &&
        (IsFrameworkDefault(attr) || (options.is_default && options.is_default(op, attr)))) {
      continue;
    }
    out += StrCat(out.empty() ? " {" : ", ", SpellName(attr.name), "=", AttrToString(attr.value));
  }
  return out.empty() ? out : out + "}";
}

// Spells an argument of an output, with its type if the type is printed there.
using OutputSpelling = std::function<std::string(const std::string&)>;

std::string SlotsText(const std::vector<Slot>& slots, const OutputSpelling& spell) {
  std::vector<std::string> parts;
  for (const Slot& slot : slots) {
    std::vector<std::string> args;
    for (const std::string& arg : slot.args) args.push_back(spell(arg));
    parts.push_back(StrCat(SpellName(slot.name), "=", ArgsText(args)));
  }
  return StrCat("(", Join(parts, ", "), ")");
}

std::string ResultText(const Op& op, const OutputSpelling& spell) {
  const std::vector<Slot>& outputs = op.outputs();
  if (outputs.empty()) return "";
  if (outputs.size() > 1 || outputs[0].name != "Out") return SlotsText(outputs, spell) + " = ";
  std::vector<std::string> args;
  for (const std::string& arg : outputs[0].args) args.push_back(spell(arg));
  return ArgsText(args) + " = ";
}

std::string OpText(const Op& op, const PrintOptions& options, const OutputSpelling& spell) {
  const RoleText role = RoleOf(op, options);
  std::string out = ResultText(op, spell) + SpellName(op.type());
  out += SlotsText(op.inputs(), SpellName) + AttrsText(op, role, options) + role.text;
  if (op.is_target()) out += " target";
  if (options.locations && !op.location().empty()) out += StrCat(" at ", Quote(op.location()));
  if (options.locations && !op.made_by().empty()) out += StrCat(" by ", Quote(op.made_by()));
  return out;
}

// The variables of a block whose type is printed at their first write.
std::set<std::string, std::less<>> TypedAtWrite(const Block& block) {
  std::set<std::string, std::less<>> names;
  for (const OpEntry& entry : block.ops()) {
    for (const Slot& slot : entry.op->outputs()) {
      for (const std::string& arg : slot.args) {
        const Var* var = block.FindVar(arg);
        if (var == nullptr || DeclarationWord(*var) != kVarWord || !FlagsText(*var).empty()) continue;
        names.insert(arg);
      }
    }
  }
  return names;
}

void PrintBlock(const Block& block, const PrintOptions& options, std::string& out) {
  out += StrCat("block ", block.index());
  if (block.parent() >= 0) out += StrCat(" in ", block.parent());
  if (block.has_forward_block()) out += StrCat(" forward ", block.forward_block());
  out += " {\n";
  std::set<std::string, std::less<>> untyped = TypedAtWrite(block);
  for (const VarRef& var : block.vars()) {
    if (!untyped.contains(var->name)) out += StrCat("  ", PrintVar(*var), "\n");
  }
  const auto spell = [&](const std::string& name) {
    const auto first = untyped.find(name);
    if (first == untyped.end()) return SpellName(name);
    untyped.erase(first);
    return StrCat(SpellName(name), " : ", PrintVarType(*block.FindVar(name)));
  };
  for (const OpEntry& entry : block.ops()) out += StrCat("  ", OpText(*entry.op, options, spell), "\n");
  out += "}\n";
}

std::string HeaderText(const ProgramMeta& meta, const PrintOptions& options) {
  std::vector<NamedAttr> attrs;
  const auto add = [&attrs](std::string_view name, Attr value) {
    attrs.push_back({std::string(name), std::move(value)});
  };
  if (meta.version) add(kVersionWord, *meta.version);
  if (meta.random_seed != 0) add(kRandomSeedWord, meta.random_seed);
  if (!meta.policies.empty()) {
    std::vector<std::string> pairs;
    for (const auto& [name, value] : meta.policies) pairs.insert(pairs.end(), {name, value});
    add(kPoliciesWord, std::move(pairs));
  }
  if (options.carried && !meta.plan.empty()) add(kPlanWord, meta.plan);
  if (options.carried && !meta.job_facts.empty()) add(kJobFactsWord, meta.job_facts);
  if (options.carried && !meta.chunk_rows.empty()) {
    std::vector<std::string> pairs;
    for (const auto& [name, rows] : meta.chunk_rows) pairs.insert(pairs.end(), {name, StrCat(rows)});
    add(kChunkRowsWord, std::move(pairs));
  }
  if (options.carried && meta.op_compatible_map) add(kCompatibleMapWord, *meta.op_compatible_map);
  if (options.carried && !meta.unknown_fields.empty()) add(kUnknownFieldsWord, meta.unknown_fields);
  std::string out = "program";
  if (!meta.name.empty()) out += StrCat(" ", Quote(meta.name));
  for (std::size_t i = 0; i < attrs.size(); ++i) {
    out += StrCat(i == 0 ? " {" : ", ", attrs[i].name, "=", AttrToString(attrs[i].value));
  }
  return out + (attrs.empty() ? "\n" : "}\n");
}

}  // namespace

std::string PrintVarType(const Var& var) {
  std::string out;
  if (var.kind == VarKind::kTensor && var.type) {
    out = TensorTypeText(*var.type);
  } else {
    out = VarKindWord(var.kind);
    if (var.type) out += StrCat("<", TensorTypeText(*var.type), ">");
  }
  return out + PartsText(var);
}

std::string PrintVar(const Var& var) {
  return StrCat(DeclarationWord(var), " ", SpellName(var.name), " : ", PrintVarType(var), FlagsText(var));
}

std::string PrintOp(const Op& op, const PrintOptions& options) { return OpText(op, options, SpellName); }

std::string PrintOp(const Program& program, int block, const Op& op, const PrintOptions& options) {
  return OpText(op, options, [&](const std::string& name) {
    const Var* var = program.FindVar(block, name);
    return var == nullptr ? SpellName(name) : StrCat(SpellName(name), " : ", PrintVarType(*var));
  });
}

std::string PrintProgram(const Program& program, const PrintOptions& options) {
  std::string out = HeaderText(program.meta(), options);
  for (int i = 0; i < program.block_count(); ++i) PrintBlock(program.block(i), options, out);
  return out;
}

}  // namespace penstock
