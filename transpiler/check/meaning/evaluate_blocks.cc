// Evaluates ops that have blocks.
#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "framework/ir/block_uses.h"
#include "framework/ir/program.h"
#include "framework/roles/attr_names.h"
#include "framework/roles/views.h"
#include "transpiler/check/meaning/evaluate.h"

namespace penstock::check {
namespace {

constexpr std::string_view kConditional = "conditional_block";

// The order of slots does not matter.
std::vector<const Slot*> ByName(const std::vector<Slot>& slots) {
  std::vector<const Slot*> sorted;
  sorted.reserve(slots.size());
  for (const Slot& slot : slots) sorted.push_back(&slot);
  std::sort(sorted.begin(), sorted.end(), [](const Slot* a, const Slot* b) { return a->name < b->name; });
  return sorted;
}

// The lookup in the whole table that gives the same rows.
Op LookupOf(const Op& request) {
  const roles::LookupView view(request);
  Op lookup{std::string(view.version())};
  lookup.AddInput("Ids", request.Input("Ids")).AddInput("W", request.Input("W"));
  lookup.AddOutput("Out", request.Output("Outputs"));
  lookup.Set(roles::attr::kRemotePrefetch, true).Set("padding_idx", view.padding());
  return lookup;
}

}  // namespace

// Whether all ops of a conditional block can be evaluated as if it always ran, and results be selected by its
// condition: nothing outside of it depends on whether it ran.
bool Evaluation::MayAlwaysRun(const Op& op) const {
  const auto* block = op.type() == kConditional ? op.Get<BlockRef>("sub_block") : nullptr;
  if (block == nullptr || block->index < 1 || block->index >= program_.block_count()) return false;
  if (!op.GetOr<bool>("is_scalar_condition", false) || op.Input("Cond").size() != 1) return false;
  if (HasGradient(program_, block->index)) return false;
  return std::ranges::all_of(program_.block(block->index).ops(), [&](const OpEntry& entry) {
    if (entry.op->type() == kConditional) return MayAlwaysRun(*entry.op);
    const OpDef* def = ops_.Find(entry.op->type());
    return def != nullptr && !def->effects().AreOutside() && !def->optimizer() && !HasBlocks(*entry.op);
  });
}

// A conditional block is the selection of each variable that it writes, whether it is a block or has been
// made plain ops. False for a block of another kind.
bool Evaluation::RunConditional(const Op& op) {
  if (op.type() != kConditional || !MayAlwaysRun(op)) return false;
  const int block = op.Get<BlockRef>("sub_block")->index;
  std::set<std::string_view> written;
  const OpCode code = table_.codes().Of(op, with_shape_);
  args_.clear();
  for (const NameId name : table_.codes().Inputs(code)) args_.push_back(Get(name));
  const ExprId whole = ApplyWithBlocks(op, code, args_, written);
  computed_.emplace_back(&op, whole);
  Evaluation inside(program_, ops_, table_, this);
  inside.with_shape_ = with_shape_;
  inside.counters_ = counters_;
  inside.OfSlice(slice_, slices_);
  inside.RunBlock(block);
  ExprId mask = ExprId::kNone;
  for (const std::string_view name : written)
    SelectIf(op.InputName("Cond"), std::string(name), inside.Get(name), mask);
  if (const std::string& scope = op.OutputName("Scope"); !scope.empty()) Set(scope, whole);
  return true;
}

void Evaluation::SelectIf(const std::string& condition, const std::string& name, ExprId now, ExprId& mask) {
  const Var* var = program_.FindVar(block_, name);
  const ExprId* old = Find(name);
  const bool has_old = old != nullptr || (var != nullptr && var->persistable);
  if (!has_old || Get(name) == now) {
    Set(name, now);
    return;
  }
  OpCodes& codes = table_.codes();
  if (mask == ExprId::kNone) {
    Op made("cast");
    made.AddInput("X", {condition}).AddOutput("Out", {condition});
    made.Set("in_dtype", static_cast<std::int32_t>(DType::kBool));
    made.Set("out_dtype", static_cast<std::int32_t>(DType::kInt32));
    const Op& cast = table_.Keep(std::move(made));
    mask = table_.Output(table_.Apply(cast, codes.Make(cast, with_shape_).label, {Get(condition)}),
                         codes.OutputLabel("Out", 0));
  }
  Op made("select_input");
  made.AddInput("Mask", {condition}).AddInput("X", {name, name}).AddOutput("Out", {name});
  const Op& select = table_.Keep(std::move(made));
  const ExprId value = table_.Apply(select, codes.Make(select, with_shape_).label, {mask, Get(name), now});
  Set(name, table_.Output(value, codes.OutputLabel("Out", 0)));
}

ExprId Evaluation::ApplyWithBlocks(const Op& op, const OpCode& code, std::vector<ExprId> args,
                                   std::set<std::string_view>& written) {
  std::string label(table_.codes().labels().Text(code.label));
  AddInner(op, label, args, written);
  return table_.Apply(op, table_.codes().labels().NumberOf(label), args);
}

// An op with blocks. Their text, with variables numbered by first mention, is added to the label, and the
// outer variables that they use are added to the arguments.
void Evaluation::AddInner(const Op& op, std::string& label, std::vector<ExprId>& args,
                          std::set<std::string_view>& written) {
  for (const NamedAttr& attr : op.attrs()) {
    const auto* inner = std::get_if<BlockRef>(&attr.value);
    if (inner == nullptr || inner->index < 1 || inner->index >= program_.block_count()) continue;
    std::vector<std::string_view> names;
    std::unordered_map<std::string_view, std::size_t> numbers;
    label += StrCat(" ", attr.name, " {");
    std::set<std::string_view> inside;
    WriteInner(inner->index, label, names, numbers, inside);
    label += "}";
    for (const std::string_view name : names) {
      if (IsOwn(inner->index, name)) continue;
      args.push_back(Get(name));
      if (inside.contains(name)) written.insert(name);
    }
  }
}

// Whether a name in a block is a variable of that block only. Programs of Fluid's servers also declare
// variables of outer blocks in inner blocks; a gradient block declares variables that its op passes out under
// other names.
bool Evaluation::IsOwn(int block, std::string_view name) const {
  const Block& inner = program_.block(block);
  if (inner.FindVar(name) == nullptr) return false;
  return inner.forward_block() >= 0 || inner.parent() < 0 ||
         program_.FindVar(inner.parent(), name) == nullptr;
}

void Evaluation::WriteInner(int block, std::string& label, std::vector<std::string_view>& names,
                            std::unordered_map<std::string_view, std::size_t>& numbers,
                            std::set<std::string_view>& written) {
  const auto write_slots = [&](const std::vector<Slot>& slots) {
    for (const Slot* slot : ByName(slots)) {
      if (slot->args.empty()) continue;
      label += StrCat(" ", slot->name);
      for (const std::string& name : slot->args) {
        const auto [it, fresh] = numbers.try_emplace(name, numbers.size());
        if (fresh) names.push_back(it->first);
        label += StrCat(" $", it->second);
      }
    }
  };
  for (const OpEntry& entry : program_.block(block).ops()) {
    const Op* op = entry.op.get();
    // A request for rows is the lookup that it replaces.
    if (op->type() == "distributed_lookup_table" && op->Input("Ids").size() == 1)
      op = &inner_.emplace_back(LookupOf(*op));
    label += StrCat(" ", table_.codes().Label(*op, true), " (");
    write_slots(op->inputs());
    label += " ->";
    write_slots(op->outputs());
    label += ")";
    for (const Slot& slot : entry.op->outputs()) written.insert(slot.args.begin(), slot.args.end());
    for (const NamedAttr& attr : entry.op->attrs()) {
      const auto* inner = std::get_if<BlockRef>(&attr.value);
      if (inner != nullptr && inner->index > block && inner->index < program_.block_count())
        WriteInner(inner->index, label, names, numbers, written);
    }
  }
}

}  // namespace penstock::check
