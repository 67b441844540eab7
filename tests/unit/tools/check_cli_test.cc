// `penstock check` from a user's view, and how `penstock transpile` uses its findings.
#include <filesystem>

#include "framework/ir/edit.h"
#include "framework/op/conform.h"
#include "framework/text/program_file.h"
#include "framework/wire/wire.h"
#include "tests/support/command_line.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

class CheckCommand : public test::CommandLine {
 protected:
  // Makes the roles of a case in a separate folder.
  std::string Make(const std::string& program, const std::string& config) {
    const std::string roles = dir_ / "roles";
    EXPECT_EQ(Run(StrCat("transpile", CaseOf(program, config), " --out ", roles)), 0) << err_;
    return roles;
  }
};

TEST_F(CheckCommand, AConsistentSetIsAccepted) {
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

// Stores the attributes of ops, except for the framework's own, in the kinds of another version.
Program InOtherKinds(Program program) {
  for (int b = 0; b < program.block_count(); ++b) {
    for (const OpEntry& entry : std::vector<OpEntry>(program.block(b).ops())) {
      Op op = *entry.op;
      for (const NamedAttr& attr : std::vector<NamedAttr>(op.attrs())) {
        const bool own = attr.name == kRoleAttr || std::holds_alternative<BlockRef>(attr.value);
        for (const AttrKind kind : {AttrKind::kLong, AttrKind::kFloat, AttrKind::kLongs, AttrKind::kFloats}) {
          const auto other = own ? std::nullopt : ConvertAttr(attr.value, kind);
          if (!other || KindOf(attr.value) == kind) continue;
          if (ConvertAttr(*other, KindOf(attr.value)) == attr.value) op.Set(attr.name, *other);
        }
      }
      program.MutableBlock(b).Replace(entry.id, std::move(op));
    }
  }
  return program;
}

TEST_F(CheckCommand, AttributesOfConvertibleKindsAreRead) {
  const std::string roles = Make("lenet.momentum", "sync_p2t2");
  for (const auto& file : fs::directory_iterator(roles)) {
    if (file.path().extension() != ".pb") continue;
    const Program program = *ReadProgramFile(file.path().string());
    const std::string changed = SerializeProgram(InOtherKinds(program));
    EXPECT_NE(changed, SerializeProgram(program)) << file.path();
    ASSERT_TRUE(WriteFile(file.path().string(), changed).ok());
  }
  EXPECT_EQ(Run("check " + roles + SourceOf("lenet.momentum")), 0) << out_;
  EXPECT_EQ(out_, "check: 0 errors, 0 warnings\n");
}

TEST_F(CheckCommand, ReadsGzippedFiles) {
  const std::string roles = Make("fit_a_line.sgd", "sync_p2t2");
  for (const char* file : {"trainer.pb", "pserver_0.pb"}) {
    ASSERT_EQ(Run(StrCat("convert ", roles, "/", file, " ", roles, "/", file, ".gz")), 0) << err_;
    fs::remove(StrCat(roles, "/", file));
  }
  EXPECT_EQ(Run("check " + roles), 0) << out_;
}

TEST_F(CheckCommand, ADifferentSourceIsReported) {
  const std::string roles = Make("fit_a_line.sgd", "sync_p2t2");
  EXPECT_EQ(Run("check " + roles + SourceOf("wide_linear.sgd")), 1);
  EXPECT_NE(out_.find("[E-check-source]"), std::string::npos) << out_;
}

TEST_F(CheckCommand, BadInputPrintsOneLineAndExitsWith2) {
  const std::string roles = Make("fit_a_line.sgd", "sync_p2t2");
  for (const std::string& arguments :
       {std::string("check"), "check " + roles + " extra", std::string("check /none"),
        "check " + roles + " --main /none", "check " + roles + " --main " + roles + "/trainer.pb",
        "check " + roles + " --out x"}) {
    ExpectBadInput(arguments);
  }
}

// With one trainer, the names of Fluid's trainer and pserver do not match.
TEST_F(CheckCommand, CompatSetsAreWrittenWithTheirFindingsAsWarnings) {
  const std::string roles = dir_ / "roles";
  EXPECT_EQ(
      Run(StrCat("transpile", CaseOf("fit_a_line.sgd", "sync_p1t1"), " --compat fluid-1.8 --out ", roles)),
      0);
  EXPECT_NE(err_.find("warning: check: "), std::string::npos) << err_;
  EXPECT_EQ(err_.find("error: "), std::string::npos) << err_;
  EXPECT_TRUE(fs::exists(roles + "/trainer.pb"));
  EXPECT_EQ(Run("check " + roles), 1);
}

}  // namespace
}  // namespace penstock
