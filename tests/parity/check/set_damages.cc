// Damages of initial values and tables, and sets combined from two sets.
#include <algorithm>

#include "tests/parity/check/damages.h"

namespace penstock::test {
namespace {

using Strings = std::vector<std::string>;
using Longs = std::vector<std::int64_t>;

const std::vector<Damage> kOthers = {
    {"StartValueOfASliceMissing",
     [](check::RoleFiles& r) {
       Program& program = r.pserver_startups.front().program;
       const std::string param = OpOf(Pserver(r), *FindOptimizer(Pserver(r))).InputName("Param");
       const auto at = FindIf(program, [&](const Op& op) { return op.OutputName("Out") == param; });
       if (at) Remove(program, *at);
       return at.has_value();
     },
     {"E-check-no-start"}},
    {"StartValueOfAnotherShape",
     [](check::RoleFiles& r) {
       return ChangeFirst(r.pserver_startups.front().program, "fill_constant", [](Op& op) {
         op.Set("shape", Longs{3, 5, 7});
       });
     },
     {"E-check-start-shape"}},
    {"AnotherStartValue",
     [](check::RoleFiles& r) {
       return ChangeFirst(r.pserver_startups.front().program, "fill_constant", [](Op& op) {
         op.Set("value", op.GetOr<float>("value", 0.0f) + 1.0f);
         op.RemoveAttr("str_value");
       });
     },
     {"E-check-start-differs"}},
    {"SliceStartsAsOtherRows",
     [](check::RoleFiles& r) {
       Program& startup = r.pserver_startups.back().program;
       const std::vector<VarRef> vars = startup.main().vars();
       const auto slice = std::find_if(vars.begin(), vars.end(),
                                       [](const VarRef& var) { return var->facts.slice.has_value(); });
       if (slice == vars.end()) return false;
       ChangeVar(startup, (*slice)->name, [](Var& var) {
         ++var.facts.slice->row_begin;
         ++var.facts.slice->row_end;
       });
       return true;
     },
     {"E-check-start-rows"}},
    {"AnotherSeed",
     [](check::RoleFiles& r) {
       ++r.pserver_startups.back().program.mutable_meta().random_seed;
       return true;
     },
     {"E-check-seed"}},
    {"TwoServersInitialiseOneSlice",
     [](check::RoleFiles& r) {
       if (r.pservers.size() < 2) return false;
       const std::string param = OpOf(Pserver(r), *FindOptimizer(Pserver(r))).InputName("Param");
       const Program& from = r.pserver_startups[0].program;
       const auto at = FindIf(from, [&](const Op& op) { return op.OutputName("Out") == param; });
       if (!at) return false;
       Program& to = r.pserver_startups[1].program;
       to.MutableBlock(0).SetVar(*from.main().FindVar(param));
       to.MutableBlock(0).Append(OpOf(from, *at));
       return true;
     },
     {"E-check-two-owners"}},
    {"TableShardMissing",
     [](check::RoleFiles& r) {
       return ChangeFirst(Trainer(r), "distributed_lookup_table", [](Op& op) {
         for (const char* attr : {"table_names", "endpoints"}) {
           Strings list = *op.Get<Strings>(attr);
           list.pop_back();
           op.Set(attr, list);
         }
         Longs rows = *op.Get<Longs>("height_sections");
         rows.pop_back();
         op.Set("height_sections", rows);
       });
     },
     {"E-check-table-rows", "E-check-slices"}},
    {"LookupAtTheWrongServer",
     [](check::RoleFiles& r) {
       return r.pservers.size() > 1 && ChangeFirst(Trainer(r), "distributed_lookup_table", [&](Op& op) {
                Strings servers = *op.Get<Strings>("endpoints");
                servers.front() = OtherAddress(r, servers.front());
                op.Set("endpoints", servers);
              });
     },
     {"E-check-unknown-piece"}},
    {"PrefetchFromTheWrongServer",
     [](check::RoleFiles& r) {
       return r.pservers.size() > 1 && ChangeFirst(Trainer(r), "prefetch", [](Op& op) {
                const Strings servers = *op.Get<Strings>("epmap");
                op.Set("epmap", Strings(servers.rbegin(), servers.rend()));
              });
     },
     {"E-check-prefetch"}},
    {"TrainerAndServerOfDifferentPlans",
     [](check::RoleFiles& r) {
       // As if the pservers' addresses were given in another order.
       if (r.pservers.size() < 2) return false;
       const Strings addresses = {AddressOf(r, 0), AddressOf(r, 1)};
       for (std::size_t i = 0; i < 2; ++i) {
         ChangeFirst(r.pservers[i].program, "listen_and_serv",
                     [&](Op& op) { op.Set("endpoint", addresses[1 - i]); });
       }
       return true;
     },
     {"E-check-not-received"}},
    {"ATrainersOpChanged",
     [](check::RoleFiles& r) {
       const auto at = FindIf(Trainer(r), [](const Op& op) {
         return Has(op.role(), OpRole::kBackward) && op.FindAttr("axis") != nullptr;
       });
       if (at && r.trainers.size() > 1) Change(Trainer(r), *at, [](Op& op) { op.Set("axis", 0); });
       return at.has_value() && r.trainers.size() > 1;
     },
     {"E-check-trainers-differ"}},
    {"NoServer",
     [](check::RoleFiles& r) { return RemoveFirst(Pserver(r), "listen_and_serv"); },
     {"E-check-no-server"}},
};

}  // namespace

const std::vector<Damage>& SetDamages() { return kOthers; }

}  // namespace penstock::test
