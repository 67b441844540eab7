// All slices, all roles and the source initialize a variable alike, except for shapes.
#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <unordered_set>

#include "framework/op/slices.h"
#include "transpiler/check/meaning/composition.h"

namespace penstock::check {
namespace {

using Starts = std::unique_ptr<Evaluation>;

// The part of a list that belongs to a slice's rows, if the list has one entry for each element of the whole.
template <typename T>
std::optional<Attr> RowsOfList(const Attr& attr, const InitialSlice& slice) {
  const auto* list = std::get_if<std::vector<T>>(&attr);
  const std::int64_t width = slice.whole_shape.RowWidth();
  if (list == nullptr || static_cast<std::int64_t>(list->size()) != slice.whole_shape.Count() ||
      slice.row_begin < 0 || slice.row_end < slice.row_begin || slice.row_end > slice.whole_shape[0])
    return std::nullopt;
  return Attr(std::vector<T>(list->begin() + slice.row_begin * width, list->begin() + slice.row_end * width));
}

std::optional<Attr> RowsOf(const NamedAttr& attr, const InitialSlice& slice) {
  if (attr.name == "shape" || slice.whole_shape.rank() == 0) return std::nullopt;
  if (auto rows = RowsOfList<float>(attr.value, slice)) return rows;
  if (auto rows = RowsOfList<std::int32_t>(attr.value, slice)) return rows;
  return RowsOfList<std::int64_t>(attr.value, slice);
}

// If the op lists the elements of these rows as they are in `whole`, returns it with the list of the whole
// instead.
std::optional<Op> AsWhole(const Op& op, const Op& whole, const InitialSlice& slice) {
  std::optional<Op> lifted;
  for (const NamedAttr& attr : whole.attrs()) {
    const std::optional<Attr> rows = RowsOf(attr, slice);
    if (!rows) continue;
    const Attr* own = op.FindAttr(attr.name);
    if (own == nullptr || *own != *rows) return std::nullopt;
    if (!lifted) lifted = op;
    lifted->Set(attr.name, attr.value);
  }
  return lifted;
}

// The ops that make initial values without inputs and without receiving, by output.
ViewMap<const Op*> InitializersOf(const Program& startup) {
  ViewMap<const Op*> made;
  for (const OpEntry& entry : startup.main().ops()) {
    const Op& op = *entry.op;
    if (op.outputs().size() != 1 || op.outputs().front().args.size() != 1 || op.type() == "recv") continue;
    if (op.InputNames().empty()) made[op.outputs().front().args.front()] = &op;
  }
  return made;
}

class StartValueRules {
 public:
  StartValueRules(Composition& set, const SourcePrograms* source, Findings& findings)
      : set_(set), findings_(findings) {
    const auto& trainers = set_.facts.trainers;
    if (source != nullptr) {
      initializers_ = InitializersOf(source->startup);
      source_ = Run(source->startup, nullptr);
    } else if (!trainers.empty() && trainers.front().startup != nullptr) {
      initializers_ = InitializersOf(trainers.front().startup->program);
    }
  }

  void Run() {
    const auto& trainers = set_.facts.trainers;
    for (const TrainerFacts& trainer : trainers) {
      starts_.push_back(trainer.startup == nullptr ? nullptr : Run(trainer.startup->program, &trainer));
    }
    for (std::size_t t = 0; t < trainers.size(); ++t) CheckTrainer(t);
    NoteWholes();
    for (const PserverFacts& pserver : set_.facts.pservers) CheckPserver(pserver);
  }

 private:
  // Leaves out values received from pservers.
  Starts Run(const Program& startup, const TrainerFacts* trainer) {
    auto run = std::make_unique<Evaluation>(startup, set_.ops, set_.table);
    run->IgnoreShapes();
    std::unordered_set<const Op*> joins;
    if (trainer != nullptr) {
      for (const Transfer& recv : trainer->startup_recvs) joins.insert(recv.cut_op);
    }
    const auto& entries = startup.main().ops();
    std::vector<std::string_view> outs;
    outs.reserve(entries.size());
    for (const OpEntry& entry : entries) outs.push_back(entry.op->OutputName("Out"));
    std::vector<const Var*> vars(outs.size());
    startup.FindVars(0, outs, vars);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const Op& op = *entries[i].op;
      if (op.type() == "fake_init") continue;  // the table is on the pservers
      if (joins.contains(&op) || op.type() == "recv") continue;
      if (!RunAsWhole(op, vars[i], *run) && !RunOnRows(op, startup, *run)) run->RunOp(op);
    }
    return run;
  }

  // Evaluates an op on rows of variables. False for an op whose result has the rows of its arguments, and for
  // an op on whole variables: these run as they are.
  bool RunOnRows(const Op& op, const Program& startup, Evaluation& run) {
    const InitialSlice* rows = nullptr;
    bool fits = true;
    Shape shape;
    const auto note = [&](const std::string& name) {
      const Var* var = startup.main().FindVar(name);
      if (var == nullptr || !var->facts.slice || var->facts.slice->whole_shape == var->shape()) return;
      const InitialSlice& slice = *var->facts.slice;
      fits = fits && (rows == nullptr || (rows->row_begin == slice.row_begin &&
                                          rows->whole_shape == slice.whole_shape && shape == var->shape()));
      rows = &slice;
      shape = var->shape();
    };
    const std::vector<std::string> inputs = op.InputNames(), outputs = op.OutputNames();
    if (inputs.empty()) return false;
    for (const auto* names : {&inputs, &outputs}) std::for_each(names->begin(), names->end(), note);
    if (rows == nullptr) return false;
    if (TakesRows(op, *rows, startup)) {
      run.Set(outputs.front(), run.Get(inputs.front()));
      return true;
    }
    const auto find = [&](const std::string& name) { return startup.main().FindVar(name); };
    if (fits && WorksByRows(set_.ops, op, shape, find)) return false;
    for (const std::string& name : outputs)
      run.Set(name, set_.table.Leaf(StrCat(op.type(), " on rows that do not fit, for ", name)));
    return true;
  }

  // Whether the op takes these rows from the whole, all of which it reads.
  static bool TakesRows(const Op& op, const InitialSlice& rows, const Program& startup) {
    using List = std::vector<std::int32_t>;
    if (op.type() != "slice" || op.InputNames().size() != 1 || op.OutputNames().size() != 1) return false;
    const Var* whole = startup.main().FindVar(op.InputNames().front());
    return whole != nullptr && whole->HasShape() && whole->shape() == rows.whole_shape &&
           (!whole->facts.slice || whole->facts.slice->whole_shape == whole->shape()) &&
           op.GetOr<List>("axes", {}) == List{0} && op.GetOr<List>("decrease_axis", {}).empty() &&
           op.GetOr<List>("starts", {}) == List{static_cast<std::int32_t>(rows.row_begin)} &&
           op.GetOr<List>("ends", {}) == List{static_cast<std::int32_t>(rows.row_end)};
  }

  // Evaluates an initializer that lists a slice's elements like that of the whole, if these are the whole's
  // rows or no program initializes the whole. False for other ops, which then run as they are.
  bool RunAsWhole(const Op& op, const Var* var, Evaluation& run) {
    if (var == nullptr || !var->facts.slice || !op.InputNames().empty()) return false;
    const InitialSlice& slice = *var->facts.slice;
    const auto whole = initializers_.find(slice.whole);
    if (whole == initializers_.end()) {
      if (!ListsElements(op, *var)) return false;
      run.Set(var->name, run.Get(slice.whole));
      return true;
    }
    std::optional<Op> lifted = AsWhole(op, *whole->second, slice);
    if (!lifted) return false;
    run.RunOp(lifted_.emplace_back(*std::move(lifted)));
    return true;
  }

  static bool ListsElements(const Op& op, const Var& var) {
    if (!var.type || var.shape().rank() == 0) return false;
    const InitialSlice all{var.name, var.shape(), 0, var.shape()[0]};
    return std::any_of(op.attrs().begin(), op.attrs().end(),
                       [&](const NamedAttr& attr) { return RowsOf(attr, all).has_value(); });
  }

  void Compare(std::string_view name, const Evaluation* reference, std::string_view reference_name,
               ExprId given, const RoleProgram& file) {
    const ExprId* expected = reference == nullptr ? nullptr : reference->Find(name);
    if (expected == nullptr || *expected == given) return;
    findings_.Error("E-check-start-differs", file,
                    StrCat("starts ", name, " otherwise than ", reference_name));
    const auto [left, right] = set_.table.Difference(*expected, given);
    findings_.Detail(StrCat(reference_name, ":  ", left));
    findings_.Detail(StrCat(file.file, ":  ", right));
  }

  void CheckTrainer(std::size_t t) {
    if (starts_[t] == nullptr) return;
    const TrainerFacts& trainer = set_.facts.trainers[t];
    for (const VarRef& var : trainer.startup->program.main().vars()) {
      const ExprId* value = starts_[t]->Find(var->name);
      if (value == nullptr || !var->type || set_.counters.contains(var->name)) continue;
      Compare(var->name, source_.get(), "the source", *value, *trainer.startup);
      if (t > 0 && set_.facts.trainers.front().startup != nullptr) {
        Compare(var->name, starts_.front().get(), set_.facts.trainers.front().startup->file, *value,
                *trainer.startup);
      }
    }
  }

  // Maps each variable of a pserver to the whole of which it is a piece.
  void NoteWholes() {
    for (const auto& [param, slices] : set_.slices) {
      for (const UpdatedSlice& slice : slices)
        wholes_.emplace(Place(slice.pserver->address, slice.update->param), param);
    }
    for (const TrainerFacts& trainer : set_.facts.trainers) {
      for (const Transfer& recv : trainer.startup_recvs) {
        for (const Piece& piece : recv.pieces)
          wholes_.emplace(Place(piece.pserver, piece.remote), recv.whole);
      }
      if (set_.facts.geo()) NoteSlices(trainer);
    }
  }

  // Geo: Fluid does not fetch tables, so a trainer's programs do not show where their slices are. The
  // communicator is told, and finds the slices by these names.
  void NoteSlices(const TrainerFacts& trainer) {
    for (const std::string_view param : trainer.updated_here) {
      for (int index = 0;; ++index) {
        const std::string& slice = *slice_names_.insert(StrCat(param, ".block", index)).first;
        const auto holds = [&](const PserverFacts& pserver) { return pserver.UpdateOf(slice) != nullptr; };
        const auto pserver = std::find_if(set_.facts.pservers.begin(), set_.facts.pservers.end(), holds);
        if (pserver == set_.facts.pservers.end()) break;
        wholes_.emplace(Place(pserver->address, slice), param);
      }
    }
  }

  // A slice starts like its whole in the source; without a source, like the whole in the trainer's program,
  // where Fluid leaves the initializer.
  void CheckPserver(const PserverFacts& pserver) {
    if (pserver.startup == nullptr) return;
    const Starts start = Run(pserver.startup->program, nullptr);
    for (const VarRef& var : pserver.startup->program.main().vars()) {
      const ExprId* value = start->Find(var->name);
      if (value == nullptr || set_.counters.contains(var->name)) continue;
      const auto piece = wholes_.find({pserver.address, var->name});
      const std::string_view name = piece == wholes_.end() ? std::string_view(var->name) : piece->second;
      if (pserver.counters.contains(var->name)) {
        // Counters that trainers report have other initial values (check_step_counters.cc).
      } else if (source_ != nullptr) {
        Compare(name, source_.get(), "the source", *value, *pserver.startup);
      } else if (!starts_.empty() && starts_.front() != nullptr) {
        Compare(name, starts_.front().get(), set_.facts.trainers.front().startup->file, *value,
                *pserver.startup);
      }
      CompareWithOthers(name, *value, pserver);
    }
  }

  // Slices, and the state of slices, start alike on all pservers.
  void CompareWithOthers(std::string_view name, ExprId value, const PserverFacts& pserver) {
    const auto [it, fresh] = known_.emplace(name, std::pair(&pserver, value));
    if (fresh || it->second.second == value) return;
    findings_.Error("E-check-start-differs", *pserver.startup,
                    StrCat("starts ", name, " otherwise than ", it->second.first->startup->file));
    const auto [left, right] = set_.table.Difference(it->second.second, value);
    findings_.Detail(StrCat(it->second.first->startup->file, ":  ", left));
    findings_.Detail(StrCat(pserver.startup->file, ":  ", right));
  }

  Composition& set_;
  Findings& findings_;
  Starts source_;
  ViewMap<const Op*> initializers_;    // of wholes: those of the source, or of a trainer
  std::vector<Starts> starts_;         // of the trainers
  PlaceMap<std::string_view> wholes_;  // of pieces
  std::set<std::string> slice_names_;  // owns names that wholes_ views
  std::deque<Op> lifted_;              // ops of slices changed to ops of wholes; expressions refer to them
  ViewMap<std::pair<const PserverFacts*, ExprId>> known_;
};

}  // namespace

void CheckStartValues(Composition& set, const SourcePrograms* source, Findings& findings) {
  StartValueRules(set, source, findings).Run();
}

}  // namespace penstock::check
