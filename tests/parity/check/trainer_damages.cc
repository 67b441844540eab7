// Damages of trainers' programs.
#include <algorithm>

#include "tests/parity/check/damages.h"

namespace penstock::test {
namespace {

using Strings = std::vector<std::string>;
using Longs = std::vector<std::int64_t>;
using Ints = std::vector<std::int32_t>;

std::optional<OpAt> FindSplit(const Program& program) {
  return FindIf(
      program, [](const Op& op) { return op.type() == "split_byref" || op.type() == "split_selected_rows"; });
}
std::optional<OpAt> FindJoin(const Program& program) {
  return FindIf(program, [](const Op& op) { return op.type() == "concat" && Has(op.role(), OpRole::kDist); });
}
std::optional<OpAt> FindRecv(const Program& program, std::size_t pieces) {
  return FindIf(program,
                [&](const Op& op) { return op.type() == "recv" && op.Output("Out").size() >= pieces; });
}
bool SetSections(Op& op, const std::function<void(Longs&)>& change) {
  for (const char* attr : {"sections", "height_sections"}) {
    const Attr* value = op.FindAttr(attr);
    if (value == nullptr) continue;
    Longs rows = *AttrAs<Longs>(*value);
    change(rows);
    if (std::holds_alternative<Ints>(*value)) {
      op.Set(attr, Ints(rows.begin(), rows.end()));
    } else {
      op.Set(attr, rows);
    }
    return true;
  }
  return false;
}

bool ChangeSections(check::RoleFiles& roles, const std::function<void(Longs&)>& change) {
  const auto at = FindSplit(Trainer(roles));
  if (at) Change(Trainer(roles), *at, [&](Op& op) { SetSections(op, change); });
  return at.has_value();
}

// Changes the rows of a slice in all its declarations.
bool ResizeSlice(check::RoleFiles& roles, Dim by) {
  const auto at = FindRecv(Trainer(roles), 2);
  if (!at) return false;
  const std::string piece = OpOf(Trainer(roles), *at).Output("Out").back();
  const auto resize = [&](Program& program) {
    if (program.main().FindVar(piece) == nullptr) return;
    ChangeVar(program, piece,
              [&](Var& var) { var.type->shape = var.type->shape.WithRows(var.type->shape[0] + by); });
  };
  for (check::RoleProgram* file : roles.All()) resize(file->program);
  return true;
}

// What trainers send and receive.
const std::vector<Damage> kMessages = {
    {"SendRemoved",
     [](check::RoleFiles& r) { return RemoveFirst(Trainer(r), "send"); },
     {"E-check-not-sent"}},
    {"SendRemovedEverywhere",
     [](check::RoleFiles& r) {
       for (check::RoleProgram& trainer : r.trainers) RemoveFirst(trainer.program, "send");
       return true;
     },
     {"E-check-untrained"}},
    {"SendDoubled",
     [](check::RoleFiles& r) {
       Repeat(Trainer(r), *FindOp(Trainer(r), 0, "send"));
       return true;
     },
     {"E-check-sent-twice"}},
    {"WrongEpmap",
     [](check::RoleFiles& r) {
       if (r.pservers.size() < 2) return false;
       return ChangeFirst(Trainer(r), "send", [&](Op& op) {
         Strings servers = *op.Get<Strings>("epmap");
         servers.front() = OtherAddress(r, servers.front());
         op.Set("epmap", servers);
       });
     },
     {"E-check-not-received"}},
    {"UnknownServer",
     [](check::RoleFiles& r) {
       return ChangeFirst(Trainer(r), "recv", [](Op& op) {
         Strings servers = *op.Get<Strings>("epmap");
         servers.front() = "127.0.0.1:9999";
         op.Set("epmap", servers);
       });
     },
     {"E-check-address"}},
    {"RecvOfAnOldName",
     [](check::RoleFiles& r) {
       return ChangeFirst(Trainer(r), "recv", [](Op& op) {
         op.Set("varnames", Strings(op.Output("Out").size(), "the_old_name"));
       });
     },
     {"E-check-unknown-piece"}},
    {"RecvMissing",
     [](check::RoleFiles& r) { return RemoveFirst(Trainer(r), "recv"); },
     {"E-check-not-fetched"}},
    {"StartRecvMissing",
     [](check::RoleFiles& r) { return RemoveFirst(r.trainer_startups.back().program, "recv"); },
     {"E-check-start-recv"}},
    {"SendOfAnotherType",
     [](check::RoleFiles& r) {
       const Op op = OpOf(Trainer(r), *FindOp(Trainer(r), 0, "send"));
       ChangeVar(Trainer(r), op.InputName("X"), [](Var& var) { var.type->dtype = DType::kFp64; });
       return true;
     },
     {"E-check-message-type"}},
    {"SendBeforeItIsComputed",
     [](check::RoleFiles& r) {
       const auto at = FindOp(Trainer(r), 0, "send");
       MoveBefore(Trainer(r), *at, {0, Trainer(r).main().ops().front().id});
       return true;
     },
     {"E-check-order"}},
};

// How variables are sliced.
const std::vector<Damage> kSlices = {
    {"SectionOffByOne",
     [](check::RoleFiles& r) { return ChangeSections(r, [](Longs& rows) { --rows.back(); }); },
     {"E-check-sections"}},
    {"SectionsOverlap",
     [](check::RoleFiles& r) { return ChangeSections(r, [](Longs& rows) { rows.back() += 3; }); },
     {"E-check-sections"}},
    {"SectionsMoved",
     [](check::RoleFiles& r) {
       return ChangeSections(r, [](Longs& rows) {
         ++rows.front();
         --rows.back();
       });
     },
     {"E-check-sections"}},
    {"SlicesOverlap",
     [](check::RoleFiles& r) { return ResizeSlice(r, 1); },
     {"E-check-tiling", "E-check-table-rows"}},
    {"SlicesWithAGap",
     [](check::RoleFiles& r) { return ResizeSlice(r, -1); },
     {"E-check-tiling", "E-check-table-rows"}},
    {"ConcatOrderSwapped",
     [](check::RoleFiles& r) {
       const auto at = FindJoin(Trainer(r));
       if (!at) return false;
       Change(Trainer(r), *at, [](Op& op) {
         const Strings pieces(op.Input("X"));
         op.AddInput("X", Strings(pieces.rbegin(), pieces.rend()));
       });
       return true;
     },
     {"E-check-join"}},
    {"ConcatMissing",
     [](check::RoleFiles& r) {
       const auto at = FindJoin(Trainer(r));
       if (at) Remove(Trainer(r), *at);
       return at.has_value();
     },
     {"E-check-join"}},
    {"ConcatAlongColumns",
     [](check::RoleFiles& r) {
       const auto at = FindJoin(Trainer(r));
       if (at) Change(Trainer(r), *at, [](Op& op) { op.Set("axis", 1); });
       return at.has_value();
     },
     {"E-check-join"}},
    {"SlicesReceivedInAnotherOrder",
     [](check::RoleFiles& r) {
       const auto at = FindRecv(Trainer(r), 2);
       if (!at) return false;
       const auto turn = [](Op& op) {
         const Strings pieces(op.Output("Out"));
         const Strings servers = *op.Get<Strings>("epmap");
         op.AddOutput("Out", Strings(pieces.rbegin(), pieces.rend()));
         op.Set("epmap", Strings(servers.rbegin(), servers.rend()));
       };
       Change(Trainer(r), *at, turn);
       Change(Trainer(r), *FindJoin(Trainer(r)), [](Op& op) {
         const Strings pieces(op.Input("X"));
         op.AddInput("X", Strings(pieces.rbegin(), pieces.rend()));
       });
       return true;
     },
     {"E-check-slice-order", "E-check-join"}},
};

// Steps and their ends.
const std::vector<Damage> kBarriers = {
    {"SendBarrierMissing",
     [](check::RoleFiles& r) { return RemoveFirst(Trainer(r), "send_barrier"); },
     {"E-check-barrier-missing"}},
    {"FetchBarrierMissing",
     [](check::RoleFiles& r) { return RemoveFirst(Trainer(r), "fetch_barrier"); },
     {"E-check-barrier-missing"}},
    {"StartFetchBarrierMissing",
     [](check::RoleFiles& r) { return RemoveFirst(r.trainer_startups.back().program, "fetch_barrier"); },
     {"E-check-barrier-missing"}},
    {"BarrierBeforeASend",
     [](check::RoleFiles& r) {
       const auto at = FindOp(Trainer(r), 0, "send_barrier");
       if (at) MoveBefore(Trainer(r), *at, *FindOp(Trainer(r), 0, "send"));
       return at.has_value();
     },
     {"E-check-barrier-order"}},
    {"BarrierMissesAServer",
     [](check::RoleFiles& r) {
       return r.pservers.size() > 1 && ChangeFirst(Trainer(r), "send_barrier", [&](Op& op) {
                op.Set("endpoints", Strings{AddressOf(r, 0)});
              });
     },
     {"E-check-barrier-endpoints"}},
    {"RecvBeforeTheBarrier",
     [](check::RoleFiles& r) {
       const auto end = FindOp(Trainer(r), 0, "send_barrier");
       if (end) MoveBefore(Trainer(r), *FindOp(Trainer(r), 0, "recv"), *end);
       return end.has_value();
     },
     {"E-check-deadlock"}},
    {"ACyclicWaitOfTwoTrainers",
     [](check::RoleFiles& r) {
       // Each trainer ends its step at one pserver and waits there for the other trainer, which uses the
       // reverse order.
       if (r.pservers.size() < 2 || r.trainers.size() < 2) return false;
       for (std::size_t t = 0; t < 2; ++t) {
         Program& program = r.trainers[t].program;
         const auto end = FindOp(program, 0, "send_barrier");
         if (!end) return false;
         Strings servers = *OpOf(program, *end).Get<Strings>("endpoints");
         const std::string late = servers[t];
         servers.erase(servers.begin() + static_cast<std::ptrdiff_t>(t));
         Change(program, *end, [&](Op& op) { op.Set("endpoints", servers); });
         Op second = OpOf(program, *end);
         second.Set("endpoints", Strings{late});
         const auto recv = FindIf(program, [&](const Op& op) {
           const auto* map = op.Get<Strings>("epmap");
           return op.type() == "recv" && map != nullptr &&
                  std::find(map->begin(), map->end(), late) == map->end();
         });
         if (!recv) return false;
         Block& block = program.MutableBlock(0);
         Op first = OpOf(program, *recv);
         block.Remove(recv->id);
         const int at = block.PositionOf(end->id);
         block.Insert(at + 1, std::move(second));
         block.Insert(at + 1, std::move(first));
       }
       return true;
     },
     {"E-check-deadlock"}},
    {"WrongFanin",
     [](check::RoleFiles& r) {
       return ChangeFirst(Pserver(r), "listen_and_serv", [](Op& op) { op.Set("Fanin", 3); });
     },
     {"E-check-trainers", "E-check-merge"}},
    {"WrongFaninEverywhere",
     [](check::RoleFiles& r) {
       for (check::RoleProgram& file : r.pservers)
         ChangeFirst(file.program, "listen_and_serv", [](Op& op) { op.Set("Fanin", 1); });
       return true;
     },
     {"E-check-merge", "E-check-trainer-id"}},
    {"AnotherMode",
     [](check::RoleFiles& r) {
       return ChangeFirst(Pserver(r), "listen_and_serv", [](Op& op) { op.Set("distributed_mode", 2); });
     },
     {"E-check-mode"}},
    {"TwoServersAtOneAddress",
     [](check::RoleFiles& r) {
       return r.pservers.size() > 1 && ChangeFirst(Pserver(r), "listen_and_serv",
                                                   [&](Op& op) { op.Set("endpoint", AddressOf(r, 1)); });
     },
     {"E-check-address-twice"}},
    {"TwoTrainersOfOneNumber",
     [](check::RoleFiles& r) {
       if (r.trainers.size() < 2) return false;
       r.trainers[1] = r.trainers[0];
       r.trainer_startups[1] = r.trainer_startups[0];
       return true;
     },
     {"E-check-trainer-id"}},
};

std::vector<Damage> JoinedInTrainers() {
  std::vector<Damage> all;
  for (const auto* list : {&kMessages, &kSlices, &kBarriers})
    all.insert(all.end(), list->begin(), list->end());
  return all;
}

}  // namespace

const std::vector<Damage>& TrainerDamages() {
  static const std::vector<Damage> all = JoinedInTrainers();
  return all;
}

}  // namespace penstock::test
