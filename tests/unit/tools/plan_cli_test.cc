// `penstock plan` from a user's view: its inputs, its three formats, and its errors for bad input.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/support/command_line.h"
#include "tests/support/corpus.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

class PlanCommand : public test::CommandLine {
 protected:
  void ExpectBadPlan(const std::string& arguments, const std::string& message) {
    ExpectBadInput("plan " + arguments, message);
  }
  // Role programs that Fluid made.
  static std::string RolesOf(const std::string& name) {
    return StrCat(test::SelectionFolder(), "/open/cases/", name);
  }
  static std::string Source() { return CaseOf("wide_linear.sgd", "sync_p2t2"); }
};

TEST_F(PlanCommand, ReadsAFolderOfRolePrograms) {
  EXPECT_EQ(Run("plan " + RolesOf("wide_linear.sgd@sync_p2t2")), 0) << err_;
  EXPECT_TRUE(StartsWith(out_, "sync: 2 trainers, 2 pservers\n")) << out_;
  EXPECT_EQ(out_.find("times at"), std::string::npos);
  EXPECT_EQ(Run(StrCat("plan --net 10Gbit --step-ms=50 ", RolesOf("wide_linear.sgd@sync_p2t2"))), 0) << err_;
  EXPECT_NE(out_.find("times at 10,000,000,000 bit/s each way"), std::string::npos) << out_;
  EXPECT_NE(out_.find("  chosen: 2, "), std::string::npos) << out_;
}

TEST_F(PlanCommand, SourceAndTranspiledReportsAreEqual) {
  ASSERT_EQ(Run("plan --json" + Source()), 0) << err_;
  nlohmann::json source = nlohmann::json::parse(out_);
  ASSERT_EQ(Run(StrCat("transpile", Source(), " --out ", dir_ / "roles")), 0) << err_;
  ASSERT_EQ(Run("plan --json " + dir_ / "roles"), 0) << err_;
  nlohmann::json folder = nlohmann::json::parse(out_);
  for (auto* report : {&source, &folder}) {
    for (auto& trainer : (*report)["trainer_programs"]) trainer.erase("file");
  }
  EXPECT_EQ(source, folder);
  EXPECT_EQ(folder["schema"], 1);
}

TEST_F(PlanCommand, ReadsGzippedPrograms) {
  const std::string from = RolesOf("wide_linear.sgd@sync_p2t2");
  fs::create_directories(dir_ / "packed");
  for (const std::string name : {"trainer", "pserver_0", "pserver_1"}) {
    const std::string to = StrCat(dir_ / "packed/", name, ".pb.gz");
    ASSERT_EQ(Run(StrCat("convert ", from, "/", name, ".pb ", to)), 0) << err_;
  }
  EXPECT_EQ(Run("plan " + dir_ / "packed"), 0) << err_;
  EXPECT_TRUE(StartsWith(out_, "sync: 2 trainers, 2 pservers\n")) << out_;
}

TEST_F(PlanCommand, BadInputPrintsOneLineAndExitsWith2) {
  const std::string roles = RolesOf("fit_a_line.sgd@sync_p2t2");
  ExpectBadPlan("", "usage: penstock plan DIR, or --main F --startup F --config F   [E-usage]");
  ExpectBadPlan(StrCat(Source(), " ", roles),
                "usage: penstock plan DIR, or --main F --startup F --config F   [E-usage]");
  ExpectBadPlan("--main a.pb", "plan: --config is missing   [E-usage]");
  ExpectBadPlan("--json --dot " + roles, "plan: --json and --dot exclude each other   [E-usage]");
  ExpectBadPlan("--net 10Gbit " + roles,
                "plan: --net and --step-ms are given together or not at all   [E-usage]");
  ExpectBadPlan("--step-ms 5 --net fast " + roles,
                "a rate is a number above 0 and a unit, as 10Gbit, 100Mbit or 1.2GB, not \"fast\"   [E-net]");
  ExpectBadPlan("--step-ms -5 --net 1Gbit " + roles,
                "cost: a step takes more than 0 ms, not -5   [E-cost-options]");
  ExpectBadPlan("--step-ms 0 --net 1Gbit " + roles,
                "cost: a step takes more than 0 ms, not 0   [E-cost-options]");
  ExpectBadPlan("--step-ms soon --net 1Gbit " + roles,
                "flag --step-ms is of type double, not \"soon\"   [E-flag]");
  ExpectBadPlan("--batch -5 " + roles, "cost: batch must be at least 0, not -5   [E-cost-options]");
  ExpectBadPlan("--steps-per-exchange 0 " + roles,
                "cost: steps per exchange must be at least 1, not 0   [E-cost-options]");
  ExpectBadPlan(dir_ / "none", StrCat(dir_ / "none", ": No such file or directory   [E-roles-folder]"));
  ASSERT_TRUE(WriteFile(dir_ / "trainer.pb", "noise").ok());
  EXPECT_EQ(Run("plan " + dir_.path().string()), 2);
  EXPECT_TRUE(StartsWith(err_, StrCat("error: ", dir_ / "trainer.pb"))) << err_;
  EXPECT_EQ(Split(err_, '\n').size(), 2U) << err_;
}

void CollectKeys(const nlohmann::json& json, std::set<std::string>& keys) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) keys.insert(key);
  }
  if (!json.is_structured()) return;
  for (const auto& value : json) CollectKeys(value, keys);
}

TEST_F(PlanCommand, EveryJsonKeyIsDocumented) {
  const std::string manual = *ReadFile(test::SourceFolder() + "/tools/plan/README.md");
  std::set<std::string> keys;
  for (const std::string& job :
       {Source() + " --batch 8",
        CaseOf("softmax_reg.momentum.reg_l2.clip_gnorm", "sync_p2t2") + " --clip global",
        StrCat(" ", RolesOf("fit_a_line.sgd@geo_p2t2")),
        StrCat(" --rows-per-step 10 ", RolesOf("word2vec_dist.sgd@tbl_sync_p2t2")),
        CaseOf("fit_a_line.sgd", "coll_allreduce_t2")}) {
    ASSERT_EQ(Run("plan --json --net 10Gbit --step-ms 50" + job), 0) << err_;
    CollectKeys(nlohmann::json::parse(out_), keys);
  }
  for (const char* kind : {"ring", "tables", "pservers", "told_to_pservers"})
    EXPECT_TRUE(keys.contains(kind));
  for (const std::string& key : keys) EXPECT_NE(manual.find(StrCat("`", key)), std::string::npos) << key;
}

TEST_F(PlanCommand, HelpListsAllFlags) {
  EXPECT_EQ(Run("plan roles --help"), 0);
  for (const char* flag :
       {"--net ", "--step-ms ", "--rows-per-step ", "--batch ", "--json ", "--dot ", "--pieces "}) {
    EXPECT_NE(out_.find(flag), std::string::npos) << flag;
  }
}

}  // namespace
}  // namespace penstock
