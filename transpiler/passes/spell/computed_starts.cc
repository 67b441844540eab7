#include "transpiler/passes/spell/computed_starts.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "framework/base/strings.h"
#include "framework/ir/block_uses.h"
#include "framework/op/slices.h"
#include "transpiler/passes/spell/initial_values.h"

namespace penstock::passes {
namespace {

constexpr char kStartupPass[] = "init_pserver_slices";

bool IsCut(const Var& var) {
  const Box<InitialSlice>& slice = var.facts.slice;
  return slice && slice->whole_shape != var.shape();
}

bool DrawsRandomNumbers(const OpDef& def) { return def.effects().Has(Effect::kRandom); }

std::tuple<Dim, Dim> RowsOf(const InitialSlice& slice) { return {slice.row_begin, slice.row_end}; }

Status NotHere(const Op& reader, const std::string& name) {
  return Unimplemented("E-pass-initial-value", kStartupPass, ": ", reader.type(),
                       " computes the initial values of ", Join(reader.OutputNames(), ", "), " from ", name,
                       ", which is not on this pserver");
}

}  // namespace

const Op& ComputedStarts::OpAt(int position) const {
  return *context_.startup.main().ops()[static_cast<std::size_t>(position)].op;
}

std::set<int> ComputedStarts::WritersBefore(const std::string& name, int position) const {
  std::set<int> positions;
  for (const OpId id : context_.shares.started().Writers(name)) {
    const int at = context_.startup.main().PositionOf(id);
    if (at < position) positions.insert(at);
  }
  return positions;
}

Status ComputedStarts::Need(int position, const Var& made) {
  const Op& op = OpAt(position);
  const Var* whole = context_.startup.main().FindVar(op.OutputNames().front());
  const bool records_rows = context_.plan.conventions().slices_start_as_rows;
  if (made.kind == VarKind::kSelectedRows || (!records_rows && whole != nullptr && whole->HasShape() &&
                                              made.HasShape() && whole->shape() != made.shape()))
    return NotHere(op, op.InputNames().front());
  if (!IsCut(made)) return NeedInputs(position, op);
  if (WorksOnRows(position, *made.facts.slice)) return NeedInputsFor(position, *made.facts.slice, op);
  PENSTOCK_RETURN_IF_ERROR(RequireComputable(position, op.OutputNames().front(), op));
  whole_.insert(position);
  return NeedInputs(position, op);
}

Status ComputedStarts::NeedInputs(int position, const Op& reader) {
  for (const std::string& name : OpAt(position).InputNames())
    PENSTOCK_RETURN_IF_ERROR(NeedWhole(name, position, reader));
  return OkStatus();
}

Status ComputedStarts::NeedWhole(const std::string& name, int before, const Op& reader) {
  if (name == kEmptyVarName || IsHeldWhole(name)) return OkStatus();
  const std::set<int> writers = WritersBefore(name, before);
  if (writers.empty()) {
    return NotHere(reader, name)
        .With(StrCat("note: an initializer must write ", name, " before, in the same startup program"));
  }
  for (const int position : writers) {
    PENSTOCK_RETURN_IF_ERROR(RequireComputable(position, name, reader));
    if (!whole_.insert(position).second) continue;
    PENSTOCK_RETURN_IF_ERROR(NeedInputs(position, reader));
  }
  return OkStatus();
}

Status ComputedStarts::RequireComputable(int position, const std::string& name, const Op& reader) const {
  const Op& op = OpAt(position);
  const OpDef* def = context_.ops.Find(op.type());
  if (def == nullptr || def->effects().AreOutside() || !StartedBlocks(op).empty()) {
    return NotHere(reader, name)
        .With(StrCat("note: pservers cannot compute the result of ", op.type(), "; give ",
                     Join(reader.OutputNames(), ", "), " an initializer of its own"));
  }
  if (HasNoSeed(op, context_.ops)) {
    return NotHere(reader, name)
        .With(StrCat("note: ", op.type(), " of ", name,
                     " has no seed, so each pserver would draw other numbers; ", kGiveASeed));
  }
  return OkStatus();
}

// Whether the variable has the shape of the whole that is cut into rows.
bool ComputedStarts::IsOfWhole(const std::string& name, const InitialSlice& rows) const {
  const Var* var = context_.startup.main().FindVar(name);
  return var != nullptr && var->HasShape() && var->shape() == rows.whole_shape;
}

bool ComputedStarts::WorksOnRows(int position, const InitialSlice& rows) const {
  const Op& op = OpAt(position);
  const OpDef* def = context_.ops.Find(op.type());
  if (op.InputNames().empty()) return ShapeDecides(op) && def != nullptr && !HasNoSeed(op, context_.ops);
  if (def == nullptr || DrawsRandomNumbers(*def)) return false;
  const auto find = [&](const std::string& name) { return context_.startup.main().FindVar(name); };
  if (!WorksByRows(context_.ops, op, rows.whole_shape, find)) return false;
  const std::vector<std::string> inputs = op.InputNames();
  return std::ranges::all_of(inputs, [&](const std::string& name) {
    return !IsOfWhole(name, rows) || HasRows(name, position, rows);
  });
}

bool ComputedStarts::HasRows(const std::string& name, int before, const InitialSlice& rows) const {
  if (HeldRows(name, rows) != nullptr) return true;
  const std::set<int> writers = WritersBefore(name, before);
  return !writers.empty() &&
         std::ranges::all_of(writers, [&](int position) { return WorksOnRows(position, rows); });
}

Status ComputedStarts::NeedInputsFor(int position, const InitialSlice& rows, const Op& reader) {
  for (const std::string& name : OpAt(position).InputNames()) {
    if (!IsOfWhole(name, rows)) {
      PENSTOCK_RETURN_IF_ERROR(NeedWhole(name, position, reader));
    } else if (HeldRows(name, rows) == nullptr) {
      for (const int writer : WritersBefore(name, position)) {
        if (by_rows_[writer].emplace(RowsOf(rows), rows).second)
          PENSTOCK_RETURN_IF_ERROR(NeedInputsFor(writer, rows, reader));
      }
    }
  }
  return OkStatus();
}

bool ComputedStarts::IsHeldWhole(const std::string& name) const {
  const Var* var = block_.FindVar(name);
  return var != nullptr && var->persistable && !IsCut(*var);
}

const std::string* ComputedStarts::HeldRows(const std::string& name, const InitialSlice& rows) const {
  for (const std::string& here : names_.All(name)) {
    const Var* var = block_.FindVar(here);
    if (var == nullptr || !var->persistable || !var->facts.slice) continue;
    const InitialSlice& slice = *var->facts.slice;
    if (RowsOf(slice) == RowsOf(rows) && slice.whole_shape == rows.whole_shape) return &var->name;
  }
  return nullptr;
}

std::string ComputedStarts::NewName(const std::string& wanted) const {
  std::string name = wanted;
  while (block_.FindVar(name) != nullptr || taken_.FindVar(name) != nullptr) name += "@START";
  return name;
}

const std::string& ComputedStarts::WholeName(const std::string& name) {
  const auto known = whole_names_.find(name);
  if (known != whole_names_.end()) return known->second;
  return whole_names_.emplace(name, IsHeldWhole(name) ? name : NewName(name)).first->second;
}

// The pserver's variable with these rows of the user's variable, if it is cut; else with all of it.
std::string ComputedStarts::NameFor(const std::string& name, const InitialSlice* rows) {
  if (rows == nullptr || !IsOfWhole(name, *rows)) return WholeName(name);
  if (const std::string* held = HeldRows(name, *rows)) return *held;
  const auto [it, fresh] = row_names_.try_emplace({name, RowsOf(*rows)});
  if (fresh) it->second = NewName(StrCat(name, "@ROWS.", rows->row_begin));
  return it->second;
}

std::set<int> ComputedStarts::Positions() const {
  std::set<int> positions = whole_;
  for (const auto& [position, rows] : by_rows_) positions.insert(position);
  return positions;
}

// A temporary records which rows it has, and the variable whose random numbers it draws: these depend on the
// place of the variable among the random ops of the user's program.
void ComputedStarts::Declare(const std::string& temporary, const std::string& users, const InitialSlice* rows,
                             const Op& maker) {
  const Var* var = context_.startup.main().FindVar(users);
  if (var == nullptr || block_.FindVar(temporary) != nullptr) return;
  Var declared = ServerCopy(*var);
  declared.name = temporary;
  declared.persistable = declared.has_persistable = false;
  const OpDef* def = context_.ops.Find(maker.type());
  const bool is_drawn = def != nullptr && DrawsRandomNumbers(*def) && var->persistable && var->HasShape() &&
                        var->shape().rank() > 0;
  if (rows != nullptr && IsOfWhole(users, *rows)) {
    std::vector<Dim> dims = var->shape().dims();
    dims.front() = rows->row_end - rows->row_begin;
    declared.type->shape = Shape(std::move(dims));
    declared.facts.slice = InitialSlice{users, var->shape(), rows->row_begin, rows->row_end};
  } else if (is_drawn) {
    declared.facts.slice = InitialSlice{users, var->shape(), 0, var->shape()[0]};
  }
  block_.SetVar(std::move(declared));
}

void ComputedStarts::SetInputs(Op& op, const InitialSlice* rows) {
  const std::vector<Slot> slots = op.inputs();
  for (const Slot& slot : slots) {
    std::vector<std::string> args;
    for (const std::string& name : slot.args) {
      args.push_back(name == kEmptyVarName ? name : NameFor(name, rows));
    }
    op.AddInput(slot.name.str(), std::move(args));
  }
}

void ComputedStarts::SetOutputs(Op& op, const InitialSlice* rows) {
  const std::vector<Slot> slots = op.outputs();
  for (const Slot& slot : slots) {
    std::vector<std::string> args;
    for (const std::string& name : slot.args) {
      args.push_back(NameFor(name, rows));
      Declare(args.back(), name, rows, op);
    }
    op.AddOutput(slot.name.str(), std::move(args));
  }
}

void ComputedStarts::AppendCopy(int position, const InitialSlice* rows) {
  Op op = ServerCopy(OpAt(position), context_.ops);
  SetInputs(op, rows);
  SetOutputs(op, rows);
  if (rows != nullptr && ShapeDecides(op)) FitShape(op, block_.FindVar(op.OutputName("Out"))->shape());
  block_.Append(std::move(op.SetMadeBy(kStartupPass)));
}

void ComputedStarts::AppendNoted(int position) {
  if (const auto rows = by_rows_.find(position); rows != by_rows_.end()) {
    for (const auto& [which, slice] : rows->second) AppendCopy(position, &slice);
  }
  if (whole_.contains(position)) AppendCopy(position, nullptr);
}

void ComputedStarts::AppendStarter(int position, Op starter, const Word& slot, const Var& made) {
  const InitialSlice* rows = IsCut(made) ? &*made.facts.slice : nullptr;
  if (rows != nullptr && !WorksOnRows(position, *rows)) {
    Op cut("slice");
    cut.AddInput("Input", {WholeName(OpAt(position).OutputName(slot.str()))}).AddOutput("Out", {made.name});
    cut.Set("axes", std::vector<std::int32_t>{0});
    cut.Set("starts", std::vector<std::int32_t>{static_cast<std::int32_t>(rows->row_begin)});
    cut.Set("ends", std::vector<std::int32_t>{static_cast<std::int32_t>(rows->row_end)});
    block_.Append(std::move(ServerCopy(cut, context_.ops).SetMadeBy(kStartupPass)));
    return;
  }
  SetInputs(starter, rows);
  const std::vector<Slot> outputs = OpAt(position).outputs();
  for (const Slot& other : outputs) {
    if (!starter.Output(other.name.str()).empty()) continue;
    std::vector<std::string> args;
    for (const std::string& name : other.args) {
      args.push_back(NameFor(name, rows));
      Declare(args.back(), name, rows, starter);
    }
    starter.AddOutput(other.name.str(), std::move(args));
  }
  block_.Append(std::move(starter.SetMadeBy(kStartupPass)));
}

}  // namespace penstock::passes
