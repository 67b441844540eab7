// `penstock ckpt` from a user's view.
#include <filesystem>

#include "executor/checkpoint/writer.h"
#include "tests/support/command_line.h"

namespace penstock {
namespace {

class CkptCommand : public test::CommandLine {
 protected:
  // A checkpoint of two pservers: w in two slices, with a moment of the second.
  void Write(std::uint64_t step, float moment) {
    for (int server = 0; server < 2; ++server) {
      std::vector<checkpoint::Value> values(server == 0 ? 1 : 2);
      values[0].entry = {
          .name = StrCat("w.block", server), .of = "w", .row_begin = server * 2, .type = "f32[2, 3]"};
      values[0].value.As<Tensor>() = Filled({2, 3}, 1);
      if (server == 1) {
        values[1].entry = {
            .name = "m", .kind = checkpoint::ValueKind::kState, .of = "w", .row_begin = {}, .type = "f32[1]"};
        values[1].value.As<Tensor>() = Filled({1}, moment);
      }
      checkpoint::Writer writer(SystemDisk(), {.folder = dir_ / "ckpt", .keep = 9});
      const checkpoint::Manifest head{
          .step = step, .server = server, .servers = 2, .trainers = 3, .run = "job.0", .values = {}};
      ASSERT_TRUE(writer.Write(head, values).ok());
    }
  }
  static Tensor Filled(const Shape& shape, float value) {
    Tensor tensor(DType::kFp32, shape);
    for (Dim i = 0; i < tensor.count(); ++i) tensor.Data<float>()[i] = value;
    return tensor;
  }
  std::string Dir() const { return dir_ / "ckpt"; }
};

TEST_F(CkptCommand, ListsCheckpointsAndTheirValues) {
  Write(5, 0);
  Write(10, 0);
  std::filesystem::remove(Dir() + "/step-10/part-1-of-2.json");
  EXPECT_EQ(Run("ckpt ls " + Dir()), 0) << err_;
  EXPECT_EQ(out_,
            "step 5  whole: 2 pservers, 3 trainers, 3 values, 128 bytes\n"
            "step 10  not whole: part 1 of 2 is missing\n");
  EXPECT_EQ(Run("ckpt ls " + Dir() + "/step-5/"), 0) << err_;
  EXPECT_EQ(out_,
            "step 5  whole: 2 pservers, 3 trainers, 3 values, 128 bytes\n"
            "pserver 0\n"
            "  w.block0 : f32[2, 3]  param of w\n"
            "pserver 1\n"
            "  w.block1 : f32[2, 3]  param of w from row 2\n"
            "  m : f32[1]  state of w\n");
  EXPECT_EQ(Run("ckpt ls " + Dir() + "/step-10"), 1);
}

TEST_F(CkptCommand, VerifiesAllBytes) {
  Write(5, 0);
  EXPECT_EQ(Run("ckpt verify " + Dir()), 0) << err_;
  EXPECT_EQ(out_, "step 5  good\n");
  const std::string file = Dir() + "/step-5/part-1-of-2.values";
  std::string bytes = *ReadFile(file);
  bytes[40] = static_cast<char>(bytes[40] ^ 1);
  ASSERT_TRUE(WriteFile(file, bytes).ok());
  EXPECT_EQ(Run("ckpt verify " + Dir()), 1);
  EXPECT_TRUE(StartsWith(out_, StrCat("step 5  ", file, ": the value of w.block1 is damaged"))) << out_;
}

TEST_F(CkptCommand, ComparesTwo) {
  Write(5, 0);
  Write(10, 0);
  Write(15, 1);
  EXPECT_EQ(Run(StrCat("ckpt diff ", Dir(), "/step-5 ", Dir(), "/step-10")), 0) << err_;
  EXPECT_EQ(out_, "equal: 3 values\n");
  EXPECT_EQ(Run(StrCat("ckpt diff ", Dir(), "/step-5 ", Dir(), "/step-15")), 1);
  EXPECT_EQ(out_, "pserver 1  m: other values\n");
}

TEST_F(CkptCommand, BadInputPrintsOneLineAndExitsWith2) {
  const std::string usage =
      "usage: penstock ckpt ls DIR | ls DIR/step-N | verify DIR | diff DIR/step-A DIR/step-B   [E-usage]";
  ExpectBadInput("ckpt", usage);
  ExpectBadInput("ckpt ls", usage);
  ExpectBadInput("ckpt rm x", usage);
  const std::string none = dir_ / "none";
  ExpectBadInput("ckpt ls " + none, none + " has no checkpoint   [E-checkpoint-whole]");
  ExpectBadInput("ckpt verify " + none, none + " has no checkpoint   [E-checkpoint-whole]");
  ExpectBadInput(StrCat("ckpt diff ", none, " ", none), none + " is no checkpoint   [E-checkpoint-whole]");
}

}  // namespace
}  // namespace penstock
