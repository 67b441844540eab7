// Slices start as their rows of the whole if programs record them (ProgramExtra), and random numbers come
// from one seed, so that initial values do not depend on the number of pservers.
#include <algorithm>

#include "framework/ir/random_draws.h"
#include "transpiler/check/facts/facts.h"

namespace penstock::check {
namespace {

// One slice of a parameter and the pserver that holds it.
struct Home {
  const PserverFacts* pserver;
  std::string_view name;
  const Var* var;  // as its main program declares it, null if it does not
};

class StartRowRules {
 public:
  StartRowRules(const RoleFacts& facts, const OpRegistry& ops, const SourcePrograms* source,
                Findings& findings)
      : facts_(facts), ops_(ops), source_(source), findings_(findings) {}

  void Run() {
    CheckSeeds();
    for (const PserverFacts& pserver : facts_.pservers) CheckDraws(pserver);
    for (const TrainerFacts& trainer : facts_.trainers) {
      Collect(trainer.startup_recvs);
      Collect(trainer.recvs);
      for (const Lookup& lookup : trainer.lookups) {
        if (lookup.cut == Cut::kByRows) Add(lookup.table, lookup.pieces);
      }
    }
    for (const auto& [param, places] : places_) CheckParam(param, places);
  }

 private:
  // Fluid's files carry no seed: it reads as 0 in all of them, and in a source that is read without its
  // facts.
  void CheckSeeds() {
    const std::int64_t drawn = source_ == nullptr ? 0 : source_->startup.meta().random_seed;
    const RoleProgram* first = nullptr;
    const auto check = [&](const RoleProgram* file) {
      if (file == nullptr) return;
      const std::int64_t seed = file->program.meta().random_seed;
      if (first != nullptr && seed != first->program.meta().random_seed) {
        findings_.Error("E-check-seed", *file,
                        StrCat("draws from random_seed ", seed, ", ", first->file, " from ",
                               first->program.meta().random_seed));
      } else if (first == nullptr && drawn != 0 && seed != 0 && seed != drawn) {
        findings_.Error("E-check-seed", *file,
                        StrCat("draws from random_seed ", seed, ", the source from ", drawn));
      }
      if (first == nullptr) first = file;
    };
    for (const TrainerFacts& trainer : facts_.trainers) check(trainer.startup);
    for (const PserverFacts& pserver : facts_.pservers) check(pserver.startup);
  }

  // A variable that records its rows, and a temporary that computes the values of another one, have the
  // random numbers of the source's variable.
  void CheckDraws(const PserverFacts& pserver) {
    if (pserver.startup == nullptr || source_ == nullptr) return;
    const Program& startup = pserver.startup->program;
    std::map<std::string, std::int64_t> drawn, given;  // computed on first use
    for (const OpEntry& entry : startup.main().ops()) {
      const Op& op = *entry.op;
      const std::int32_t* seed = op.Get<std::int32_t>("seed");
      const Var* var = seed == nullptr ? nullptr : startup.main().FindVar(op.OutputName("Out"));
      if (var == nullptr || (var->persistable && !var->facts.slice)) continue;
      const std::string& whole = var->facts.slice ? var->facts.slice->whole : var->name;
      const Var* users = source_->startup.main().FindVar(whole);
      if (users == nullptr || !users->persistable) continue;
      if (drawn.empty()) drawn = DrawsOf(source_->startup), given = DrawsOf(startup);
      const auto expected = drawn.find(whole);
      const auto here = given.find(var->name);
      const bool same_place =
          expected == drawn.end() || (here != given.end() && here->second == expected->second);
      if (same_place && (var->persistable || (*seed != 0 && var->facts.slice))) continue;
      findings_.Error(
          "E-check-seed", *pserver.startup,
          StrCat("computes initial values from other random numbers of ", whole, " than the source"), &op);
    }
  }

  void Collect(const std::vector<Transfer>& transfers) {
    for (const Transfer& transfer : transfers) Add(transfer.whole, transfer.pieces);
  }

  void Add(std::string_view param, const std::vector<Piece>& pieces) {
    if (places_.contains(param)) return;
    std::vector<Home> places;
    for (const Piece& piece : pieces) {
      if (piece.to == nullptr) return;  // reported
      places.push_back({piece.to, piece.remote, piece.there});
    }
    places_.emplace(param, std::move(places));
  }

  // `name` of a whole, on each of these pservers.
  struct Part {
    Home at;
    Dim begin, end;
  };

  void CheckParam(std::string_view param, const std::vector<Home>& places) {
    std::vector<Part> parts;
    std::map<std::string, std::vector<Part>> states;  // by the optimizer's slot
    Dim row = 0;
    for (const Home& place : places) {
      const Var* var = place.var;
      if (var == nullptr || !var->type || var->shape().rank() == 0 || var->shape()[0] < 0) return;
      const Part part{place, row, row + var->shape()[0]};
      row = part.end;
      parts.push_back(part);
      const UpdateBlock* update = place.pserver->UpdateOf(place.name);
      if (update == nullptr || update->optimizer == nullptr) continue;
      const OpDef* def = ops_.Find(update->optimizer->type());
      if (def == nullptr || !def->optimizer()) continue;
      for (const StateDef& state : def->optimizer()->states) {
        if (state.slicing != StateSlicing::kWithParam) continue;
        for (const std::string& name : update->optimizer->Input(state.slot)) {
          const Var* of = place.pserver->file->program.main().FindVar(name);
          states[state.slot].push_back({{place.pserver, name, of}, part.begin, part.end});
        }
      }
    }
    const Var* whole = facts_.trainers.front().file->program.main().FindVar(param);
    const bool tiled =
        whole == nullptr || !whole->type || whole->shape().rank() == 0 || Compatible(whole->shape()[0], row);
    if (!tiled) return;  // reported
    CheckParts(param, parts);
    for (const auto& [slot, of_slot] : states) CheckParts("", of_slot);
  }

  // Without a name, all belong to the whole that the first one records.
  void CheckParts(std::string_view whole, const std::vector<Part>& parts) {
    for (const bool startup : {false, true}) {
      const bool told = std::any_of(parts.begin(), parts.end(),
                                    [&](const Part& part) { return SliceOf(part, startup) != nullptr; });
      if (!told) continue;  // not recorded: the shape of its initializer decides
      for (const Part& part : parts) {
        const InitialSlice* slice = SliceOf(part, startup);
        const RoleProgram* file = startup ? part.at.pserver->startup : part.at.pserver->file;
        if (file == nullptr) continue;
        if (slice != nullptr && whole.empty()) whole = slice->whole;
        const bool right = slice != nullptr && slice->whole == whole && slice->row_begin == part.begin &&
                           slice->row_end == part.end && slice->whole_shape.rank() > 0 &&
                           slice->whole_shape[0] == parts.back().end;
        if (right) continue;
        findings_.Error(
            "E-check-start-rows", *file,
            StrCat(part.at.name, " is rows [", part.begin, ", ", part.end, ") of ", parts.back().end, " of ",
                   whole.empty() ? "its whole" : whole, ", but starts as ",
                   slice == nullptr
                       ? std::string("a whole")
                       : StrCat("rows [", slice->row_begin, ", ", slice->row_end, ") of ", slice->whole)));
      }
    }
  }

  static const InitialSlice* SliceOf(const Part& part, bool startup) {
    const RoleProgram* file = part.at.pserver->startup;
    const Var* var = part.at.var;
    if (startup) var = file == nullptr ? nullptr : file->program.main().FindVar(part.at.name);
    return var == nullptr || !var->facts.slice ? nullptr : &*var->facts.slice;
  }

  const RoleFacts& facts_;
  const OpRegistry& ops_;
  const SourcePrograms* source_;
  Findings& findings_;
  std::map<std::string_view, std::vector<Home>> places_;  // slices of each parameter, in order
};

}  // namespace

void CheckStartRows(const RoleFacts& facts, const OpRegistry& ops, const SourcePrograms* source,
                    Findings& findings) {
  StartRowRules(facts, ops, source, findings).Run();
}

}  // namespace penstock::check
