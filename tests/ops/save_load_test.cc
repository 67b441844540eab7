// The ops that save and load: round trips, Fluid's own bytes, and the inputs that they reject.
#include <gtest/gtest.h>

#include <filesystem>

#include "framework/base/files.h"
#include "framework/op/kernel.h"
#include "operators/all_ops.h"
#include "tests/support/corpus.h"
#include "tests/support/npz.h"
#include "tests/support/op_harness.h"
#include "tests/support/temp_dir.h"

namespace penstock::test {
namespace {

Op FileOp(const std::string& type, const std::string& path) { return Op(type).Set("file_path", Attr(path)); }

TEST(SaveLoad, RoundTripsAndCreatesFolders) {
  const TempDir dir;
  const std::string path = dir / "deep/down/x";
  Tensor x = Ramp(DType::kFp32, {5, 2}, 0.5, 1);
  x.set_lod({{0, 2, 5}});
  ASSERT_TRUE(RunOp(AllOps(), FileOp("save", path).AddInput("X", {"x"}), {{"x", x}}).ok());
  const Result<Tensors> loaded = RunOp(AllOps(), FileOp("load", path).AddOutput("Out", {"y"}), {});
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_TRUE(Near(loaded->at("y"), x, 0, 0).ok());
  EXPECT_EQ(loaded->at("y").lod(), x.lod());
}

TEST(SaveLoad, LoadsASliceFromAnOffset) {
  const TempDir dir;
  const Tensor x = Ramp(DType::kFp32, {5, 2}, 0, 1);
  ASSERT_TRUE(RunOp(AllOps(), FileOp("save", dir / "x").AddInput("X", {"x"}), {{"x", x}}).ok());
  const auto slice = [&](std::int64_t seek, std::vector<std::int64_t> shape) {
    Op load = FileOp("load", dir / "x").AddOutput("Out", {"y"});
    return RunOp(AllOps(), load.Set("seek", seek).Set("shape", std::move(shape)), {});
  };
  const Result<Tensors> rows = slice(4, {3, 2});
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_TRUE(Near(rows->at("y"), TensorOf<float>({3, 2}, {4, 5, 6, 7, 8, 9}), 0, 0).ok());
  EXPECT_TRUE(slice(10, {0, 2}).ok());
  EXPECT_EQ(slice(5, {3, 2}).status().id(), "E-load-slice");
  EXPECT_EQ(slice(11, {0, 2}).status().id(), "E-load-slice");
  EXPECT_EQ(slice(0, {-1, 2}).status().id(), "E-load-slice");
  EXPECT_EQ(slice(0, {std::int64_t{1} << 40, std::int64_t{1} << 40}).status().id(), "E-load-slice");
}

TEST(SaveLoad, CombinesVariablesInTheOrderOfTheArguments) {
  const TempDir dir;
  const Tensors values = {{"b", TensorOf<std::int64_t>({2}, {7, 8})}, {"a", TensorOf<float>({1}, {3})}};
  ASSERT_TRUE(RunOp(AllOps(), FileOp("save_combine", dir / "all").AddInput("X", {"b", "a"}), values).ok());
  const Result<Tensors> loaded =
      RunOp(AllOps(), FileOp("load_combine", dir / "all").AddOutput("Out", {"p", "q"}), {});
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_TRUE(Near(loaded->at("p"), values.at("b"), 0, 0).ok());
  EXPECT_TRUE(Near(loaded->at("q"), values.at("a"), 0, 0).ok());
  EXPECT_EQ(RunOp(AllOps(), FileOp("load", dir / "all").AddOutput("Out", {"p"}), {}).status().id(),
            "E-load-rest");
}

TEST(SaveLoad, ConvertsHalfPrecisionOnSaveAndLoad) {
  const TempDir dir;
  const Tensors x = {{"x", TensorOf<float>({3}, {0.5f, 1.0f / 3, -70000})}};
  const Op save = FileOp("save", dir / "x").AddInput("X", {"x"});
  const Op load = FileOp("load", dir / "x").AddOutput("Out", {"y"});
  const std::vector<std::uint16_t> halves = {0x3800, 0x3555, 0xfc00};  // -70000 is too large: -infinity
  for (const bool when_saved : {true, false}) {
    ASSERT_TRUE(RunOp(AllOps(), Op(save).Set("save_as_fp16", when_saved), x).ok());
    const Result<Tensors> loaded = RunOp(AllOps(), Op(load).Set("load_as_fp16", !when_saved), {});
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    const Tensor& y = loaded->at("y");
    ASSERT_EQ(y.dtype(), DType::kFp16);
    const auto* const bits = reinterpret_cast<const std::uint16_t*>(y.raw());
    EXPECT_EQ(std::vector<std::uint16_t>(bits, bits + y.count()), halves);
  }
}

TEST(SaveLoad, RefusesExistingMissingAndTruncatedFiles) {
  const TempDir dir;
  const Tensors x = {{"x", TensorOf<float>({1}, {3})}};
  const Op save = FileOp("save", dir / "x").AddInput("X", {"x"});
  ASSERT_TRUE(RunOp(AllOps(), save, x).ok());
  EXPECT_EQ(RunOp(AllOps(), Op(save).Set("overwrite", false), x).status().id(), "E-save-exists");
  const Op load = FileOp("load", dir / "none").AddOutput("Out", {"y"});
  EXPECT_EQ(RunOp(AllOps(), load, {}).status().id(), "E-file-read");
  ASSERT_TRUE(WriteFile(dir / "none", BytesOf(dir / "x").substr(0, 20)).ok());
  EXPECT_EQ(RunOp(AllOps(), load, {}).status().code(), StatusCode::kDataLoss);
}

// Paths as fluid.io makes them: the folder, then the name of the variable.
TEST(SaveLoad, ANameCannotLeaveTheFolder) {
  const TempDir dir;
  std::filesystem::create_directory(dir / "model");
  const Tensor x = TensorOf<float>({1}, {3});
  const auto save = [&](const std::string& type, const std::string& name, const std::string& path) {
    return RunOp(AllOps(), FileOp(type, path).AddInput("X", {name}), {{name, x}}).status().id();
  };
  const auto load = [&](const std::string& type, const std::string& name, const std::string& path) {
    return RunOp(AllOps(), FileOp(type, path).AddOutput("Out", {name}), {}).status().id();
  };
  ASSERT_EQ(save("save", "x", dir / "x"), "");
  for (const std::string name : {"../x", "a/../../x", "./../x"}) {
    const std::string path = dir / ("model/" + name);
    EXPECT_EQ(save("save", name, path), "E-file-outside") << name;
    EXPECT_EQ(load("load", name, path), "E-file-outside") << name;
    EXPECT_EQ(save("save_combine", name, path), "E-file-outside") << name;
    EXPECT_EQ(load("load_combine", name, path), "E-file-outside") << name;
  }
  const std::string absolute = dir / "x";
  EXPECT_EQ(save("save", absolute, absolute), "E-file-outside");
  EXPECT_EQ(load("load", absolute, absolute), "E-file-outside");
  for (const std::string name : {"fc/w", "..w", "a/../w"}) {
    EXPECT_EQ(save("save", name, dir / ("model/" + name)), "") << name;
    EXPECT_EQ(load("load", name, dir / ("model/" + name)), "") << name;
  }
}

TEST(Save, WritesSelectedRowsAsFluidDoes) {
  if (CorpusFolder().empty()) GTEST_SKIP() << "the corpus is not beside this checkout";
  const TempDir dir;
  for (const char* name : {"save_sr", "save_sr_dup"}) {
    const std::string base = CorpusFolder() + "/open/ops_sr/" + name;
    const Result<Arrays> arrays = ReadNpz(BytesOf(base + ".npz"));
    ASSERT_TRUE(arrays.ok());
    Variable x;
    SelectedRows& rows = x.As<SelectedRows>();
    rows.value = arrays->at("in:X_0:value");
    rows.height = static_cast<std::int64_t>(ElementAt(arrays->at("in:X_0:height"), 0));
    const Tensor& ids = arrays->at("in:X_0:rows");
    for (std::int64_t i = 0; i < ids.count(); ++i)
      rows.rows.push_back(static_cast<std::int64_t>(ElementAt(ids, i)));

    const OpDef* def = AllOps().Find("save");
    const Op op = FileOp("save", dir / name).AddInput("X", {"x"});
    KernelSetup setup(*def, op, {{"X", {Argument{{.kind = VarKind::kSelectedRows}, {.index = 0}, "x"}}}}, {},
                      {});
    const std::unique_ptr<Kernel> kernel = def->FindKernel(DeviceKind::kCpu, DType::kFp32)();
    ASSERT_TRUE(kernel->Prepare(setup).ok());
    Variable* const variables[] = {&x};
    KernelRun run(variables, nullptr, nullptr);
    ASSERT_TRUE(kernel->Run(run).ok());
    EXPECT_EQ(BytesOf(dir / name), BytesOf(base + ".file")) << name;
  }
}

}  // namespace
}  // namespace penstock::test
