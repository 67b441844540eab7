// Runs tests/ops/*.cases: the results of shape inference, one op per line.
//
//   op(Slot=type, Slot=[type, type]) {attributes} -> Slot=type, Slot=[type, type]
//   op(Slot=type) {attributes} -> error: the first line of the error
//
// Types, attributes and "#" comments are those of the textual form of programs.
#include <gtest/gtest.h>

#include "framework/base/strings.h"
#include "framework/text/parser.h"
#include "operators/all_ops.h"
#include "tests/support/corpus.h"

namespace penstock::test {
namespace {

struct SlotTypes {
  std::string slot;
  std::vector<std::string> types;
};

// Pieces of `text` between commas outside of brackets.
std::vector<std::string> SplitOutside(std::string_view text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    depth += c == '[' || c == '(' || c == '<' ? 1 : c == ']' || c == ')' || c == '>' ? -1 : 0;
    if (c != ',' || (depth != 0 && i < text.size())) continue;
    if (const std::string_view part = StripSpace(text.substr(begin, i - begin)); !part.empty())
      parts.emplace_back(part);
    begin = i + 1;
  }
  return parts;
}

std::vector<SlotTypes> ParseSlots(std::string_view text) {
  std::vector<SlotTypes> slots;
  for (const std::string& part : SplitOutside(text)) {
    const std::size_t equals = part.find('=');
    const std::string_view value = std::string_view(part).substr(equals + 1);
    const bool list = value.starts_with('[');
    slots.push_back({part.substr(0, equals), list ? SplitOutside(value.substr(1, value.size() - 2))
                                                  : std::vector<std::string>{std::string(value)}});
  }
  return slots;
}

std::string VarName(const SlotTypes& slot, std::size_t i) { return StrCat(slot.slot, "_", i); }

std::string SlotsText(const std::vector<SlotTypes>& slots) {
  std::vector<std::string> parts;
  for (const SlotTypes& slot : slots) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < slot.types.size(); ++i) names.push_back(Quote(VarName(slot, i)));
    parts.push_back(StrCat(Quote(slot.slot), "=[", Join(names, ", "), "]"));
  }
  return Join(parts, ", ");
}

std::string TypeText(const Var& var) {
  if (!var.type) return "none";
  const std::string dense = StrCat(DTypeName(var.type->dtype), var.type->shape);
  if (var.kind == VarKind::kTensorArray) return StrCat("array<", dense, ">");
  return var.kind == VarKind::kSelectedRows ? StrCat("rows<", dense, ">") : dense;
}

struct ShapeCase {
  std::string op;
  std::vector<SlotTypes> inputs, outputs;
  std::string attrs, expected;
};

ShapeCase ParseCase(const std::string& line) {
  ShapeCase c;
  const std::size_t arrow = line.find(" -> ");
  const std::size_t open = line.find('('), close = line.find(')');
  PENSTOCK_CHECK(arrow != std::string::npos && close < arrow,
                 "a case is  op(inputs) {attributes} -> outputs: " + line);
  c.op = line.substr(0, open);
  c.inputs = ParseSlots(std::string_view(line).substr(open + 1, close - open - 1));
  c.attrs = line.substr(close + 1, arrow - close - 1);
  c.expected = line.substr(arrow + 4);
  if (!c.expected.starts_with("error: ")) {
    c.outputs = ParseSlots(c.expected);
  } else if (const OpDef* def = AllOps().Find(c.op)) {
    for (const SlotDef& slot : def->outputs()) c.outputs.push_back({slot.name, {""}});
  }
  return c;
}

std::string InferredText(const ShapeCase& c) {
  std::string text = "program\nblock 0 {\n";
  for (const SlotTypes& slot : c.inputs) {
    for (std::size_t i = 0; i < slot.types.size(); ++i) {
      text += StrCat("  var ", Quote(VarName(slot, i)), " : ", slot.types[i], "\n");
    }
  }
  text += StrCat("  (", SlotsText(c.outputs), ") = ", c.op, "(", SlotsText(c.inputs), ")", c.attrs, "\n}\n");
  Result<Program> program = ParseText(text, "case");
  if (!program.ok()) return program.status().ToString() + "\n" + text;
  const Op op = *program->main().ops().front().op;
  if (const Status status = InferAndDeclare(AllOps(), *program, 0, op); !status.ok())
    return "error: " + status.message();
  std::vector<std::string> parts;
  for (const SlotTypes& slot : c.outputs) {
    std::vector<std::string> types;
    for (std::size_t i = 0; i < slot.types.size(); ++i) {
      const Var* var = program->main().FindVar(VarName(slot, i));
      types.push_back(var == nullptr ? "nothing" : TypeText(*var));
    }
    parts.push_back(
        StrCat(slot.slot, "=", types.size() == 1 ? types[0] : StrCat("[", Join(types, ", "), "]")));
  }
  return Join(parts, ", ");
}

TEST(ShapeCases, InferTheExpectedShapes) {
  const std::string folder = SourceFolder() + "/tests/ops/";
  int count = 0;
  for (const std::string& name : FilesEndingIn(folder, ".cases")) {
    int number = 0;
    for (const std::string& line : Split(BytesOf(folder + name + ".cases"), '\n')) {
      ++number;
      if (StripSpace(line).empty() || line.starts_with('#')) continue;
      const ShapeCase c = ParseCase(line);
      EXPECT_EQ(InferredText(c), c.expected) << name << ".cases:" << number << ": " << line;
      ++count;
    }
  }
  EXPECT_GE(count, 130);
}

}  // namespace
}  // namespace penstock::test
