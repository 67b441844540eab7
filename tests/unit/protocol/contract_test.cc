#include "executor/protocol/contract.h"

#include <gtest/gtest.h>

#include "framework/ir/edit.h"
#include "framework/ir/program.h"
#include "operators/all_ops.h"
#include "tests/sim/sim_ops.h"
#include "tests/sim/toy_job.h"
#include "tests/support/corpus.h"
#include "tests/support/run_program.h"

namespace penstock::test {
namespace {

const Op& ServeOf(const Program& program) { return *program.main().ops().back().op; }

ToyJob Job() {
  ToyJob job;
  job.servers = {"a:1", "b:1"};
  job.params = {{.name = "w", .shape = {6, 4}, .server = 0, .optimizer = "adam", .decay = true},
                {.name = "b", .shape = {3}, .server = 1, .optimizer = "sgd"},
                {.name = "frozen", .shape = {5}, .server = 1, .start = true}};
  return job;
}

// Replaces each op of block 0 or block 1 by the result of `change`.
Program Changed(const Program& program, int block, const std::function<void(Op&)>& change) {
  ProgramEdit edit(program);
  for (const OpEntry& entry : program.block(block).ops()) {
    Op op = *entry.op;
    change(op);
    edit.block(block).Replace(entry.id, std::move(op));
  }
  return edit.Apply().value();
}

TEST(Contract, ServerAndTrainerDeriveTheSame) {
  const ToyJob job = Job();
  for (int server = 0; server < 2; ++server) {
    const Program program = job.Pserver(server);
    const Result<roles::PserverFacts> facts = protocol::ReadServer(SimOps(), program, ServeOf(program));
    ASSERT_TRUE(facts.ok()) << facts.status().ToString();
    for (int t = 0; t < 2; ++t) {
      const Result<protocol::TrainerContracts> trainer = protocol::ReadTrainer(job.Trainer(t));
      ASSERT_TRUE(trainer.ok()) << trainer.status().ToString();
      EXPECT_EQ(trainer->trainer_id, t);
      const protocol::Contract& theirs = trainer->contracts.at(job.servers[static_cast<std::size_t>(server)]);
      EXPECT_EQ(protocol::ContractOf(*facts, t).ToText(), theirs.ToText());
      EXPECT_EQ(protocol::ContractOf(*facts, t).Hash(), theirs.Hash());
      const Result<protocol::TrainerContracts> startup = protocol::ReadTrainer(job.TrainerStartup(t));
      EXPECT_EQ(startup->contracts.at(facts->address).Hash(), theirs.Startup().Hash());
    }
  }
}

TEST(Contract, AStartValueIsSentByTrainer0AndPulledByAll) {
  const Program program = Job().Pserver(1);
  const roles::PserverFacts facts = protocol::ReadServer(SimOps(), program, ServeOf(program)).value();
  EXPECT_EQ(protocol::ContractOf(facts, 0).Startup().ToText(),
            "param b : f32[3]\nparam frozen : f32[5]\nstart frozen : f32[5]\n");
  EXPECT_EQ(protocol::ContractOf(facts, 1).Startup().ToText(), "param b : f32[3]\nparam frozen : f32[5]\n");
  EXPECT_TRUE(protocol::ContractOf(facts, 0).Starts("frozen"));
  EXPECT_FALSE(protocol::ContractOf(facts, 0).Starts("b"));
  EXPECT_EQ(protocol::ContractOf(facts, 0).grads.size(), 1u);
}

// Fluid's own programs: a table of 2000 rows, of which each of two servers declares 1000.
TEST(Contract, ShardedTableRowsAreRequestedByName) {
  const std::string folder = CorpusOrSelection() + "/open/cases/word2vec_dist.sgd@tbl_sync_p2t2/";
  const Program pserver = ProgramOf(folder + "pserver_1.pb"), trainer = ProgramOf(folder + "trainer.pb");
  const Result<roles::PserverFacts> facts = protocol::ReadServer(AllOps(), pserver, ServeOf(pserver));
  ASSERT_TRUE(facts.ok()) << facts.status().ToString();
  const protocol::Contract contract = protocol::ContractOf(*facts, 0);
  const std::string text = contract.ToText();
  EXPECT_NE(text.find("table prefetch_compress_in_tmp_1 : f32[?, 32]\n"), std::string::npos) << text;
  EXPECT_NE(text.find("grad shared_w@GRAD.trainer_0.pserver_1 : rows<f32[2000, 32]>\n"), std::string::npos)
      << text;
  EXPECT_EQ(contract.FindParam("shared_w"), -1) << "nobody receives the whole";
  const Result<protocol::TrainerContracts> theirs = protocol::ReadTrainer(trainer);
  ASSERT_TRUE(theirs.ok()) << theirs.status().ToString();
  EXPECT_EQ(theirs->contracts.at(facts->address).ToText(), text);
}

TEST(Contract, ALookupThatNoBlockCanAnswerIsRefused) {
  const std::string folder = CorpusOrSelection() + "/open/cases/word2vec_dist.sgd@tbl_sync_p2t2/";
  const Program program = ProgramOf(folder + "pserver_1.pb");
  const auto refused = [&](const std::string& entry) {
    const Program changed = Changed(program, 0, [&](Op& op) {
      op.Set("prefetch_var_name_to_block_id", std::vector<std::string>{entry});
    });
    return protocol::ReadServer(AllOps(), changed, ServeOf(changed)).status().id();
  };
  EXPECT_EQ(refused("prefetch_compress_in_tmp_1:99"), "E-server-block");
  EXPECT_EQ(refused("prefetch_compress_in_tmp_1"), "E-server-block");
  EXPECT_EQ(refused("prefetch_compress_in_tmp_1:-1"), "E-server-block");
  EXPECT_EQ(refused("prefetch_compress_in_tmp_1:1"), "E-server-lookup") << "block 1 updates something";
  EXPECT_EQ(refused("another:4"), "E-server-lookup");
}

TEST(Contract, APserverWithoutParametersServesNothing) {
  ToyJob job = Job();
  job.servers.push_back("c:1");
  Program program = job.Pserver(2);
  const int empty = program.AddBlock(0).index();
  program = Changed(program, 0, [&](Op& op) { op.Set("optimize_blocks", std::vector<BlockRef>{{empty}}); });
  const Result<roles::PserverFacts> facts = protocol::ReadServer(SimOps(), program, ServeOf(program));
  ASSERT_TRUE(facts.ok()) << facts.status().ToString();
  EXPECT_TRUE(facts->params.empty());
  EXPECT_EQ(protocol::ContractOf(*facts, 0).ToText(), "");
}

TEST(Contract, AnUnsupportedPolicyIsRefused) {
  Program program = Job().Trainer(0);
  program.mutable_meta().policies["bn_sync"] = "average";
  EXPECT_EQ(protocol::ReadTrainer(program).status().id(), "E-contract-policy");
  program.mutable_meta().policies["bn_sync"] = "none";
  EXPECT_TRUE(protocol::ReadTrainer(program).ok());
  program.mutable_meta().policies = {{"staleness", "0"}};
  EXPECT_EQ(protocol::ReadTrainer(program).status().id(), "E-contract-policy");
}

// A gradient is received, but no update reads the results computed from it.
TEST(Contract, MeasuringAGradientThatUpdatesNothingIsRefused) {
  Program program = Job().Pserver(0);
  const OpId update = program.block(1).ops().back().id;
  program.MutableBlock(1).Remove(update);
  program = Changed(program, 1, [](Op& op) { op.SetRole(OpRole::kOptimize); });
  const Status status = protocol::ReadServer(SimOps(), program, ServeOf(program)).status();
  EXPECT_EQ(status.id(), "E-server-measures") << status.ToString();
}

TEST(Contract, ServerExchangeIsReadFromThePrograms) {
  ToyJob job = Job();
  for (ToyParam& param : job.params) param.clipped = !param.start;
  const Program program = job.Pserver(0);
  const Result<roles::PserverFacts> role = protocol::ReadServer(SimOps(), program, ServeOf(program));
  ASSERT_TRUE(role.ok()) << role.status().ToString();
  EXPECT_EQ(role->exchange.self, 0);
  EXPECT_EQ(role->exchange.servers, job.servers);
  EXPECT_EQ(role->exchange.values.size(), 2u);
  for (const roles::ServedParam& served : role->params) {
    EXPECT_TRUE(served.clips) << served.param.name;
    EXPECT_GT(served.measure_block, 0) << served.param.name;
  }
  const auto refused = [&](const std::function<void(Op&)>& change) {
    const Program changed = Changed(program, role->shared_block, change);
    return protocol::ReadServer(SimOps(), changed, ServeOf(changed)).status().id();
  };
  const auto of_exchange = [](Op& op, const char* attr, std::vector<std::string> value) {
    if (op.type() == "exchange_sums") op.Set(attr, std::move(value));
  };
  EXPECT_EQ(refused([&](Op& op) { of_exchange(op, "endpoints", {"x:1", "y:1"}); }), "E-server-exchange");
  EXPECT_EQ(refused([&](Op& op) { of_exchange(op, "epmap", {"x:1"}); }), "E-server-exchange");
}

TEST(Contract, TwoProgramsShareOneContract) {
  const protocol::ContractPiece w = {"w", DType::kFp32, {6, 4}}, frozen = {"frozen", DType::kFp32, {5}};
  const protocol::Contract startup = {.params = {frozen, w}, .starts = {frozen}, .grads = {}};
  const protocol::Contract main = {.params = {w}, .starts = {}, .grads = {{"w@GRAD", DType::kFp32, {6, 4}}}};
  const Result<protocol::Contract> joined = protocol::Join(startup, main, "a:1");
  ASSERT_TRUE(joined.ok()) << joined.status().ToString();
  EXPECT_EQ(joined->ToText(),
            "param frozen : f32[5]\nparam w : f32[6, 4]\nstart frozen : f32[5]\ngrad w@GRAD : f32[6, 4]\n");
  const Status status =
      protocol::Join(startup, {.params = {{"w", DType::kFp32, {6, 3}}}, .starts = {}, .grads = {}}, "a:1")
          .status();
  EXPECT_EQ(status.id(), "E-plan-mismatch");
  EXPECT_NE(status.ToString().find("w : f32[6, 4]   |   w : f32[6, 3]"), std::string::npos)
      << status.ToString();
}

TEST(Contract, FluidsRoleProgramsAgree) {
  int compared = 0;
  for (const char* name :
       {"wide_linear.adam@sync_p2t2", "lenet.momentum@sync_p2t2", "fit_a_line.sgd@sync_p2t2"}) {
    const std::string folder = StrCat(CorpusOrSelection(), "/open/cases/", name, "/");
    for (int server = 0; server < 2; ++server) {
      const Program program = ProgramOf(StrCat(folder, "pserver_", server, ".pb"));
      const Result<roles::PserverFacts> facts =
          protocol::ReadServer(AllOps(), program, *program.main().ops().front().op);
      ASSERT_TRUE(facts.ok()) << name << ": " << facts.status().ToString();
      for (int t = 0; t < 2; ++t) {
        const Program trainer = ProgramOf(StrCat(folder, t == 0 ? "trainer.pb" : "trainer_t1.pb"));
        EXPECT_EQ(protocol::ContractOf(*facts, t).ToText(),
                  protocol::ReadTrainer(trainer)->contracts.at(facts->address).ToText())
            << name;
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, 12);
}

TEST(Contract, TheFirstDifferenceIsShown) {
  EXPECT_EQ(protocol::FirstDifference("a\nb\n", "a\nc\n"), "line 2:  b   |   c");
  EXPECT_EQ(protocol::FirstDifference("a\n", "a\nc\n"), "line 2:  (nothing)   |   c");
  EXPECT_EQ(protocol::FirstDifference("a\n", "a\n"), "");
}

std::string ServerError(const Program& program) {
  return protocol::ReadServer(SimOps(), program, ServeOf(program)).status().id();
}

TEST(Contract, ProgramsThatCannotBeServedAreRefused) {
  const Program good = Job().Pserver(0);
  EXPECT_EQ(ServerError(Changed(good, 0, [](Op& op) { op.Set("distributed_mode", std::int32_t{4}); })),
            "E-server-mode");
  EXPECT_EQ(ServerError(Changed(good, 0, [](Op& op) { op.Set("distributed_mode", std::int32_t{-1}); })),
            "E-server-mode");
  EXPECT_EQ(ServerError(Changed(good, 0, [](Op& op) { op.Set("distributed_mode", std::int32_t{1}); })),
            "E-server-merge")
      << "it adds up what asynchronous trainers send at different times";
  EXPECT_EQ(ServerError(Changed(good, 0, [](Op& op) { op.Set("Fanin", std::int32_t{3}); })),
            "E-server-merge");
  EXPECT_EQ(ServerError(Changed(good, 0, [](Op& op) { op.Set("Fanin", std::int32_t{0}); })),
            "E-server-trainers");
  EXPECT_EQ(ServerError(Changed(good, 0, [](Op& op) { op.AddInput("X", {}); })), "E-server-merge");
  EXPECT_EQ(
      ServerError(Changed(good, 0, [](Op& op) { op.Set("optimize_blocks", std::vector<BlockRef>{{9}}); })),
      "E-server-block");
  EXPECT_EQ(ServerError(Changed(good, 0,
                                [](Op& op) {
                                  op.Set("optimize_blocks", std::vector<BlockRef>{{1}, {1}});
                                })),
            "E-server-merge");
  EXPECT_EQ(
      ServerError(Changed(good, 0, [](Op& op) { op.Set("start_values", std::vector<std::string>{"w"}); })),
      "E-server-twice");
  EXPECT_EQ(ServerError(
                Changed(good, 0, [](Op& op) { op.Set("start_values", std::vector<std::string>{"nobody"}); })),
            "E-contract-var");
  EXPECT_EQ(ServerError(Changed(good, 1,
                                [](Op& op) {
                                  if (op.type() == "adam") op.SetType("no_such_op");
                                })),
            "E-op-unknown");
}

// Only dense f32 gradients are compressed, in the same way by all trainers; both sides derive the same.
TEST(Contract, OnlyGradientsAreCompressed) {
  ToyJob job = Job();
  const ToyParam& dense = job.params[0];
  job.params[0].compression = {.kind = Compression::Kind::kTwoBit, .threshold = 0.25f};
  const Program server = job.Pserver(dense.server);
  const auto facts = protocol::ReadServer(SimOps(), server, ServeOf(server));
  ASSERT_TRUE(facts.ok()) << facts.status().ToString();
  const std::string text = protocol::ContractOf(*facts, 0).ToText();
  EXPECT_NE(text.find("as two_bit 0.25"), std::string::npos) << text;
  const std::string& address = job.servers[static_cast<std::size_t>(dense.server)];
  EXPECT_EQ(protocol::ReadTrainer(job.Trainer(0)).value().contracts.at(address).ToText(), text);
  Program other = server;
  JobPolicies policies;
  policies.compression.by_name[job.GradName(dense, 0)] = {.kind = Compression::Kind::kFp16};
  WritePolicies(policies, other.mutable_meta());
  EXPECT_EQ(ServerError(other), "E-server-compression") << "trainer 1's is not compressed";
  job.params.push_back(
      {.name = "table", .shape = {40, 3}, .compression = {.kind = Compression::Kind::kFp16}, .table = true});
  EXPECT_EQ(ServerError(job.Pserver(0)), "E-server-compression");
  EXPECT_EQ(protocol::ReadTrainer(job.Trainer(0)).status().id(), "E-contract-compression");
}

TEST(Contract, BackupTrainersRequireSyncMode) {
  ToyJob job = Job();
  for (const bool async : {false, true}) {
    job.async = async;
    for (Program program : {job.Trainer(0), job.TrainerStartup(0)}) {
      const bool trains = program.main().ops().size() > job.TrainerStartup(0).main().ops().size();
      program.mutable_meta().policies = {{"backup_trainers", "1"}};
      EXPECT_EQ(protocol::ReadTrainer(program).status().id(), trains && async ? "E-contract-policy" : "");
    }
    Program server = job.Pserver(0);
    server.mutable_meta().policies = {{"backup_trainers", "1"}};
    EXPECT_EQ(ServerError(server), async ? "E-contract-policy" : "");
  }
}

TEST(Contract, DelayCompensationKeepsWhatBlocksRead) {
  ToyJob job = Job();
  job.async = true;
  job.delay = 0.5f;
  const Program good = job.Pserver(0);
  EXPECT_EQ(ServerError(good), "");
  EXPECT_EQ(ServerError(Changed(good, 0, [](Op& op) { op.Set("dc_asgd", false); })), "E-server-backups");
  EXPECT_EQ(ServerError(Changed(good, 0, [](Op& op) { op.Set("Fanin", std::int32_t{3}); })),
            "E-server-backups")
      << "there are copies for two trainers";
  job.delay.reset();
  EXPECT_EQ(ServerError(Changed(job.Pserver(0), 0, [](Op& op) { op.Set("dc_asgd", true); })),
            "E-server-backups")
      << "nothing reads what would be kept";
  job.delay = 0.5f;
  job.async = false;
  EXPECT_EQ(ServerError(job.Pserver(0)), "E-server-backups") << "synchronous updates have no trainer";
}

TEST(Contract, ServerAndTrainerDeriveTheSameForTables) {
  ToyJob job = Job();
  job.params.push_back({.name = "emb", .shape = {9, 2}, .server = 0, .optimizer = "sgd", .table = true});
  const Program program = job.Pserver(0);
  const roles::PserverFacts facts = protocol::ReadServer(SimOps(), program, ServeOf(program)).value();
  EXPECT_TRUE(facts.params[0].rows);
  EXPECT_FALSE(facts.params[0].elementwise) << "rows are not cut into chunks";
  const protocol::TrainerContracts trainer = protocol::ReadTrainer(job.Trainer(1)).value();
  EXPECT_EQ(protocol::ContractOf(facts, 1).ToText(), trainer.contracts.at("a:1").ToText());
  const protocol::TrainerContracts startup = protocol::ReadTrainer(job.TrainerStartup(1)).value();
  EXPECT_EQ(protocol::ContractOf(facts, 1).Startup().ToText(), startup.contracts.at("a:1").ToText());
  const protocol::Contract joined =
      penstock::protocol::Join(startup.contracts.at("a:1"), trainer.contracts.at("a:1"), "a:1").value();
  EXPECT_EQ(joined.ToText(), trainer.contracts.at("a:1").ToText());
}

TEST(Contract, ALookupWhoseSlicesDoNotMatchIsAnError) {
  ToyJob job = Job();
  job.params.push_back({.name = "emb", .shape = {9, 2}, .server = 0, .optimizer = "sgd", .table = true});
  const auto of = [&](const std::vector<std::int64_t>& sections) {
    return protocol::ReadTrainer(Changed(job.Trainer(0), 0,
                                         [&](Op& op) {
                                           if (op.type() == "distributed_lookup_table")
                                             op.Set("height_sections", sections);
                                         }))
        .status();
  };
  EXPECT_EQ(of({4, 5}).message(), "distributed_lookup_table names 1 slices, 2 heights and 1 addresses");
  EXPECT_EQ(of({0}).message(), "distributed_lookup_table: slice emb has 0 rows");
}

TEST(Contract, AMergeOfRowsAndATensorIsAnError) {
  ToyJob job = Job();
  job.params.push_back({.name = "emb", .shape = {9, 2}, .server = 0, .optimizer = "sgd", .table = true});
  Program program = job.Pserver(0);
  Var dense = *program.FindVar(0, job.GradName(job.params.back(), 1));
  dense.kind = VarKind::kTensor;
  program.MutableBlock(0).SetVar(dense);
  EXPECT_EQ(protocol::ReadServer(SimOps(), program, ServeOf(program)).status().message(),
            "block 2 merges gradient of emb by 0 and gradient of emb by 1, of which one is selected rows");
}

}  // namespace
}  // namespace penstock::test
