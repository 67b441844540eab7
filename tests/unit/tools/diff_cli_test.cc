// `penstock diff` from a user's view: two programs, and two folders of role programs.
#include <filesystem>

#include "tests/support/command_line.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

class DiffCommand : public test::CommandLine {
 protected:
  void Write(const std::string& name, const std::string& scale) {
    ASSERT_TRUE(WriteFile(dir_ / name, StrCat("program\nblock 0 {\n  data x : f32[?, 8]\n",
                                              "  y : f32[?, 8] = scale(X=x) {scale=", scale, "}\n}\n"))
                    .ok());
  }
  // Makes the roles of fit_a_line in a folder of this name.
  std::string Roles(const std::string& name, const std::string& more) {
    EXPECT_EQ(Run(StrCat("transpile", CaseOf("fit_a_line.sgd", "sync_p2t2"), more, " --out ", dir_ / name)),
              0)
        << err_;
    return dir_ / name;
  }
};

TEST_F(DiffCommand, EqualProgramsOfAnyFormExitWith0) {
  Write("a.ir", "0.5");
  ASSERT_EQ(Run(StrCat("convert ", dir_ / "a.ir", " ", dir_ / "a.pb.gz")), 0) << err_;
  EXPECT_EQ(Run(StrCat("diff ", dir_ / "a.ir", " ", dir_ / "a.pb.gz")), 0) << err_;
  EXPECT_EQ(out_, "diff: equal\n");
}

TEST_F(DiffCommand, DifferencesArePrintedAndExitWith1) {
  Write("a.ir", "0.5");
  Write("b.ir", "0.25");
  EXPECT_EQ(Run(StrCat("diff ", dir_ / "a.ir", " ", dir_ / "b.ir")), 1) << err_;
  EXPECT_EQ(out_, StrCat(dir_ / "b.ir", ": 1 op differs\nblock 0\n- op 0: y = scale(X=x) {scale=0.5}\n",
                         "+ op 0: y = scale(X=x) {scale=0.25}\n= they differ in scale\n"));
}

TEST_F(DiffCommand, FoldersAreComparedRoleByRole) {
  const std::string ours = Roles("ours", "");
  EXPECT_EQ(Run(StrCat("diff ", ours, " ", Roles("again", ""))), 0) << out_;
  EXPECT_EQ(out_, "diff: 0 of 8 programs differ\n");
  const std::string compat = Roles("compat", " --compat fluid-1.8");
  EXPECT_EQ(Run(StrCat("diff ", ours, " ", compat)), 1);
  EXPECT_NE(out_.find("\ntrainer_t1: "), std::string::npos) << out_;
  EXPECT_NE(out_.find("= they differ in trainer_id\n"), std::string::npos) << out_;
}

TEST_F(DiffCommand, MissingRolesAreReported) {
  const std::string ours = Roles("ours", ""), less = Roles("less", "");
  fs::remove(less + "/trainer_t1.pb");
  fs::remove(less + "/trainer_startup_t1.pb");
  EXPECT_EQ(Run(StrCat("diff ", ours, " ", less)), 1);
  EXPECT_EQ(out_,
            "trainer_startup_t1: only in the first folder\ntrainer_t1: only in the first folder\n"
            "diff: 2 of 8 programs differ\n");
}

TEST_F(DiffCommand, BadInputPrintsOneLineAndExitsWith2) {
  const std::string roles = Roles("ours", "");
  Write("a.ir", "0.5");
  fs::create_directory(dir_ / "empty");
  ExpectBadInput("diff");
  ExpectBadInput(StrCat("diff ", dir_ / "a.ir"));
  ExpectBadInput(StrCat("diff ", dir_ / "a.ir", " ", dir_ / "none.ir"));
  ExpectBadInput(
      StrCat("diff ", dir_ / "a.ir", " ", roles),
      StrCat("diff: ", roles, " is a folder of role programs, ", dir_ / "a.ir", " is not   [E-diff-kinds]"));
  ExpectBadInput(StrCat("diff ", roles, " ", dir_ / "empty"),
                 StrCat(dir_ / "empty", ": no trainer program (trainer*.pb)   [E-roles-missing]"));
  fs::remove(roles + "/pserver_startup_1.pb");
  ExpectBadInput(StrCat("diff ", roles, " ", roles),
                 StrCat(roles, ": pserver_1.pb has no startup program beside it   [E-roles-startup]"));
  fs::copy(roles + "/trainer_t1.pb", roles + "/trainer_1.pb");
  ExpectBadInput(StrCat("check ", roles));
  EXPECT_NE(err_.find("[E-roles-twice]"), std::string::npos) << err_;
}

}  // namespace
}  // namespace penstock
