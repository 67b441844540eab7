#include "transpiler/check/meaning/evaluate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "framework/op/slices.h"
#include "framework/roles/attr_names.h"
#include "transpiler/check/facts/rank_ops.h"

namespace penstock::check {
namespace {

constexpr std::string_view kGradOf = "_grad";  // suffix of a gradient op's type

// The exact factor 1/n if `factor` is its single-precision approximation for a whole n; else `factor`.
double Meant(float factor) {
  const double whole = std::round(1.0 / static_cast<double>(factor));
  const bool near = std::isfinite(whole) && std::abs(whole * static_cast<double>(factor) - 1.0) <=
                                                static_cast<double>(std::numeric_limits<float>::epsilon());
  return near ? 1.0 / whole : static_cast<double>(factor);
}

// The only argument of all slots; null if there are none or several.
const std::string* OnlyArgument(const std::vector<Slot>& slots) {
  const std::string* only = nullptr;
  for (const Slot& slot : slots) {
    for (const std::string& name : slot.args) {
      if (only != nullptr) return nullptr;
      only = &name;
    }
  }
  return only;
}

}  // namespace

ExprId StepLeaf(ExprTable& table, std::string_view counter) {
  return table.Leaf(StrCat("the number of the step, in ", counter));
}

std::size_t NameValues::Seek(NameId name) const {
  const std::size_t mask = table_.size() - 1;
  std::size_t at = static_cast<std::size_t>(name) & mask;
  while (table_[at].name != name && table_[at].name != NameId::kNone) at = (at + 1) & mask;
  return at;
}

const ExprId* NameValues::Find(NameId name) const {
  if (used_ == 0) return nullptr;
  const Entry& entry = table_[Seek(name)];
  return entry.name == name ? &entry.value : nullptr;
}

void NameValues::Set(NameId name, ExprId value) {
  Reserve(used_ + 1);
  Entry& entry = table_[Seek(name)];
  if (entry.name == NameId::kNone) ++used_;
  entry = {name, value};
}

void NameValues::Reserve(std::size_t count) {
  constexpr std::size_t kFewest = 16;
  if (2 * count <= table_.size()) return;
  std::vector<Entry> old(std::bit_ceil(std::max(2 * count, kFewest)));
  std::swap(old, table_);
  for (const Entry& entry : old) {
    if (entry.name != NameId::kNone) table_[Seek(entry.name)] = entry;
  }
}

const ExprId* Evaluation::Find(NameId name) const {
  if (const ExprId* own = values_.Find(name)) return own;
  return outer_ == nullptr ? nullptr : outer_->Find(name);
}

ExprId Evaluation::Get(NameId name) {
  const ExprId* known = Find(name);
  return known != nullptr ? *known : table_.Leaf(name);
}

void Evaluation::RunBlock(int block) {
  block_ = block;
  const Block& run = program_.block(block);
  values_.Reserve(values_.size() + run.vars().size());
  computed_.reserve(computed_.size() + run.ops().size());
  for (const OpEntry& entry : run.ops()) RunOp(*entry.op);
}

void Evaluation::RunOps(std::size_t first, std::size_t last) {
  block_ = 0;
  const Block& run = program_.main();
  values_.Reserve(std::max(values_.size(), run.vars().size()));
  computed_.reserve(run.ops().size());
  for (std::size_t i = first; i < last; ++i) RunOp(*run.ops()[i].op);
}

void Evaluation::RunOp(const Op& op) {
  if (counters_ != nullptr && !counters_->empty() && CountsStep(op)) return;
  if (op.role() == (OpRole::kBackward | OpRole::kLoss)) loss_scale_ = 1.0;  // another loss starts
  if (IsShareOfExamples(op)) {                                              // assumes equal batches
    shares_[op.OutputName("Out")] = Meant(op.GetOr<float>("scale", 1.0f)) / table_.trainers();
    return;
  }
  const OpCode code = table_.codes().Of(op, with_shape_);
  if (code.kind == OpCode::Kind::kSilent) return;
  if (code.kind == OpCode::Kind::kMessage && RunMessage(op)) return;
  if (code.kind == OpCode::Kind::kAlgebra && RunAlgebra(op)) return;
  if (code.special && RunConditional(op)) return;
  RunAny(op, code);
}

// Ops whose values come from other processes. The caller sets the values that a server merges.
bool Evaluation::RunMessage(const Op& op) {
  if (op.type() == "recv") {
    for (const std::string& name : op.Output("Out")) Set(name, table_.Leaf(StrCat("received ", name)));
    return true;
  }
  if (op.type() == "distributed_lookup_table") {
    RunRemoteLookup(op);
    return true;
  }
  if (op.type() == "merge_ids") {
    RunMergedLookup(op);
    return true;
  }
  if (AddsUp(op)) {
    const ExprId each = Get(op.InputName("X"));
    const double scale = Has(op.role(), OpRole::kBackward) ? loss_scale_ : 1.0;
    Set(op.OutputName("Out"), table_.SumOverTrainers(each, scale));
    return true;
  }
  if (op.type() == "ref_by_trainer_id") {  // selects one of X; known if all are equal
    const auto& copies = op.Input("X");
    const bool alike = !copies.empty() &&
                       std::all_of(copies.begin(), copies.end(),
                                   [&](const std::string& name) { return Get(name) == Get(copies.front()); });
    if (alike) Set(op.OutputName("Out"), Get(copies.front()));
    return alike;
  }
  return false;
}

// Evaluates a lookup in the whole table, as in the source.
void Evaluation::RunLookup(std::string_view type, const std::string& ids, const std::string& table,
                           std::int64_t padding, const std::string& out) {
  Op made{std::string(type)};
  made.AddInput("Ids", {ids}).AddInput("W", {table}).AddOutput("Out", {out});
  made.Set(roles::attr::kRemotePrefetch, true).Set("padding_idx", padding);
  const Op& lookup = table_.Keep(std::move(made));
  RunAny(lookup, table_.codes().Make(lookup, with_shape_));
}

// One op that replaces several lookups of a table.
void Evaluation::RunRemoteLookup(const Op& op) {
  const roles::LookupView lookup(op);
  const auto& outputs = op.Output("Outputs");
  for (std::size_t i = 0; i < std::min(lookup.ids().size(), outputs.size()); ++i)
    RunLookup(lookup.version(), lookup.ids()[i], lookup.table(), lookup.padding(), outputs[i]);
}

// Rows that arrived from all shards, in the order of the ids. The gradient op with the same ids determines
// the type of the lookup; without a gradient op, the table and the shapes determine it.
void Evaluation::RunMergedLookup(const Op& op) {
  const auto& ids = op.Input("Ids");
  const auto& outputs = op.Output("Out");
  const auto asked = asked_.find(&op);
  for (std::size_t i = 0; i < std::min(ids.size(), outputs.size()); ++i) {
    if (const Op* grad = GradientFrom(ids[i], asked == asked_.end() ? "" : asked->second.name)) {
      // Fluid's servers ignore padding_idx; then the gradient op's padding_idx applies.
      const bool left_out = asked != asked_.end() && asked->second.padding_idx != -1;
      RunLookup(grad->type().substr(0, grad->type().size() - kGradOf.size()), ids[i], grad->InputName("W"),
                left_out ? asked->second.padding_idx : grad->GetOr<std::int64_t>("padding_idx", -1),
                outputs[i]);
    } else if (asked != asked_.end()) {
      RunLookup(LookupTypeOf(ids[i], outputs[i]), ids[i], asked->second.name, asked->second.padding_idx,
                outputs[i]);
    }
  }
}

const Op* Evaluation::GradientFrom(std::string_view ids, std::string_view table) const {
  for (const OpEntry& entry : program_.main().ops()) {
    const Op& grad = *entry.op;
    if (grad.InputName("Ids") != ids || !Has(grad.role(), OpRole::kBackward)) continue;
    if (grad.type().ends_with(kGradOf) && (table.empty() || grad.InputName("W") == table)) return &grad;
  }
  return nullptr;
}

// lookup_table replaces the ids' last extent by the row; lookup_table_v2 appends the row as a new extent.
std::string Evaluation::LookupTypeOf(const std::string& ids, const std::string& out) const {
  const Var* from = program_.FindVar(block_, ids);
  const Var* to = program_.FindVar(block_, out);
  const bool known = from != nullptr && to != nullptr && from->type && to->type;
  return known && to->shape().rank() == from->shape().rank() + 1 ? "lookup_table_v2" : "lookup_table";
}

bool Evaluation::SameShape(const std::string& a, const std::string& b) const {
  const Var* left = program_.FindVar(block_, a);
  const Var* right = program_.FindVar(block_, b);
  return left != nullptr && right != nullptr && left->type && right->type && left->shape() == right->shape();
}

// Whether the op changes the loss's gradient in place right after it is made, as ranks do before they sum
// gradients.
bool Evaluation::IsOfLoss(const Op& op) const {
  const std::string& name = op.InputName("X");
  return !computed_.empty() && op.OutputName("Out") == name &&
         computed_.back().first->role() == (OpRole::kBackward | OpRole::kLoss) &&
         computed_.back().first->OutputName("Out") == name;
}
bool Evaluation::IsLossScale(const Op& op) const {
  return IsOfLoss(op) && op.Input("ScaleTensor").empty() && op.GetOr<float>("bias", 0.0f) == 0.0f;
}

// Evaluates a multiplication by a rank's share of all ranks' examples.
bool Evaluation::RunShared(const Op& op) {
  const auto share = shares_.find(op.InputName("Y"));
  if (share == shares_.end()) return false;
  if (IsOfLoss(op)) {
    loss_scale_ *= share->second;
  } else {
    Set(op.OutputName("Out"), table_.Linear({{Get(op.InputName("X")), share->second}}));
  }
  return true;
}

// Evaluates ops that compute linear combinations: sums, means and differences.
bool Evaluation::RunAlgebra(const Op& op) {
  const auto write = [&](ExprId value) {
    Set(op.OutputName("Out"), value);
    return true;
  };
  // merge_selected_rows sums duplicate rows, which is the same gradient.
  const bool same = op.type() == "assign" || op.type() == "merge_selected_rows";
  if (same && op.Input("X").size() == 1) return write(Get(op.InputName("X")));
  if (op.type() == "sum") {
    std::vector<ExprTable::Term> terms;
    for (const std::string& name : op.Input("X")) terms.push_back({Get(name), 1.0});
    return write(table_.Linear(terms));
  }
  if (op.type() == "scale" && IsLossScale(op)) {
    loss_scale_ *= Meant(op.GetOr<float>("scale", 1.0f));  // applied where ranks sum gradients
    return true;
  }
  if (op.type() == "scale" && op.Input("ScaleTensor").empty()) {
    const double factor = Meant(op.GetOr<float>("scale", 1.0f));
    const double bias = op.GetOr<float>("bias", 0.0f);
    const bool after = op.GetOr<bool>("bias_after_scale", true);
    std::vector<ExprTable::Term> terms = {{Get(op.InputName("X")), factor}};
    if (bias != 0.0) terms.push_back({table_.Leaf("1"), after ? bias : bias * factor});
    return write(table_.Linear(terms));
  }
  const bool adds = op.type() == "elementwise_add";
  const bool sums = adds || op.type() == "elementwise_sub";
  if (sums && SameShape(op.InputName("X"), op.InputName("Y"))) {
    return write(table_.Linear({{Get(op.InputName("X")), 1.0}, {Get(op.InputName("Y")), adds ? 1.0 : -1.0}}));
  }
  if (op.type() == "elementwise_mul" && RunShared(op)) return true;
  if (op.type() == "elementwise_mul" &&
      (Get(op.InputName("X")) == table_.Zero() || Get(op.InputName("Y")) == table_.Zero())) {
    return write(table_.Zero());
  }
  return false;
}

// Evaluates an op that computes a counter only from the counter itself.
bool Evaluation::CountsStep(const Op& op) {
  const std::string* read = OnlyArgument(op.inputs());
  const std::string* written = OnlyArgument(op.outputs());
  if (read == nullptr || written == nullptr || *read != *written) return false;
  const auto counter = counters_->find(*read);
  if (counter == counters_->end()) return false;
  Set(*counter, StepLeaf(table_, *counter));
  return true;
}

void Evaluation::RunAny(const Op& op, const OpCode& code) {
  args_.clear();
  for (const NameId name : table_.codes().Inputs(code)) args_.push_back(Get(name));
  if (code.special) {
    std::set<std::string_view> written;
    const ExprId value =
        HasBlocks(op) ? ApplyWithBlocks(op, code, args_, written) : table_.Apply(op, code.label, args_);
    SetOutputs(op, code, value, written);
    return;
  }
  const ExprId value = table_.Apply(op, code.label, args_);
  computed_.emplace_back(&op, value);
  const bool part = slices_ > 1 && WhatOnSlices(ops_, op) == OnSlices::kAddsUp;
  for (const OpCodes::Output& output : table_.codes().Outputs(code)) {
    const ExprId written = table_.Output(value, output.slot);
    values_.Set(output.name, part ? table_.PartOf(slice_, slices_, written) : written);
  }
}

// Sets the outputs of an op that leaves some outputs unchanged, or whose blocks write other variables.
void Evaluation::SetOutputs(const Op& op, const OpCode& code, ExprId value,
                            std::set<std::string_view>& written) {
  computed_.emplace_back(&op, value);
  std::set<std::string_view> unchanged = Unchanged(op);
  AddHandedOn(op, unchanged);
  const bool part = slices_ > 1 && WhatOnSlices(ops_, op) == OnSlices::kAddsUp;
  OpCodes& codes = table_.codes();
  for (const OpCodes::Output& output : codes.Outputs(code)) {
    const std::string_view name = codes.NameOf(output.name);
    if (unchanged.contains(name)) continue;
    written.erase(name);
    const ExprId written_value = table_.Output(value, output.slot);
    values_.Set(output.name, part ? table_.PartOf(slice_, slices_, written_value) : written_value);
  }
  for (const std::string_view name : written) {
    if (!unchanged.contains(name)) Set(name, table_.Output(value, codes.OutputLabel(name, 0)));
  }
}

// The variables that a conditional block leaves unchanged when it runs.
std::set<std::string_view> Evaluation::Unchanged(const Op& op) {
  std::set<std::string_view> unchanged;
  const auto* block = op.type() == "conditional_block" ? op.Get<BlockRef>("sub_block") : nullptr;
  if (block == nullptr || block->index <= block_ || block->index >= program_.block_count()) return unchanged;
  Evaluation inside(program_, ops_, table_, this);
  inside.RunBlock(block->index);
  for (const OpEntry& entry : program_.block(block->index).ops()) {
    for (const Slot& slot : entry.op->outputs()) {
      for (const std::string& name : slot.args) {
        if (inside.Get(name) == Get(name)) unchanged.insert(name);
      }
    }
  }
  return unchanged;
}

// Adds the outputs that an op writes only for its gradient op, under the name of an input: these count as
// that input. Also adds persistable outputs of an unknown backward op, assuming that it does not change them.
void Evaluation::AddHandedOn(const Op& op, std::set<std::string_view>& unchanged) const {
  const auto reads = [&](const std::string& name) {
    return std::ranges::any_of(
        op.inputs(), [&](const Slot& slot) { return std::ranges::find(slot.args, name) != slot.args.end(); });
  };
  for (const Slot& slot : op.outputs()) {
    for (const std::string& name : slot.args) {
      if (!reads(name)) continue;
      const OpDef* def = ops_.Find(op.type());
      const SlotDef* output = def == nullptr ? nullptr : def->FindOutput(slot.name);
      if (output != nullptr && output->intermediate) unchanged.insert(name);
    }
  }
  if (!Has(op.role(), OpRole::kBackward) || ops_.Find(op.type()) != nullptr) return;
  for (const Slot& slot : op.outputs()) {
    for (const std::string& name : slot.args) {
      const Var* var = program_.FindVar(block_, name);
      if (var != nullptr && var->persistable) unchanged.insert(name);
    }
  }
}

}  // namespace penstock::check
