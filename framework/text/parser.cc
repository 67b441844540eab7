#include "framework/text/parser.h"

#include <charconv>
#include <optional>
#include <set>
#include <system_error>

#include "framework/text/cursor.h"
#include "framework/text/parse_var.h"
#include "framework/text/program_words.h"
#include "framework/text/role_words.h"

namespace penstock {
namespace {

// value = out | "[" out,* "]". A type after an `out` declares the variable in `block`; if `block` is null,
// types are not allowed.
Status ParseValue(Cursor& in, Block* block, ArgList& args) {
  const bool list = in.At("[");
  if (list) PENSTOCK_RETURN_IF_ERROR(in.Open("["));
  while (!list || !in.At("]")) {
    Var var;
    PENSTOCK_ASSIGN_OR_RETURN(var.name, in.Name("a variable's name"));
    args.push_back(var.name);
    if (in.At(":")) {
      const Token at = in.Take();
      if (block == nullptr) return in.ErrorAt(at, "a type stands only where an op writes the variable");
      PENSTOCK_RETURN_IF_ERROR(ParseVarType(in, var));
      if (block->FindVar(var.name) != nullptr) {
        return in.ErrorAt(at, StrCat("block ", block->index(), " declares ", SpellName(var.name), " twice"));
      }
      block->SetVar(std::move(var));
    }
    if (!list) return OkStatus();
    if (!in.TakeIf(",")) break;
  }
  return in.Close("]");
}

// "(" (name "=" value),* ")"
Status ParseSlots(Cursor& in, Block* block, std::vector<Slot>& slots) {
  PENSTOCK_RETURN_IF_ERROR(in.Open("("));
  std::set<std::string> names;
  while (!in.At(")")) {
    const Token at = in.Peek();
    Slot& slot = slots.emplace_back();
    PENSTOCK_ASSIGN_OR_RETURN(slot.name, in.Name("a slot's name"));
    if (!names.insert(slot.name).second)
      return in.ErrorAt(at, StrCat("slot ", SpellName(slot.name), " is given twice"));
    PENSTOCK_RETURN_IF_ERROR(in.Expect("="));
    PENSTOCK_RETURN_IF_ERROR(ParseValue(in, block, slot.args));
    if (!in.TakeIf(",")) break;
  }
  return in.Close(")");
}

// [result "="]. A name followed by "(" is the type of an op without outputs.
Status ParseResult(Cursor& in, Block& block, std::vector<Slot>& outputs) {
  if (in.At("(")) {
    PENSTOCK_RETURN_IF_ERROR(ParseSlots(in, &block, outputs));
  } else {
    if (in.AtName() && in.PeekSecond().kind == TokenKind::kPunct && in.PeekSecond().text == "(")
      return OkStatus();
    Slot out{"Out", {}};
    PENSTOCK_RETURN_IF_ERROR(ParseValue(in, &block, out.args));
    outputs.push_back(std::move(out));
  }
  return in.Expect("=");
}

Status SetOnce(const Cursor& in, const Token& at, Op& op, std::string_view name, Attr value) {
  if (op.FindAttr(name) != nullptr)
    return in.ErrorAt(at, StrCat(name, " is given as an attribute and after @"));
  op.Set(name, std::move(value));
  return OkStatus();
}

// "@" role {"|" role} { "(" name "," name ")" }
Status ParseRole(Cursor& in, Op& op) {
  const Token begin = in.Peek();
  if (!in.TakeIf("@")) return OkStatus();
  OpRole role = OpRole::kForward;
  do {
    const std::optional<OpRole> bit =
        in.Peek().kind == TokenKind::kName ? RoleFromWord(in.Peek().text) : std::nullopt;
    if (!bit) {
      return in.Error(
          StrCat("expected forward, backward, optimize, rpc, dist, lr_sched or loss, ", in.Found()));
    }
    in.Take();
    role = role | *bit;
  } while (in.TakeIf("|"));
  PENSTOCK_RETURN_IF_ERROR(SetOnce(in, begin, op, kRoleAttr, static_cast<std::int32_t>(role)));
  std::vector<std::string> pairs;
  while (in.At("(")) {
    PENSTOCK_RETURN_IF_ERROR(in.Open("("));
    PENSTOCK_ASSIGN_OR_RETURN(pairs.emplace_back(), in.Name("a parameter's name"));
    PENSTOCK_RETURN_IF_ERROR(in.Expect(","));
    PENSTOCK_ASSIGN_OR_RETURN(pairs.emplace_back(), in.Name("a gradient's name"));
    PENSTOCK_RETURN_IF_ERROR(in.Close(")"));
  }
  return pairs.empty() ? OkStatus() : SetOnce(in, begin, op, kRoleVarAttr, std::move(pairs));
}

Status ParseOpStatement(Cursor& in, Block& block) {
  std::vector<Slot> outputs, inputs;
  PENSTOCK_RETURN_IF_ERROR(ParseResult(in, block, outputs));
  PENSTOCK_ASSIGN_OR_RETURN(std::string type, in.Name("the op's type"));
  Op op(type);
  PENSTOCK_RETURN_IF_ERROR(ParseSlots(in, nullptr, inputs));
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<NamedAttr> attrs, in.Attrs());
  constexpr std::size_t kAttrsOfRole = 2;
  op.Reserve(inputs.size(), outputs.size(), attrs.size() + kAttrsOfRole);
  for (Slot& slot : inputs) op.AddInput(slot.name, std::move(slot.args));
  for (Slot& slot : outputs) op.AddOutput(slot.name, std::move(slot.args));
  for (NamedAttr& attr : attrs) op.Set(attr.name, std::move(attr.value));
  PENSTOCK_RETURN_IF_ERROR(ParseRole(in, op));
  if (in.TakeIf("target")) op.SetTarget(true);
  if (in.TakeIf("at")) {
    PENSTOCK_ASSIGN_OR_RETURN(std::string where, in.String("a location"));
    op.SetLocation(std::move(where));
  }
  if (in.TakeIf("by")) {
    PENSTOCK_ASSIGN_OR_RETURN(std::string pass, in.String("the name of a pass"));
    op.SetMadeBy(pass);
  }
  PENSTOCK_RETURN_IF_ERROR(in.EndOfStatement());
  block.Append(std::move(op));
  return OkStatus();
}

Status ParseStatement(Cursor& in, Block& block) {
  if (!AtDeclaration(in)) return ParseOpStatement(in, block);
  const Token at = in.Peek();
  PENSTOCK_ASSIGN_OR_RETURN(Var var, ParseDeclaration(in));
  if (block.FindVar(var.name) != nullptr) {
    return in.ErrorAt(at, StrCat("block ", block.index(), " declares ", SpellName(var.name), " twice"));
  }
  block.SetVar(std::move(var));
  return OkStatus();
}

// "block" int ["in" int] ["forward" int] "{" ... "}"
Status ParseBlock(Cursor& in, Program& program, int position) {
  PENSTOCK_RETURN_IF_ERROR(in.Expect("block"));
  const Token at = in.Peek();
  PENSTOCK_ASSIGN_OR_RETURN(const std::int64_t index, in.Integer("the block's index", 0, 1 << 30));
  if (index != position) return in.ErrorAt(at, StrCat("this is block ", position, ", but it says ", index));
  std::int64_t parent = -1;
  if (in.TakeIf("in")) {
    PENSTOCK_ASSIGN_OR_RETURN(parent, in.Integer("the parent's index", -1, position - 1));
  }
  Block& block = position == 0 ? program.MutableBlock(0) : program.AddBlock(static_cast<int>(parent));
  if (in.TakeIf("forward")) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::int64_t forward,
                              in.Integer("the forward block's index", -1, 1 << 30));
    block.set_forward_block(static_cast<std::int32_t>(forward));
  }
  PENSTOCK_RETURN_IF_ERROR(in.Expect("{"));
  in.SkipNewlines();
  while (!in.At("}")) {
    if (in.AtEnd()) return in.Error(StrCat("block ", index, " has no closing \"}\""));
    PENSTOCK_RETURN_IF_ERROR(ParseStatement(in, block));
    in.SkipNewlines();
  }
  PENSTOCK_RETURN_IF_ERROR(in.Expect("}"));
  return in.EndOfStatement();
}

// An int or a long.
std::optional<std::int64_t> IntegerOf(const Attr& attr) {
  if (const auto* number = std::get_if<std::int32_t>(&attr)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(&attr)) return *number;
  return std::nullopt;
}

// `pairs`: variable, rows, variable, rows...
bool SetChunkRows(const std::vector<std::string>& pairs, ProgramMeta& meta) {
  if (pairs.size() % 2 != 0) return false;
  for (std::size_t i = 0; i < pairs.size(); i += 2) {
    const std::string& text = pairs[i + 1];
    const char* const end = text.data() + text.size();
    std::int64_t rows = 0;
    const auto read = std::from_chars(text.data(), end, rows);
    if (read.ec != std::errc() || read.ptr != end) return false;
    meta.chunk_rows[pairs[i]] = rows;
  }
  return true;
}

// Stores one attribute of the program in `meta`; false if it is unknown or has the wrong kind.
bool SetProgramAttr(const NamedAttr& attr, ProgramMeta& meta) {
  const std::optional<std::int64_t> number = IntegerOf(attr.value);
  const auto* text = std::get_if<std::string>(&attr.value);
  const auto* names = std::get_if<std::vector<std::string>>(&attr.value);
  if (attr.name == kVersionWord && number) {
    meta.version = *number;
    meta.has_version_message = true;
  } else if (attr.name == kRandomSeedWord && number) {
    meta.random_seed = *number;
  } else if (attr.name == kPlanWord && text != nullptr) {
    meta.plan = *text;
  } else if (attr.name == kJobFactsWord && text != nullptr) {
    meta.job_facts = *text;
  } else if (attr.name == kCompatibleMapWord && text != nullptr) {
    meta.op_compatible_map = *text;
  } else if (attr.name == kUnknownFieldsWord && text != nullptr) {
    meta.unknown_fields = *text;
  } else if (attr.name == kPoliciesWord && names != nullptr && names->size() % 2 == 0) {
    for (std::size_t i = 0; i < names->size(); i += 2) meta.policies[(*names)[i]] = (*names)[i + 1];
  } else if (attr.name == kChunkRowsWord && names != nullptr) {
    return SetChunkRows(*names, meta);
  } else {
    return false;
  }
  return true;
}

Status ParseHeader(Cursor& in, ProgramMeta& meta) {
  PENSTOCK_RETURN_IF_ERROR(in.Expect("program"));
  if (in.Peek().kind == TokenKind::kString) meta.name = in.Take().text;
  const Token at = in.Peek();
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<NamedAttr> attrs, in.Attrs());
  for (const NamedAttr& attr : attrs) {
    if (SetProgramAttr(attr, meta)) continue;
    return in.ErrorAt(at, StrCat("a program has no attribute ", SpellName(attr.name), " of kind ",
                                 AttrKindName(KindOf(attr.value))));
  }
  return in.EndOfStatement();
}

}  // namespace

Result<Program> ParseText(std::string_view text, std::string_view filename) {
  Cursor in(text, filename);
  Program program;
  in.SkipNewlines();
  PENSTOCK_RETURN_IF_ERROR(ParseHeader(in, program.mutable_meta()));
  in.SkipNewlines();
  int blocks = 0;
  do {
    PENSTOCK_RETURN_IF_ERROR(ParseBlock(in, program, blocks));
    ++blocks;
    in.SkipNewlines();
  } while (!in.AtEnd());
  return program;
}

}  // namespace penstock
