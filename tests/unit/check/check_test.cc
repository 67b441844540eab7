// check finds damage: each case breaks one thing in a correct set and names the finding it must give.
#include "transpiler/check/check.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "framework/ir/edit.h"
#include "framework/ir/wire.h"
#include "tests/support/corpus.h"

namespace penstock {
namespace {

constexpr char kCase[] = "/open/cases/wide_linear.sgd@sync_p2t2/";

Program Load(const std::string& name) {
  Result<Program> program = ParseProgram(test::BytesOf(test::CorpusOrSelection() + kCase + name));
  EXPECT_TRUE(program.ok()) << name << ": " << program.status().ToString();
  return *std::move(program);
}

RoleFiles Correct() {
  RoleFiles roles;
  for (const char* name : {"trainer.pb", "trainer_t1.pb"}) roles.trainers.push_back({name, Load(name)});
  for (const char* name : {"trainer_startup.pb", "trainer_startup_t1.pb"}) {
    roles.trainer_startups.push_back({name, Load(name)});
  }
  for (const char* name : {"pserver_0.pb", "pserver_1.pb"}) roles.pservers.push_back({name, Load(name)});
  for (const char* name : {"pserver_startup_0.pb", "pserver_startup_1.pb"}) {
    roles.pserver_startups.push_back({name, Load(name)});
  }
  return roles;
}

const OpRegistry& NoOps() {
  static const OpRegistry ops;  // optimizers are recognised by Fluid's slots then
  return ops;
}

// The n-th op of a type in a block.
OpId Find(const Program& program, int block, const std::string& type, int n = 0) {
  for (const OpEntry& entry : program.block(block).ops()) {
    if (entry.op->type() == type && n-- == 0) return entry.id;
  }
  ADD_FAILURE() << "no " << type;
  return OpId::kNone;
}

void Remove(Program& program, int block, const std::string& type, int n = 0) {
  const OpId id = Find(program, block, type, n);
  program.MutableBlock(block).Remove(id);
}

void Change(Program& program, int block, const std::string& type, int n,
            const std::function<void(Op&)>& change) {
  const OpId id = Find(program, block, type, n);
  Op op = *program.block(block).FindOp(id);
  change(op);
  program.MutableBlock(block).Replace(id, std::move(op));
}

void Move(Program& program, const std::string& type, int n, const std::string& before) {
  const OpId id = Find(program, 0, type, n);
  Op op = *program.main().FindOp(id);
  Block& main = program.MutableBlock(0);
  main.Remove(id);
  main.Insert(main.PositionOf(Find(program, 0, before)), std::move(op));
}

TEST(CheckTest, ACorrectSetHasNoFindings) {
  const CheckReport report = CheckRoles(Correct(), NoOps());
  EXPECT_TRUE(report.findings.empty()) << report.ToString();
}

TEST(CheckTest, AnAbsentTrainerIsTakenToBeLikeTheOthersWithANote) {
  RoleFiles roles = Correct();
  roles.trainers.pop_back();
  roles.trainer_startups.pop_back();
  const CheckReport report = CheckRoles(roles, NoOps());
  EXPECT_EQ(report.errors(), 0) << report.ToString();
  EXPECT_EQ(report.Count(Severity::kNote), 1);
}

struct Damage {
  std::string name;
  std::function<void(RoleFiles&)> make;
  std::string id;
};

class DamageTest : public testing::TestWithParam<Damage> {};

TEST_P(DamageTest, IsFoundAndNamed) {
  RoleFiles roles = Correct();
  GetParam().make(roles);
  const CheckReport report = CheckRoles(roles, NoOps());
  const bool found = std::any_of(report.findings.begin(), report.findings.end(), [](const Finding& finding) {
    return finding.id == GetParam().id && finding.severity == Severity::kError;
  });
  EXPECT_TRUE(found) << GetParam().id << " expected, got:\n" << report.ToString();
}

using Strings = std::vector<std::string>;
// Slice 0 of fc_w is on pserver 1, slice 1 on pserver 0; op 3 of each kind is fc_w's.
constexpr int kSliced = 3;

void SetEndpoints(Op& op, const char* attr, Strings value) { op.Set(attr, std::move(value)); }

const std::vector<Damage> kDamages = {
    {"SendRemoved", [](RoleFiles& r) { Remove(r.trainers[1].program, 0, "send", 0); }, "E-check-not-sent"},
    {"SendDoubled",
     [](RoleFiles& r) {
       Program& p = r.trainers[0].program;
       const OpId id = Find(p, 0, "send", 0);
       Op op = *p.main().FindOp(id);
       p.MutableBlock(0).Insert(p.main().PositionOf(id), std::move(op));
     },
     "E-check-sent-twice"},
    {"WrongServer",
     [](RoleFiles& r) {
       Change(r.trainers[0].program, 0, "send", 0,
              [](Op& op) { SetEndpoints(op, "epmap", {"127.0.0.1:6175"}); });
     },
     "E-check-not-received"},
    {"UnknownServer",
     [](RoleFiles& r) {
       Change(r.trainers[0].program, 0, "send", 0,
              [](Op& op) { SetEndpoints(op, "epmap", {"127.0.0.1:9999"}); });
     },
     "E-check-address"},
    {"SectionOffByOne",
     [](RoleFiles& r) {
       Change(r.trainers[0].program, 0, "split_byref", 0, [](Op& op) {
         op.Set("sections", std::vector<std::int32_t>{500, 499});
       });
     },
     "E-check-sections"},
    {"SlicesOverlap",
     [](RoleFiles& r) {
       for (const char* piece : {"fc_w.block1"}) {
         Var var = *r.trainers[0].program.main().FindVar(piece);
         var.type->shape = {501, 1000};
         r.trainers[0].program.MutableBlock(0).SetVar(var);
         r.pservers[0].program.MutableBlock(0).SetVar(var);
       }
     },
     "E-check-tiling"},
    {"ReceivesAnOldName",
     [](RoleFiles& r) {
       Change(r.trainers[0].program, 0, "recv", 0,
              [](Op& op) { op.Set("varnames", Strings{"fc_1.b_0.old"}); });
     },
     "E-check-unknown-piece"},
    {"RecvMissing", [](RoleFiles& r) { Remove(r.trainers[0].program, 0, "recv", 1); }, "E-check-not-fetched"},
    {"SendBarrierMissing", [](RoleFiles& r) { Remove(r.trainers[1].program, 0, "send_barrier"); },
     "E-check-barrier-missing"},
    {"FetchBarrierMissing", [](RoleFiles& r) { Remove(r.trainers[1].program, 0, "fetch_barrier"); },
     "E-check-barrier-missing"},
    {"BarrierBeforeASend", [](RoleFiles& r) { Move(r.trainers[0].program, "send_barrier", 0, "send"); },
     "E-check-barrier-order"},
    {"RecvBeforeTheBarrier", [](RoleFiles& r) { Move(r.trainers[0].program, "recv", 0, "send_barrier"); },
     "E-check-barrier-order"},
    {"BarrierMissesAServer",
     [](RoleFiles& r) {
       Change(r.trainers[0].program, 0, "send_barrier", 0,
              [](Op& op) { SetEndpoints(op, "endpoints", {"127.0.0.1:6174"}); });
     },
     "E-check-barrier-endpoints"},
    {"ConcatOrderSwapped",
     [](RoleFiles& r) {
       Change(r.trainers[0].program, 0, "concat", 0, [](Op& op) {
         op.AddInput("X", {"fc_w.block1", "fc_w.block0"});
       });
     },
     "E-check-join"},
    {"ConcatMissing", [](RoleFiles& r) { Remove(r.trainers[0].program, 0, "concat"); }, "E-check-join"},
    {"SlicesReceivedInAnotherOrder",
     [](RoleFiles& r) {
       Change(r.trainers[0].program, 0, "recv", kSliced, [](Op& op) {
         op.AddOutput("Out", {"fc_w.block1", "fc_w.block0"});
         op.Set("epmap", Strings{"127.0.0.1:6174", "127.0.0.1:6175"});
       });
     },
     "E-check-slice-order"},
    {"StartValueOfASliceMissing",
     [](RoleFiles& r) { Remove(r.pserver_startups[0].program, 0, "uniform_random"); }, "E-check-no-start"},
    {"StartValueOfTheWholeForASlice",
     [](RoleFiles& r) {
       Change(r.pserver_startups[0].program, 0, "uniform_random", 0, [](Op& op) {
         op.Set("shape", std::vector<std::int64_t>{1000, 1000});
       });
     },
     "E-check-start-shape"},
    {"StartRecvMissing", [](RoleFiles& r) { Remove(r.trainer_startups[0].program, 0, "recv", 2); },
     "E-check-start-recv"},
    {"MergeInputMissing",
     [](RoleFiles& r) {
       Change(r.pservers[0].program, 1, "sum", 0, [](Op& op) { op.AddInput("X", {op.InputName("X")}); });
     },
     "E-check-merge"},
    {"MergeScaleWrong",
     [](RoleFiles& r) {
       Change(r.pservers[0].program, 1, "scale", 0, [](Op& op) { op.Set("scale", 1.0f); });
     },
     "E-check-merge-scale"},
    {"MergeScaleMissing", [](RoleFiles& r) { Remove(r.pservers[0].program, 2, "scale"); },
     "E-check-merge-scale"},
    {"OptimizerOnTheWrongSlice",
     [](RoleFiles& r) {
       Change(r.pservers[0].program, 2, "sgd", 0, [](Op& op) {
         op.AddInput("Param", {"fc_1.b_0"});
         op.AddOutput("ParamOut", {"fc_1.b_0"});
       });
     },
     "E-check-updated-twice"},
    {"OptimizerMissing", [](RoleFiles& r) { Remove(r.pservers[1].program, 1, "sgd"); }, "E-check-no-update"},
    {"GradientFromNowhere",
     [](RoleFiles& r) {
       Change(r.pservers[1].program, 1, "sgd", 0, [](Op& op) { op.AddInput("Grad", {"nothing@GRAD"}); });
     },
     "E-check-grad-source"},
    {"GradientOfAnotherShape",
     [](RoleFiles& r) {
       Var var = *r.trainers[0].program.main().FindVar("fc_b@GRAD.trainer_0");
       var.type->shape = {999};
       r.trainers[0].program.MutableBlock(0).SetVar(var);
     },
     "E-check-message-type"},
    {"GradientOfAnotherType",
     [](RoleFiles& r) {
       Var var = *r.trainers[0].program.main().FindVar("fc_b@GRAD.trainer_0");
       var.type->dtype = DType::kFp64;
       r.trainers[0].program.MutableBlock(0).SetVar(var);
     },
     "E-check-message-type"},
    {"GradientNeitherSentNorUsed",
     [](RoleFiles& r) {
       for (RoleProgram& trainer : r.trainers) Remove(trainer.program, 0, "send", 0);
     },
     "E-check-untrained"},
    {"TwoTrainersOfOneNumber",
     [](RoleFiles& r) {
       Change(r.trainers[1].program, 0, "send_barrier", 0, [](Op& op) { op.Set("trainer_id", 0); });
     },
     "E-check-trainer-id"},
    {"AnotherNumberOfTrainers",
     [](RoleFiles& r) {
       Change(r.pservers[1].program, 0, "listen_and_serv", 0, [](Op& op) { op.Set("Fanin", 3); });
     },
     "E-check-trainers"},
    {"TwoServersAtOneAddress",
     [](RoleFiles& r) {
       Change(r.pservers[1].program, 0, "listen_and_serv", 0,
              [](Op& op) { op.Set("endpoint", "127.0.0.1:6174"); });
     },
     "E-check-address-twice"},
    {"AServerOfAnotherMode",
     [](RoleFiles& r) {
       Change(r.pservers[1].program, 0, "listen_and_serv", 0, [](Op& op) { op.Set("distributed_mode", 2); });
     },
     "E-check-mode"},
    {"AnOptimizeBlockThatIsNotThere",
     [](RoleFiles& r) {
       Change(r.pservers[1].program, 0, "listen_and_serv", 0, [](Op& op) {
         op.Set("optimize_blocks", std::vector<BlockRef>{{1}, {9}});
       });
     },
     "E-check-block"},
    {"NoServer", [](RoleFiles& r) { Remove(r.pservers[1].program, 0, "listen_and_serv"); },
     "E-check-no-server"},
};

INSTANTIATE_TEST_SUITE_P(Each, DamageTest, testing::ValuesIn(kDamages),
                         [](const testing::TestParamInfo<Damage>& info) { return info.param.name; });

}  // namespace
}  // namespace penstock
