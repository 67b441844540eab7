// `penstock ckpt` from a user's view.
#include <cstring>
#include <filesystem>

#include "executor/checkpoint/writer.h"
#include "framework/tensor/serialize.h"
#include "tests/support/command_line.h"

namespace penstock {
namespace {

class CkptCommand : public test::CommandLine {
 protected:
  // A checkpoint of two pservers: w in two slices, with a moment of the second.
  void Write(std::uint64_t step, float moment) {
    for (int server = 0; server < 2; ++server) {
      std::vector<checkpoint::Value> values(server == 0 ? 1 : 2);
      values[0].entry = {.name = StrCat("w.block", server),
                         .of = "w",
                         .whole = "w",
                         .row_begin = server * 2,
                         .type = "f32[2, 3]"};
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

// Rows [0, end), of which those below `changed` have the value 2.
SelectedRows Rows(std::int64_t begin, std::int64_t end, std::int64_t changed) {
  SelectedRows rows{.rows = {}, .height = 100, .value = Tensor(DType::kFp32, {end - begin, 1})};
  for (std::int64_t id = begin; id < end; ++id) {
    rows.value.Data<float>()[id - begin] = id < changed ? 2 : 1;
    rows.rows.push_back(id);
  }
  return rows;
}

TEST_F(CkptCommand, RowsThatAreSavedIncrementally) {
  using Saved = checkpoint::Value::Rows;
  checkpoint::Writer writer(SystemDisk(), {.folder = Dir(), .keep = 9});
  const auto write = [&](std::uint64_t step, Saved saved, SelectedRows rows) {
    std::vector<checkpoint::Value> values(1);
    values[0].entry = {.name = "t", .of = "t", .row_begin = {}, .rows = true, .type = "f32[9, 1]"};
    values[0].saved_as = saved;
    values[0].value.As<SelectedRows>() = std::move(rows);
    ASSERT_TRUE(writer.Write({.step = step, .server = 0, .servers = 1, .values = {}}, values).ok());
  };
  write(5, Saved::kBase, Rows(0, 9, 0));
  write(10, Saved::kChanges, Rows(0, 2, 2));
  write(15, Saved::kBase, Rows(0, 9, 2));
  EXPECT_EQ(Run("ckpt ls " + Dir() + "/step-10"), 0) << err_;
  EXPECT_EQ(
      out_,
      "step 10  whole: 1 pserver, 1 trainer, 1 value, 200 bytes\n"
      "pserver 0\n"
      "  t : rows f32[9, 1]  param  in part-0-of-1.rows-5 (142 bytes) + part-0-of-1.rows-10 (58 bytes)\n");
  EXPECT_EQ(Run("ckpt verify " + Dir()), 0) << err_;
  EXPECT_EQ(out_, "step 5  good\nstep 10  good\nstep 15  good\n");
  EXPECT_EQ(Run("ckpt diff " + Dir() + "/step-10 " + Dir() + "/step-15"), 0) << out_ << err_;
  EXPECT_EQ(Run("ckpt diff " + Dir() + "/step-5 " + Dir() + "/step-10"), 1);
  EXPECT_EQ(out_, "pserver 0  t: other values\n");
  EXPECT_EQ(Run("ckpt export " + Dir() + "/step-10 " + Dir() + "/ten --numpy"), 0) << err_;
  EXPECT_EQ(Run("ckpt export " + Dir() + "/step-15 " + Dir() + "/fifteen --numpy"), 0) << err_;
  for (const char* file : {"/t.npy", "/t.ids.npy"})
    EXPECT_EQ(SystemDisk().ReadWhole(Dir() + "/ten" + file).value(),
              SystemDisk().ReadWhole(Dir() + "/fifteen" + file).value());
}

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

TEST_F(CkptCommand, ComparesVariablesOfDifferentNumbersOfPservers) {
  Write(5, 0);
  std::vector<checkpoint::Value> values(2);
  values[0].entry = {.name = "w", .of = "w", .row_begin = 0, .type = "f32[4, 3]"};
  values[0].value.As<Tensor>() = Filled({4, 3}, 1);
  values[1].entry = {
      .name = "m", .kind = checkpoint::ValueKind::kState, .of = "w", .row_begin = 0, .type = "f32[1]"};
  values[1].value.As<Tensor>() = Filled({1}, 0);
  checkpoint::Writer writer(SystemDisk(), {.folder = dir_ / "one", .keep = 9});
  ASSERT_TRUE(writer.Write({.step = 5, .server = 0, .servers = 1, .values = {}}, values).ok());
  values[1].value.As<Tensor>() = Filled({1}, 2);
  ASSERT_TRUE(writer.Write({.step = 6, .server = 0, .servers = 1, .values = {}}, values).ok());
  const std::string one = dir_ / "one";
  EXPECT_EQ(Run(StrCat("ckpt diff ", Dir(), "/step-5 ", one, "/step-5")), 0) << err_;
  EXPECT_EQ(out_, "equal: 2 variables\n");
  EXPECT_EQ(Run(StrCat("ckpt diff ", Dir(), "/step-5 ", one, "/step-6")), 1) << err_;
  EXPECT_EQ(out_, "m: other values\n");
}

TEST_F(CkptCommand, ExportsWholeVariablesAndImportsThem) {
  Write(5, 7);
  const std::string model = dir_ / "model", back = dir_ / "back", main = dir_ / "main.ir";
  EXPECT_EQ(Run(StrCat("ckpt export ", Dir(), "/step-5 ", model)), 0) << err_;
  EXPECT_EQ(out_, StrCat("step 5  2 variables in ", model, "\n"));
  std::string w;
  AppendTensor(w, Filled({4, 3}, 1));
  EXPECT_EQ(*ReadFile(model + "/w"), w);
  ASSERT_TRUE(WriteFile(main,
                        "program\nblock 0 {\n  param w : f32[4, 3]\n  persist w@GRAD : f32[4, 3]\n"
                        "  persist m : f32[1]\n  persist unused : f32[1]\n"
                        "  (ParamOut=w, VelocityOut=m) = momentum(Param=w, Grad=w@GRAD, Velocity=m)\n}\n")
                  .ok());
  const std::string import = StrCat("ckpt import ", model, " ", back, " --main ", main, " --step 5");
  ASSERT_EQ(Run("ckpt import " + model + " " + back), 2);
  EXPECT_EQ(err_, "error: ckpt import: --main is missing   [E-usage]\n");
  std::filesystem::rename(model + "/m", model + "/n");
  ExpectBadInput(import, model + "/m: there is no such file   [E-checkpoint-import]");
  std::filesystem::rename(model + "/n", model + "/m");
  ASSERT_EQ(Run(import), 0) << err_;
  EXPECT_EQ(out_, back + "/step-5: 2 values\n");
  EXPECT_EQ(Run(StrCat("ckpt diff ", Dir(), "/step-5 ", back, "/step-5")), 0) << err_;
  EXPECT_EQ(out_, "equal: 2 variables\n");
  EXPECT_EQ(Run(StrCat("ckpt ls ", back, "/step-5")), 0) << err_;
  EXPECT_EQ(out_,
            "step 5  whole: 1 pserver, 1 trainer, 2 values, 102 bytes\n"
            "pserver 0\n"
            "  m : f32[1]  state of w\n"
            "  w : f32[4, 3]  param\n");
  ExpectBadInput(import, back + " has a checkpoint already, of step 5   [E-checkpoint-exists]");
  ExpectBadInput(StrCat("ckpt export ", Dir(), "/step-5 ", model),
                 model + " is not empty: it has m   [E-checkpoint-target]");
}

TEST_F(CkptCommand, ExportsNumpyArrays) {
  Write(5, 7);
  const std::string arrays = dir_ / "arrays";
  EXPECT_EQ(Run(StrCat("ckpt export --numpy ", Dir(), "/step-5 ", arrays)), 0) << err_;
  const std::string m = *ReadFile(arrays + "/m.npy");
  ASSERT_EQ(m.size(), 128U + 4U);
  EXPECT_EQ(m.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_TRUE(StartsWith(m.substr(10), "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } "));
  EXPECT_EQ(m[127], '\n');
  const float seven = 7;
  EXPECT_EQ(std::memcmp(m.data() + 128, &seven, sizeof seven), 0);
}

TEST_F(CkptCommand, BadInputPrintsOneLineAndExitsWith2) {
  const std::string usage =
      "usage: penstock ckpt ls DIR | ls DIR/step-N | verify DIR | diff DIR/step-A DIR/step-B | "
      "export DIR/step-N OUT | import FOLDER DIR   [E-usage]";
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
