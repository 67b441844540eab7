// `penstock transpile` from a user's view: the files that it writes, and its errors for bad input.
#include <filesystem>
#include <set>

#include "framework/text/program_file.h"
#include "tests/support/canon.h"
#include "tests/support/command_line.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

class TranspileCommand : public test::CommandLine {
 protected:
  int Transpile(const std::string& arguments) { return Run("transpile" + arguments); }
};

TEST_F(TranspileCommand, WritesTheFilesOfTheCaseAndThePlan) {
  ASSERT_EQ(Transpile(CaseOf("fit_a_line.sgd", "sync_p2t2") + " --out " + dir_ / "roles"), 0) << err_;
  for (const char* file :
       {"trainer.pb", "trainer_startup.pb", "trainer_t1.pb", "trainer_startup_t1.pb", "pserver_0.pb",
        "pserver_1.pb", "pserver_startup_0.pb", "pserver_startup_1.pb", "plan.txt"}) {
    EXPECT_TRUE(fs::exists(dir_ / "roles" + "/" + file)) << file;
  }
  EXPECT_EQ(*ReadFile(dir_ / "roles" + "/plan.txt"),
            "plan {mode=\"sync\", trainers=2, pservers=[\"127.0.0.1:6174\", \"127.0.0.1:6175\"]}\n"
            "param fc_0.b_0 : f32[1] grad=fc_0.b_0@GRAD\n"
            "  rows [0, 1) on pserver 0\n"
            "param fc_0.w_0 : f32[13, 1] grad=fc_0.w_0@GRAD\n"
            "  rows [0, 13) on pserver 1\n");
}

TEST_F(TranspileCommand, WithoutPserversThereAreFilesOfTrainersOnly) {
  ASSERT_EQ(Transpile(CaseOf("fit_a_line.sgd", "coll_allreduce_t2") + " --out " + dir_ / "roles"), 0) << err_;
  std::set<std::string> files;
  for (const auto& entry : fs::directory_iterator(dir_ / "roles")) files.insert(entry.path().filename());
  EXPECT_EQ(files, (std::set<std::string>{"plan.txt", "trainer.pb", "trainer_startup.pb",
                                          "trainer_startup_t1.pb", "trainer_t1.pb"}));
  // Parameters are broadcast in order of creation, which the facts contain.
  EXPECT_EQ(*ReadFile(dir_ / "roles" + "/plan.txt"),
            "plan {mode=\"grad_allreduce\", trainers=2, ranks=[\"127.0.0.1:6174\", \"127.0.0.1:6175\"], "
            "rings=1}\n"
            "broadcast fc_0.w_0 : f32[13, 1] on ring 0\n"
            "broadcast fc_0.b_0 : f32[1] on ring 0\n"
            "reduce fc_0.b_0@GRAD : f32[1] on ring 0\n"
            "reduce fc_0.w_0@GRAD : f32[13, 1] on ring 0\n");
}

TEST_F(TranspileCommand, CompatWritesFluidsProgramsWithoutExtraFields) {
  ASSERT_EQ(Transpile(CaseOf("fit_a_line.sgd", "sync_p2t2") + " --compat fluid-1.8 --out " + dir_ / "roles"),
            0)
      << err_;
  const Result<Program> ours = ReadProgramFile(dir_ / "roles" + "/pserver_1.pb");
  const Result<Program> fluids = ReadProgramFile(
      test::Existing(test::CorpusOrSelection() + "/open/cases/fit_a_line.sgd@sync_p2t2/pserver_1.pb"));
  ASSERT_TRUE(ours.ok() && fluids.ok());
  EXPECT_EQ(test::FirstDifference(test::Canon(*fluids), test::Canon(*ours)), "");
  EXPECT_EQ(ours->meta().plan, "");
}

TEST_F(TranspileCommand, StepsAreWrittenAfterEachPass) {
  ASSERT_EQ(Transpile(CaseOf("fit_a_line.sgd", "async_p2t2") + " --out " + dir_ / "roles" + " --steps " +
                      dir_ / "s"),
            0)
      << err_;
  for (const char* file : {"trainer_0/00_source.ir", "trainer_0/03_send_gradients.ir",
                           "trainer_1/10_drop_optimizers.ir", "trainer_startup_1/05_fake_init_tables.ir",
                           "pserver_1/05_serve_gradients.ir", "pserver_startup_0/02_init_step_counters.ir"}) {
    EXPECT_TRUE(ReadProgramFile(StrCat(dir_ / "s", "/", file)).ok()) << file;
  }
  const Result<Program> last = ReadProgramFile(dir_ / "s" + "/trainer_1/10_drop_optimizers.ir");
  const Result<Program> made = ReadProgramFile(dir_ / "roles" + "/trainer_t1.pb");
  ASSERT_TRUE(last.ok() && made.ok());
  EXPECT_EQ(last->main().ops().size(), made->main().ops().size());
}

TEST_F(TranspileCommand, UnwritableStepsAreAnError) {
  EXPECT_EQ(
      Transpile(CaseOf("fit_a_line.sgd", "sync_p2t2") + " --out " + dir_ / "roles" + " --steps /dev/null/x"),
      2);
  EXPECT_NE(err_.find("/dev/null/x"), std::string::npos) << err_;
}

TEST_F(TranspileCommand, UnwritableStepsOfOneRoleAreAnError) {
  fs::create_directories(dir_ / "steps");
  ASSERT_TRUE(WriteFile(dir_ / "steps" + "/trainer_0", "no folder").ok());
  EXPECT_EQ(Transpile(CaseOf("fit_a_line.sgd", "sync_p2t2") + " --out " + dir_ / "roles" + " --steps " +
                      dir_ / "steps"),
            2);
  EXPECT_NE(err_.find("E-file-write"), std::string::npos) << err_;
}

TEST_F(TranspileCommand, AnExistingSetIsReplaced) {
  const std::string folders = StrCat(" --out ", dir_ / "roles", " --steps ", dir_ / "steps");
  ASSERT_EQ(Transpile(CaseOf("fit_a_line.sgd", "sync_p3t2") + folders), 0) << err_;
  ASSERT_TRUE(WriteFile(dir_ / "roles" + "/notes.txt", "the user's").ok());
  ASSERT_EQ(Run(StrCat("convert ", dir_ / "roles", "/trainer.pb ", dir_ / "roles", "/trainer_t2.pb.gz")), 0);
  ASSERT_EQ(Transpile(CaseOf("fit_a_line.sgd", "async_p2t2") + folders), 0) << err_;
  EXPECT_EQ(Run("check " + dir_ / "roles"), 0) << out_ << err_;
  EXPECT_FALSE(fs::exists(dir_ / "roles" + "/pserver_2.pb"));
  EXPECT_TRUE(fs::exists(dir_ / "roles" + "/notes.txt"));
  EXPECT_FALSE(fs::exists(dir_ / "steps" + "/trainer_0/05_add_send_barrier.ir"));
}

TEST_F(TranspileCommand, BadInputPrintsOneLineAndExitsWith2) {
  const std::string good = CaseOf("fit_a_line.sgd", "sync_p2t2");
  const std::string out = " --out " + dir_ / "roles";
  ASSERT_TRUE(WriteFile(dir_ / "bad.json", "{\"config\": {\"trainers\": \"two\"}}").ok());
  ASSERT_TRUE(WriteFile(dir_ / "bad.pb", "no program").ok());
  for (const std::string& arguments :
       {std::string(), good, good + out + " extra", good + out + " --compat fluid-2.0",
        good + out + " --config none.json", good + out + " --config " + dir_ / "bad.json",
        good + out + " --facts " + dir_ / "bad.pb", good + out + " --main " + dir_ / "bad.pb",
        good + out + " --main none.pb", good + out + " --trainers 2", good + " --out /dev/null/x",
        CaseOf("fit_a_line.sgd", "sync_mbs10_ctor") + out, good + out + " --split-method Random",
        good + out + " --slicing columns", good + out + " --clip never",
        good + out + " --slicing mxnet --split-method HashName"}) {
    ExpectBadInput("transpile" + arguments);
  }
}

TEST_F(TranspileCommand, TwoRolesAreNotWrittenToOneFile) {
  ASSERT_TRUE(WriteFile(dir_ / "one.json",
                        "{\"config\": {\"trainers\": 2}, \"pserver_endpoints\": [\"127.0.0.1:6174\"],"
                        " \"files\": {\"trainer_startup.pb\": {\"file\": \"trainer.pb\"}}}")
                  .ok());
  ExpectBadInput(StrCat("transpile", SourceOf("fit_a_line.sgd"), " --config ", dir_ / "one.json", " --out ",
                        dir_ / "roles"),
                 "key \"files\": two roles are to be written to trainer.pb   [E-case]");
}

TEST_F(TranspileCommand, PlacementFlagsOverrideTheConfiguration) {
  const std::string inputs = CaseOf("wide_linear.sgd", "sync_p2t2");
  ASSERT_EQ(Transpile(inputs + " --split-method SizeBalanced --slicing even --out " + dir_ / "roles"), 0)
      << err_;
  EXPECT_EQ(*ReadFile(dir_ / "roles" + "/plan.txt"),
            "plan {mode=\"sync\", trainers=2, pservers=[\"127.0.0.1:6174\", \"127.0.0.1:6175\"]}\n"
            "param fc_1.b_0 : f32[1] grad=fc_1.b_0@GRAD\n"
            "  rows [0, 1) on pserver 0\n"
            "param fc_1.w_0 : f32[1000, 1] grad=fc_1.w_0@GRAD\n"
            "  rows [0, 1000) on pserver 0\n"
            "param fc_b : f32[1000] grad=fc_b@GRAD\n"
            "  rows [0, 1000) on pserver 1\n"
            "param fc_w : f32[1000, 1000] grad=fc_w@GRAD\n"
            "  rows [0, 500) on pserver 0 in chunks of 262\n"
            "  rows [500, 1000) on pserver 1 in chunks of 262\n");
}

TEST_F(TranspileCommand, ExchangeFlagsOverrideTheConfiguration) {
  ASSERT_TRUE(WriteFile(dir_ / "job.json",
                        "{\"pserver_endpoints\": [\"10.0.0.1:6174\"],"
                        " \"trainer_endpoints\": [\"10.0.1.1:6170\", \"10.0.1.2:6170\"],"
                        " \"config\": {\"trainers\": 2, \"trainer_ids\": [0, 1]}}")
                  .ok());
  const std::string inputs =
      StrCat(SourceOf("fit_a_line.sgd"), " --config ", dir_ / "job.json", " --out ", dir_ / "roles");
  ASSERT_EQ(Transpile(inputs + " --on-uneven join"), 0) << err_;
  EXPECT_NE(ReadFile(dir_ / "roles" + "/plan.txt")->find("on_uneven=\"join\""), std::string::npos);
  ASSERT_EQ(Transpile(inputs + " --exchange auto --exchange-gbit 25 --exchange-message-us 5"), 0) << err_;
  EXPECT_NE(ReadFile(dir_ / "roles" + "/plan.txt")->find("\nexchange fc_0.w_0 by "), std::string::npos);
  ExpectBadInput("transpile" + inputs + " --exchange ring",
                 "transpile: --exchange must be one of pserver, allreduce, auto, not \"ring\"   [E-usage]");
  ExpectBadInput("transpile" + inputs + " --on-uneven wait",
                 "transpile: --on-uneven must be one of join, pad, error, not \"wait\"   [E-usage]");
  ExpectBadInput("transpile" + inputs + " --exchange auto --exchange-gbit 0",
                 "plan: exchange_gbit, what a link carries each way, must be above 0 Gbit/s, not 0   "
                 "[E-plan-exchange]");
}

TEST_F(TranspileCommand, CustomDispatchersAreRefused) {
  EXPECT_EQ(Transpile(CaseOf("wide_linear.sgd", "hashfix_p2t2") + " --out " + dir_ / "roles"), 2);
  EXPECT_NE(err_.find("case.json: key \"split_method\": \"HashNameFixed\" is none of RoundRobin, HashName, "
                      "SizeBalanced"),
            std::string::npos)
      << err_;
}

}  // namespace
}  // namespace penstock
