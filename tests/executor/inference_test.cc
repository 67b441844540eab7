// Inference models that Fluid 1.8.5 saved, with parameters read from its files, give its outputs.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "executor/schedule/executor.h"
#include "framework/tensor/serialize.h"
#include "operators/all_ops.h"
#include "tests/support/corpus.h"
#include "tests/support/run_program.h"

namespace penstock {
namespace {

struct Model {
  std::string folder;
  std::vector<std::string> feeds;
  std::vector<std::string> params;
};

Model ReadModel(const std::string& name) {
  const std::string folder = StrCat(test::CorpusOrSelection(), "/open/inference/", name);
  const auto json = nlohmann::json::parse(test::BytesOf(folder + "/inference.json"));
  Model model = {folder, json["feeds"], {}};
  for (const auto& param : json["params"]) model.params.push_back(param["name"]);
  std::sort(model.params.begin(), model.params.end());
  return model;
}

void LoadSeparate(const Model& model, Scope& scope) {
  for (const std::string& name : model.params) {
    const std::string bytes = test::BytesOf(StrCat(model.folder, "/separate/", name));
    std::string_view rest = bytes;
    auto tensor = ReadTensor(rest);
    ASSERT_TRUE(tensor.ok()) << tensor.status().ToString();
    EXPECT_TRUE(rest.empty());
    test::SetTensor(scope, name, *tensor);
  }
}

// One file with the tensors in the order of their names.
void LoadCombined(const Model& model, Scope& scope) {
  const std::string bytes = test::BytesOf(model.folder + "/combined/params");
  std::string_view rest = bytes;
  for (const std::string& name : model.params) {
    auto tensor = ReadTensor(rest);
    ASSERT_TRUE(tensor.ok()) << tensor.status().ToString();
    test::SetTensor(scope, name, *tensor);
  }
  EXPECT_TRUE(rest.empty());
}

// The sequences of a batch, by their lengths.
void SetLengths(Tensor& batch, const Tensor& lengths) {
  LoDLevel offsets = {0};
  for (const std::int64_t length : lengths.Span<std::int64_t>())
    offsets.push_back(offsets.back() + static_cast<std::uint64_t>(length));
  batch.set_lod({offsets});
}

void CompareOutputs(const Model& model, const Program& program, Scope& scope) {
  const test::Arrays io = test::ArraysOf(model.folder + "/io.npz");
  exec::Executor executor(AllOps(), {.threads = 1});
  std::vector<exec::Feed> feeds = test::FeedsOf(io, "feed:", model.feeds);
  for (exec::Feed& feed : feeds) {
    if (const auto lens = io.find("lens:" + feed.name); lens != io.end())
      SetLengths(feed.tensor, lens->second);
  }
  auto got = executor.Run(program, scope, feeds, {});
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  ASSERT_FALSE(got->empty());
  for (std::size_t i = 0; i < got->size(); ++i) {
    const std::string key = StrCat("out:", i);
    const Status near = test::NearValues(key, *(*got)[i].If<Tensor>(), io.at(key), 1e-4, 1e-5);
    EXPECT_TRUE(near.ok()) << near.ToString();
  }
}

class Inference : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (std::filesystem::is_directory(StrCat(test::CorpusOrSelection(), "/open/inference/", GetParam())))
      return;
    ASSERT_TRUE(test::CorpusFolder().empty()) << "the corpus lacks a model";
    GTEST_SKIP() << "only in the whole corpus";
  }
};

TEST_P(Inference, SeparateFilesGiveFluidsOutputs) {
  const Model model = ReadModel(GetParam());
  Scope scope;
  LoadSeparate(model, scope);
  CompareOutputs(model, test::ProgramOf(model.folder + "/separate/__model__"), scope);
}

TEST_P(Inference, OneCombinedFileGivesFluidsOutputs) {
  const Model model = ReadModel(GetParam());
  Scope scope;
  LoadCombined(model, scope);
  CompareOutputs(model, test::ProgramOf(model.folder + "/combined/model"), scope);
}

INSTANTIATE_TEST_SUITE_P(Corpus, Inference,
                         testing::Values("fit_a_line", "softmax_reg", "lenet_tiny", "ctr_infer"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace penstock
