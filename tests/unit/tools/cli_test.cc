// The `penstock` binary from a user's view: its output, its exit codes, one line for bad input.
#include "framework/wire/wire.h"
#include "tests/support/command_line.h"
#include "tests/support/program_files.h"
#include "tests/support/random_program.h"

namespace penstock {
namespace {

class Cli : public test::CommandLine {
 protected:
  void Write(const std::string& name, std::string_view bytes) {
    ASSERT_TRUE(WriteFile(dir_ / name, bytes).ok());
  }
  // The output of a command that must succeed.
  std::string OutputOf(const std::string& arguments) {
    EXPECT_EQ(Run(arguments), 0) << arguments << ": " << err_;
    return out_;
  }
};

TEST_F(Cli, ConvertIsLosslessThroughEveryForm) {
  const Program program = test::RandomProgram(5);
  const std::string bytes = SerializeProgram(program);
  Write("a.pb", bytes);
  const std::vector<std::string> chain = {"a.pb",    "b.ir",      "c.json",    "d.pb.gz", "h.pdmodel",
                                          "e.ir.gz", "__model__", "f.json.gz", "g.pb"};
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    ASSERT_EQ(Run(StrCat("convert ", dir_ / chain[i], " ", dir_ / chain[i + 1])), 0) << err_;
    EXPECT_EQ(out_ + err_, "");
  }
  const Result<Program> back = ParseProgram(*ReadFile(dir_ / "g.pb"));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(test::Difference(program, *back), "");
  ASSERT_EQ(Run(StrCat("convert ", dir_ / "a.pb", " ", dir_ / "same.pb")), 0) << err_;
  EXPECT_TRUE(*ReadFile(dir_ / "same.pb") == bytes);
  ASSERT_EQ(Run(StrCat("convert ", dir_ / "a.pb", " ", dir_ / "same.pdmodel")), 0) << err_;
  EXPECT_TRUE(*ReadFile(dir_ / "same.pdmodel") == bytes);
}

TEST_F(Cli, MemoryCommandsWriteTheProgramAndASummary) {
  Write("a.ir",
        "program\nblock 0 {\n  data x : f32[?, 8]\n  a : f32[?, 8] = relu(X=x)\n  b : f32[?, 8] = tanh(X=a)\n"
        "  c : f32[?, 8] = relu(X=b)\n  d : f32[?, 8] = tanh(X=c)\n}\n");
  const std::string files = StrCat(dir_ / "a.ir", " ", dir_ / "b.ir");
  EXPECT_EQ(OutputOf("memory_optimize " + files),
            "c takes the buffer of a: f32[?, 8]\n"
            "1 variable takes the buffer of another; saves 32 bytes for each batch item\n");
  EXPECT_NE(ReadFile(dir_ / "b.ir")->find("d : f32[?, 8] = tanh(X=a)"), std::string::npos);
  EXPECT_EQ(OutputOf("memory_optimize --keep a,c " + files),
            "0 variables take the buffer of another; saves nothing\n");
  EXPECT_EQ(Run("release_memory " + files), 0) << err_;
  EXPECT_NE(ReadFile(dir_ / "b.ir")->find("delete_var(X=a)"), std::string::npos);
  ExpectBadInput("memory_optimize --keep lost " + files,
                 "memory: \"lost\" is to be kept, and the program does not declare it   [E-memory-keep]");
  ExpectBadInput("memory_optimize --level 2 " + files,
                 "memory_optimize: --level must be 0 or 1, not 2   [E-usage]");
}

TEST_F(Cli, ShowOmitsDefaults) {
  Write("a.ir",
        "program\nblock 0 {\n  data x : f32[?, 3]\n"
        "  y : f32[?, 3] = scale(X=x) {scale=1.0, bias=2.0, op_namescope=\"/\"} @forward at \"t.py:1 in "
        "f\"\n}\n");
  EXPECT_EQ(OutputOf("show " + dir_ / "a.ir"),
            "program\nblock 0 {\n  data x : f32[?, 3]\n  y : f32[?, 3] = scale(X=x) {bias=2.0}\n}\n");
  EXPECT_EQ(OutputOf("show --full " + dir_ / "a.ir"), *ReadFile(dir_ / "a.ir"));
}

TEST_F(Cli, BadInputPrintsOneLineAndExitsWith2) {
  Write("empty.pb", "");
  Write("noise.pb", "this is not a program");
  Write("broken.ir", "program\nblock 0 {\n  x = f(\n");
  Write("broken.json", "{");
  Write("packed.pb", "\x1f\x8b\x08");
  const std::string d = dir_.path().string() + "/";
  ExpectBadInput(
      "walk",
      "there is no command \"walk\"; known: convert, show, diff, transpile, memory_optimize, release_memory, "
      "plan, check, plot, top, trace, profile, ckpt, doctor, scale   [E-command]");
  ExpectBadInput("show", "usage: penstock show F   [E-usage]");
  ExpectBadInput("convert a.pb", "usage: penstock convert A B   [E-usage]");
  ExpectBadInput("show --speed=3 a.pb", "show has no flag --speed=3   [E-flag]");
  ExpectBadInput("show --full=maybe a.pb", "flag --full is of type bool, not \"maybe\"   [E-flag]");
  ExpectBadInput("show " + d + "none.pb",
                 StrCat("cannot read ", d, "none.pb: No such file or directory   [E-file-read]"));
  ExpectBadInput("show " + d + "empty.pb", StrCat(d, "empty.pb: the program is empty   [E-program-bytes]"));
  ExpectBadInput(
      "show " + d + "broken.ir",
      StrCat(d, "broken.ir:4:1: expected a slot's name, found the end of the text   [E-text-syntax]"));
  ExpectBadInput("show " + d + "broken.json", StrCat(d, "broken.json:1:2: not JSON   [E-json]"));
  ExpectBadInput("show " + d + "packed.pb",
                 StrCat(d, "packed.pb: truncated gzip stream after 0 unpacked bytes   [E-file-gzip]"));
  ExpectBadInput(
      "show " + d + "a.txt",
      StrCat(d, "a.txt: the form of a program is told by its name: .pb, .pb.gz, .pdmodel, __model__, .ir or ",
             ".json   [E-file-format]"));
  Write("good.ir", "program\nblock 0 {\n}\n");
  ExpectBadInput("convert " + d + "good.ir " + d + "none/b.pb",
                 StrCat("cannot write ", d, "none/b.pb: No such file or directory   [E-file-write]"));
  ExpectBadInput("show " + d + "noise.pb");
  const std::string too_long(300, 'x');  // stat() refuses it
  ExpectBadInput("top " + too_long, StrCat("no process of the job answers at ", too_long,
                                           "; start it with --metrics 0, and give its log folder   "
                                           "[E-top-nobody]"));
}

TEST_F(Cli, HelpListsTheCommands) {
  const std::string help = OutputOf("--help");
  for (const char* command : {"convert", "show", "transpile", "plan", "check", "plot", "top"})
    EXPECT_NE(help.find(command), std::string::npos);
  EXPECT_EQ(Run(""), 2);
}

TEST_F(Cli, HelpDescribesOneCommand) {
  EXPECT_EQ(OutputOf("show --help"),
            "penstock show F\n  prints program F for reading, with defaults omitted\n"
            "  --full  leave nothing out (default: false)\n");
}

}  // namespace
}  // namespace penstock
