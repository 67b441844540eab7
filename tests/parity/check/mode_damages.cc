// Damages of sets whose trainers do not step together, and of sets without pservers.
#include "tests/parity/check/damages.h"

namespace penstock::test {
namespace {

using Strings = std::vector<std::string>;
using Programs = std::vector<check::RoleProgram>;

// Makes the same change in several programs; false if it does not apply to one of them.
bool InEach(Programs& programs, const std::function<bool(Program&)>& change) {
  bool made = !programs.empty();
  for (check::RoleProgram& file : programs) made = change(file.program) && made;
  return made;
}
bool RemoveInEach(Programs& programs, const std::string& type) {
  return InEach(programs, [&](Program& program) { return RemoveFirst(program, type); });
}
bool ChangeInEach(Programs& programs, const std::string& type, const std::function<void(Op&)>& change) {
  return InEach(programs, [&](Program& program) { return ChangeFirst(program, type, change); });
}

std::optional<OpAt> FindNotice(const Program& program) {
  return FindIf(
      program, [](const Op& op) { return op.type() == "send" && !op.GetOr<bool>("use_send_handler", true); });
}
const Strings& SentNames(const Op& op) {
  static const Strings kNone;
  const auto* names = op.Get<Strings>("send_varnames");
  return names == nullptr ? kNone : *names;
}
const Op* Server(const check::RoleFiles& r) {
  if (r.pservers.empty()) return nullptr;
  const Program& program = r.pservers.front().program;
  return &OpOf(program, *FindOp(program, 0, "listen_and_serv"));
}
bool IsGeo(const check::RoleFiles& r) {
  return Server(r) != nullptr && Server(r)->GetOr<std::int32_t>("distributed_mode", 0) == 3;
}
// The op that gives a variable its initial value.
std::optional<OpAt> FindStart(const Program& startup, const std::string& name) {
  return FindIf(startup, [&](const Op& op) { return op.OutputName("Out") == name; });
}
void Raise(Op& op) { op.Set("value", op.GetOr<float>("value", 0.0f) + 1.0f).Set("str_value", ""); }

// Asynchronous schedules.
const std::vector<Damage> kSchedules = {
    {"StepsNotTold",
     [](check::RoleFiles& r) {
       const auto at = FindNotice(Trainer(r));
       if (at) Remove(Trainer(r), *at);
       return at.has_value();
     },
     {"E-check-not-sent"}},
    {"StepsNotToldByAnybody",
     [](check::RoleFiles& r) {
       return InEach(r.trainers, [](Program& program) {
         const auto at = FindNotice(program);
         if (at) Remove(program, *at);
         return at.has_value();
       });
     },
     {"E-check-not-sent", "E-check-lr-block"}},
    {"StepsToldInTwos",
     [](check::RoleFiles& r) {
       const auto notice = FindNotice(Trainer(r));
       if (!notice) return false;
       Program& startup = r.trainer_startups.back().program;
       Change(startup, *FindStart(startup, OpOf(Trainer(r), *notice).InputName("X")), Raise);
       return true;
     },
     {"E-check-start-differs"}},
    {"ScheduleBeginsElsewhere",
     [](check::RoleFiles& r) {
       const auto notice = FindNotice(Trainer(r));
       if (!notice) return false;
       const std::string counter = OpOf(Trainer(r), *notice).InputName("X");
       return InEach(r.pserver_startups, [&](Program& startup) {
         const auto at = FindStart(startup, counter);
         if (at) Change(startup, *at, Raise);
         return at.has_value();
       });
     },
     {"E-check-start-differs"}},
    {"AnotherNumberOfTrainers",
     [](check::RoleFiles& r) {
       // No pserver merges, so only the plan, which Fluid's sets do not have, tells the number of trainers.
       if (Server(r) == nullptr || r.pservers.front().program.meta().plan.empty()) return false;
       return ChangeInEach(r.pservers, "listen_and_serv", [](Op& op) { op.Set("Fanin", 5); });
     },
     {"E-check-trainers"}},
    {"DelayNotCompensated",
     [](check::RoleFiles& r) {
       if (Server(r) == nullptr || !Server(r)->GetOr<bool>("dc_asgd", false)) return false;
       return ChangeFirst(Pserver(r), "listen_and_serv", [](Op& op) { op.Set("dc_asgd", false); });
     },
     {"E-check-dc-asgd"}},
};

// Geo-SGD.
std::string FirstDelta(const check::RoleFiles& r) {
  const auto at = FindInner(r.pservers.front().program, "sum");
  return at ? OpOf(r.pservers.front().program, *at).Input("X").back() : "";
}

const std::vector<Damage> kGeoDamages = {
    {"GeoStepNotTold",
     [](check::RoleFiles& r) { return IsGeo(r) && RemoveFirst(Trainer(r), "send"); },
     {"E-check-geo"}},
    {"StartToldBeforeParametersCome",
     [](check::RoleFiles& r) {
       if (!IsGeo(r)) return false;
       Program& startup = r.trainer_startups.back().program;
       const auto told =
           FindIf(startup, [](const Op& op) { return op.type() == "send" && !SentNames(op).empty(); });
       if (!told) return false;
       MoveBefore(startup, *told, *FindOp(startup, 0, "recv"));
       return true;
     },
     {"E-check-geo"}},
    {"StartNotTold",
     [](check::RoleFiles& r) {
       if (!IsGeo(r)) return false;
       Program& startup = r.trainer_startups.back().program;
       const auto told =
           FindIf(startup, [](const Op& op) { return op.type() == "send" && !SentNames(op).empty(); });
       if (told) Remove(startup, *told);
       return told.has_value();
     },
     {"E-check-geo"}},
    {"ChangeOfAnotherShape",
     [](check::RoleFiles& r) {
       if (!IsGeo(r)) return false;
       ChangeVar(Trainer(r), FirstDelta(r),
                 [](Var& var) { var.type->shape = var.type->shape.WithRows(var.type->shape[0] + 1); });
       return true;
     },
     {"E-check-message-type"}},
    {"ChangeNotDeclared",
     [](check::RoleFiles& r) {
       if (!IsGeo(r)) return false;
       Trainer(r).MutableBlock(0).RemoveVar(FirstDelta(r));
       return true;
     },
     {"E-check-geo"}},
    {"ChangeAddedToItself",
     [](check::RoleFiles& r) {
       return IsGeo(r) && ChangeFirst(Pserver(r), "sum", [](Op& op) {
                op.AddInput("X", {op.Input("X").back(), op.Input("X").back()});
              });
     },
     {"E-check-delta", "E-check-no-update", "E-check-source", "E-check-updated-twice"}},
    {"TrainerDoesNotOptimize",
     [](check::RoleFiles& r) {
       if (!IsGeo(r)) return false;
       const auto at = FindOptimizer(Trainer(r));
       if (at) Remove(Trainer(r), *at);
       return at.has_value();
     },
     {"E-check-untrained", "E-check-source", "E-check-trainers-differ"}},
};

// Ranks without pservers.
const std::vector<Damage> kRanks = {
    {"StartNotGivenToTheOthers",
     [](check::RoleFiles& r) { return RemoveInEach(r.trainer_startups, "c_broadcast"); },
     {"E-check-broadcast"}},
    {"StartGivenBeforeItIsThere",
     [](check::RoleFiles& r) {
       return InEach(r.trainer_startups, [](Program& startup) {
         const auto give = FindOp(startup, 0, "c_broadcast");
         if (!give) return false;
         MoveBefore(startup, *give, *FindStart(startup, OpOf(startup, *give).InputName("X")));
         return true;
       });
     },
     {"E-check-broadcast"}},
    {"StartNotAwaited",
     [](check::RoleFiles& r) {
       return FindOp(r.trainer_startups.front().program, 0, "c_broadcast").has_value() &&
              RemoveInEach(r.trainer_startups, "c_sync_comm_stream");
     },
     {"E-check-streams"}},
    {"GradientNotAddedUp",
     [](check::RoleFiles& r) { return RemoveInEach(r.trainers, "c_allreduce_sum"); },
     {"E-check-reduced"}},
    {"SumNotAwaited",
     [](check::RoleFiles& r) { return RemoveInEach(r.trainers, "c_sync_comm_stream"); },
     {"E-check-streams"}},
    {"SumBegunTooEarly",
     [](check::RoleFiles& r) {
       return InEach(r.trainers, [](Program& program) {
         while (RemoveFirst(program, "c_sync_calc_stream")) {
         }
         return FindOp(program, 0, "c_allreduce_sum").has_value();
       });
     },
     {"E-check-streams"}},
    {"SumsInAnotherOrder",
     [](check::RoleFiles& r) {
       if (r.trainers.size() < 2) return false;
       const auto first = FindOp(Trainer(r), 0, "c_allreduce_sum");
       const auto second = FindOp(Trainer(r), 0, "c_allreduce_sum", 1);
       if (!first || !second) return false;
       MoveBefore(Trainer(r), *second, *first);
       return true;
     },
     {"E-check-collective-order"}},
    {"RingThatNobodyJoins",
     [](check::RoleFiles& r) {
       return ChangeInEach(r.trainers, "c_allreduce_sum", [](Op& op) { op.Set("ring_id", 5); });
     },
     {"E-check-ring"}},
    {"RingNotJoined",
     [](check::RoleFiles& r) { return RemoveFirst(r.trainer_startups.back().program, "c_comm_init"); },
     {"E-check-ring"}},
    {"AnotherNumberOfRanks",
     [](check::RoleFiles& r) {
       return ChangeInEach(r.trainer_startups, "c_comm_init", [](Op& op) { op.Set("nranks", 3); });
     },
     {"E-check-ranks"}},
    {"AnotherNumberOfIds",
     [](check::RoleFiles& r) {
       return ChangeInEach(r.trainer_startups, "gen_nccl_id", [](Op& op) { op.Set("nccl_comm_num", 5); });
     },
     {"E-check-ring"}},
    {"NodesThatRanksDoNotMake",
     [](check::RoleFiles& r) {
       return ChangeInEach(r.trainer_startups, "gen_nccl_id", [](Op& op) {
         op.Set("use_hierarchical_allreduce", true).Set("hierarchical_allreduce_inter_nranks", 3);
       });
     },
     {"E-check-ring"}},
    {"SnapshotNotRenewed",
     [](check::RoleFiles& r) { return r.pservers.empty() && RemoveInEach(r.trainers, "assign"); },
     {"E-check-snapshot"}},
};

std::vector<Damage> JoinedInModes() {
  std::vector<Damage> all;
  for (const auto* list : {&kSchedules, &kGeoDamages, &kRanks})
    all.insert(all.end(), list->begin(), list->end());
  return all;
}

}  // namespace

const std::vector<Damage>& ModeDamages() {
  static const std::vector<Damage> all = JoinedInModes();
  return all;
}

}  // namespace penstock::test
