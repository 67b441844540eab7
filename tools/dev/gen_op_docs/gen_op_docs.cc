// Generates the reference of all ops from their declarations.
//
//   gen_op_docs operators/OPS.md            writes the file
//   gen_op_docs --check operators/OPS.md    exit code 1 if the file is out of date
#include <algorithm>
#include <array>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/files.h"
#include "framework/base/strings.h"
#include "operators/all_ops.h"

namespace penstock {
namespace {

std::string TypeText(const TypeRule& rule) {
  std::vector<std::string_view> names;
  for (const DType type : rule.types) names.push_back(DTypeName(type));
  switch (rule.kind) {
    case TypeRule::Kind::kAny:
      return "any";
    case TypeRule::Kind::kOneOf:
      return Join(names, " or ");
    case TypeRule::Kind::kSameAs:
      return StrCat("as ", rule.slot_or_attr);
    case TypeRule::Kind::kFromAttr:
      return StrCat("attribute ", rule.slot_or_attr);
  }
  return "";
}

std::string SlotNotes(const SlotDef& slot) {
  std::vector<std::string> notes;
  if (slot.optional) notes.push_back("optional");
  if (slot.repeated) notes.push_back("any number");
  if (slot.intermediate) notes.push_back("for the gradient only");
  if (slot.kinds != KindSet::Of(VarKind::kTensor)) notes.push_back(slot.kinds.ToString());
  return notes.empty() ? "" : StrCat(" (", Join(notes, ", "), ")");
}

std::string SlotRows(const std::vector<SlotDef>& slots, std::string_view direction) {
  std::string out;
  for (const SlotDef& slot : slots) {
    out += StrCat("| ", direction, " | `", slot.name, "` | ", TypeText(slot.type), " | ", slot.doc,
                  SlotNotes(slot), " |\n");
  }
  return out;
}

std::string AttrRows(const std::vector<AttrDef>& attrs) {
  std::string out;
  for (const AttrDef& attr : attrs) {
    const std::string value =
        attr.default_value ? StrCat(" = `", AttrToString(*attr.default_value), "`") : " (required)";
    out += StrCat("| attribute | `", attr.name, "` | ", AttrKindName(attr.kind), value, " | ", attr.doc,
                  attr.implicit ? " (written only if set)" : "", " |\n");
  }
  return out;
}

std::string GradText(const OpDef& def) {
  if (def.no_grad()) return "Gradient: none.";
  if (def.grad_maker() != nullptr) return "Gradient: made of other ops.";
  if (!def.grad()) return "";
  const GradSpec& spec = *def.grad();
  std::vector<std::string> reads = spec.reads;
  reads.insert(reads.end(), spec.reads_outputs.begin(), spec.reads_outputs.end());
  const std::string type = spec.type.empty() ? def.type() + "_grad" : spec.type;
  return StrCat("Gradient: `", type, "`", reads.empty() ? "" : StrCat(", reads ", Join(reads, ", ")),
                ", yields that of ", Join(spec.yields, ", "), ".");
}

std::string OptimizerText(const OpDef& def) {
  if (!def.optimizer()) return "";
  std::string out = StrCat("Optimizer of ", def.optimizer()->param_slot, ", ",
                           def.elementwise() ? "element by element" : "on whole tensors", ".");
  for (const StateDef& state : def.optimizer()->states) {
    out += StrCat(" State `", state.slot, "` (", state.accumulator, "): ",
                  state.slicing == StateSlicing::kWithParam ? "sliced with the parameter."
                                                            : "one copy for each slice.");
  }
  return out;
}

// "Affects a ring of ranks."; "" without effects.
std::string EffectsText(Effects effects) {
  constexpr std::array<std::pair<Effect, std::string_view>, 6> kTexts = {
      {{Effect::kStep, "the trainer's step"},
       {Effect::kRing, "a ring of ranks"},
       {Effect::kScope, "variables that its blocks name"},
       {Effect::kHost, "files, output or functions of the user"},
       {Effect::kQueue, "a reader's batches"},
       {Effect::kRandom, "random numbers"}}};
  std::vector<std::string_view> all;
  for (const auto& [effect, text] : kTexts) {
    if (effects.Has(effect)) all.push_back(text);
  }
  return all.empty() ? "" : StrCat("Affects ", Join(all, ", "), ".");
}

std::string OpText(const OpDef& def) {
  std::string out = StrCat("## ", def.type(), "\n", def.summary(), "\n");
  if (!def.doc().empty()) out += StrCat("\n```\n", def.doc(), "\n```\n");
  out += "\n| | name | type | |\n|---|---|---|---|\n";
  out += SlotRows(def.inputs(), "input") + SlotRows(def.outputs(), "output") + AttrRows(def.attrs());
  std::vector<std::string> notes;
  for (std::string note : {GradText(def), OptimizerText(def)}) {
    if (!note.empty()) notes.push_back(std::move(note));
  }
  if (const std::string text = EffectsText(def.effects()); !text.empty()) notes.push_back(text);
  if (!def.not_built().empty()) {
    notes.push_back(StrCat("Declared, not run: ", def.not_built(), "."));
  } else if (!def.has_kernel(DeviceKind::kCpu)) {
    notes.push_back("Has no kernel: the executor does what it says.");
  }
  if (!def.nan().empty()) notes.push_back(StrCat("NaN: ", def.nan()));
  return StrCat(out, "\n", Join(notes, " "), "\n\n");
}

std::string AllText() {
  std::set<std::string> grads;
  for (const OpDef* def : AllOps().All()) {
    if (def->grad()) grads.insert(def->grad()->type.empty() ? def->type() + "_grad" : def->grad()->type);
  }
  std::string out =
      "# Ops\nWritten by `gen_op_docs` from the declarations in this folder; a test fails if it is out of "
      "date. Slots and\n"
      "attributes are Fluid 1.8's. Every op may also carry the framework's attributes (`op_role` and its "
      "kin).\n\n";
  out +=
      StrCat("NaN: ", kNanRule, "\nThat holds of gradients too. Where an op does otherwise, it says so.\n\n");
  std::vector<std::string> links;
  std::string body;
  for (const OpDef* def : AllOps().All()) {
    if (grads.contains(def->type())) continue;
    links.push_back(StrCat("[", def->type(), "](#", def->type(), ")"));
    body += OpText(*def);
  }
  out += Join(links, "\n") + "\n\n" + body;
  out.pop_back();  // the last op's empty line
  return out;
}

int Main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  const bool check = args.size() == 2 && args[0] == "--check";
  if (!check && args.size() != 1) {
    std::cerr << "usage: gen_op_docs [--check] FILE\n";
    return 2;
  }
  const std::string& path = args.back();
  const std::string text = AllText();
  if (!check) {
    const Status written = WriteFile(path, text);
    if (!written.ok()) std::cerr << written.ToString() << "\n";
    return written.ok() ? 0 : 2;
  }
  const Result<std::string> old = ReadFile(path);
  if (old.ok() && *old == text) return 0;
  std::cerr << path << " is out of date; run: gen_op_docs " << path << "\n";
  return 1;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) { return penstock::Main(argc, argv); }
