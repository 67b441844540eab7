// `penstock check` as a user meets it, and what `penstock transpile` does with what it finds.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>

#include "framework/base/files.h"
#include "framework/ir/edit.h"
#include "framework/ir/wire.h"
#include "framework/text/program_file.h"
#include "tests/support/corpus.h"
#include "tests/support/temp_dir.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

class CheckCommand : public testing::Test {
 protected:
  int Run(const std::string& arguments) {
    const std::string command =
        StrCat(PENSTOCK_BINARY, " ", arguments, " >", dir_ / "out", " 2>", dir_ / "err", " </dev/null");
    const int status = std::system(command.c_str());
    out_ = *ReadFile(dir_ / "out");
    err_ = *ReadFile(dir_ / "err");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  static std::string Open() { return test::CorpusOrSelection() + "/open"; }
  static std::string Existing(const std::string& path) { return fs::exists(path) ? path : path + ".gz"; }
  static std::string SourceOf(const std::string& id) {
    const std::string program = StrCat(Open(), "/programs/", id);
    return StrCat(" --main ", Existing(program + "/main.pb"), " --startup ",
                  Existing(program + "/startup.pb"), " --facts ", program, "/program.json");
  }
  // The roles of a case, made into a folder of its own.
  std::string Make(const std::string& id, const std::string& config) {
    const std::string roles = dir_ / "roles";
    const int code = Run(StrCat("transpile", SourceOf(id), " --config ", Open(), "/cases/", id, "@", config,
                                "/case.json --out ", roles));
    EXPECT_EQ(code, 0) << err_;
    return roles;
  }

  test::TempDir dir_;
  std::string out_, err_;
};

TEST_F(CheckCommand, ASetThatFitsIsSaidToFit) {
  const std::string roles = Make("fit_a_line.sgd", "sync_p2t2");
  EXPECT_EQ(Run("check " + roles), 0) << out_;
  EXPECT_EQ(out_, "check: 0 errors, 0 warnings\n");
  EXPECT_EQ(Run("check " + roles + SourceOf("fit_a_line.sgd")), 0) << out_;
}

TEST_F(CheckCommand, FindingsArePrintedAndExitWith1) {
  const std::string roles = Make("fit_a_line.sgd", "sync_p2t2");
  const std::string path = roles + "/pserver_1.pb";
  Program program = *ReadProgramFile(path);
  const OpEntry entry = program.block(1).ops()[1];
  Op scale = *entry.op;
  scale.Set("scale", 2.0f);
  program.MutableBlock(1).Replace(entry.id, std::move(scale));
  ASSERT_TRUE(WriteFile(path, SerializeProgram(program)).ok());
  EXPECT_EQ(Run("check " + roles), 1);
  EXPECT_NE(out_.find("[E-check-merge-scale]"), std::string::npos) << out_;
}

TEST_F(CheckCommand, ReadsGzippedFiles) {
  const std::string roles = Make("fit_a_line.sgd", "sync_p2t2");
  for (const char* file : {"trainer.pb", "pserver_0.pb"}) {
    ASSERT_EQ(Run(StrCat("convert ", roles, "/", file, " ", roles, "/", file, ".gz")), 0) << err_;
    fs::remove(StrCat(roles, "/", file));
  }
  EXPECT_EQ(Run("check " + roles), 0) << out_;
}

TEST_F(CheckCommand, AnotherSourceIsNotWhatTheSetComposesTo) {
  const std::string roles = Make("fit_a_line.sgd", "sync_p2t2");
  EXPECT_EQ(Run("check " + roles + SourceOf("wide_linear.sgd")), 1);
  EXPECT_NE(out_.find("[E-check-source]"), std::string::npos) << out_;
}

TEST_F(CheckCommand, BadInputIsOneLineAndExitCode2) {
  const std::string roles = Make("fit_a_line.sgd", "sync_p2t2");
  for (const std::string& arguments :
       {std::string("check"), "check " + roles + " extra", std::string("check /none"),
        "check " + roles + " --main /none", "check " + roles + " --main " + roles + "/trainer.pb",
        "check " + roles + " --out x"}) {
    EXPECT_EQ(Run(arguments), 2) << arguments;
    EXPECT_TRUE(StartsWith(err_, "error: ")) << err_;
    EXPECT_EQ(std::count(err_.begin(), err_.end(), '\n'), 1) << err_;
  }
}

// With one trainer, Fluid's trainers and pservers do not meet.
TEST_F(CheckCommand, CompatSetsAreWrittenWithTheirFindingsAsWarnings) {
  const std::string roles = dir_ / "roles";
  EXPECT_EQ(Run(StrCat("transpile", SourceOf("fit_a_line.sgd"), " --config ", Open(),
                       "/cases/fit_a_line.sgd@sync_p1t1/case.json --compat fluid-1.8 --out ", roles)),
            0);
  EXPECT_NE(err_.find("warning: check: "), std::string::npos) << err_;
  EXPECT_EQ(err_.find("error: "), std::string::npos) << err_;
  EXPECT_TRUE(fs::exists(roles + "/trainer.pb"));
  EXPECT_EQ(Run("check " + roles), 1);
}

}  // namespace
}  // namespace penstock
