// Every op of the corpus is declared, with the slots and attributes that programs use, a kernel, and a
// gradient if Fluid has one.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "framework/wire/wire.h"
#include "operators/all_ops.h"
#include "tests/support/corpus.h"

namespace penstock::test {
namespace {

// The slots and attributes of an op that some program uses.
struct Used {
  std::set<std::string> inputs, outputs, attrs;
};
using Inventory = std::map<std::string, Used>;

void AddNames(const nlohmann::json& names, std::set<std::string>& to) {
  for (const auto& [key, value] : names.items()) to.insert(names.is_array() ? value.get<std::string>() : key);
}

// The list of ops in all examined programs of Fluid.
void AddList(Inventory& all) {
  const auto list = nlohmann::json::parse(BytesOf(CorpusFolder() + "/ops.json"));
  for (const auto& [type, facts] : list.items()) {
    Used& used = all[type];
    AddNames(facts["used_inputs"], used.inputs);
    AddNames(facts["used_outputs"], used.outputs);
    AddNames(facts["used_attrs"], used.attrs);
  }
}

// Ops that layers append.
void AddLayers(Inventory& all) {
  const auto layers = nlohmann::json::parse(BytesOf(CorpusFolder() + "/layers.json"));
  for (const auto& call : layers["calls"]) {
    for (const char* program : {"main", "startup"}) {
      for (const auto& op : call[program]["ops"]) {
        Used& used = all[op["type"].get<std::string>()];
        AddNames(op["inputs"], used.inputs);
        AddNames(op["outputs"], used.outputs);
        AddNames(op["attrs"], used.attrs);
      }
    }
  }
}

// The programs of the goldens, including those with gradients.
void AddGoldens(Inventory& all) {
  for (const char* folder : {"ops", "ops_seq", "ops_sr", "control"}) {
    const std::string path = StrCat(CorpusFolder(), "/open/", folder, "/");
    for (const std::string& name : FilesEndingIn(path, ".pb")) {
      const Result<Program> program = ParseProgram(BytesOf(StrCat(path, name, ".pb")));
      ASSERT_TRUE(program.ok()) << name;
      for (int block = 0; block < program->block_count(); ++block) {
        for (const OpEntry& entry : program->block(block).ops()) {
          Used& used = all[entry.op->type()];
          for (const Slot& slot : entry.op->inputs()) used.inputs.insert(slot.name);
          for (const Slot& slot : entry.op->outputs()) used.outputs.insert(slot.name);
          for (const NamedAttr& attr : entry.op->attrs()) used.attrs.insert(attr.name);
        }
      }
    }
  }
}

// Ops that run without their own kernel.
const std::map<std::string, std::string> kWithoutKernel = {{"feed", "the executor binds what is fed"},
                                                           {"fetch", "the executor reads what is fetched"}};
// Attributes that Fluid's framework puts on every op.
const std::set<std::string> kOfTheFramework = {kRoleAttr, kRoleVarAttr, kNameScopeAttr, kDeviceAttr,
                                               kCallstackAttr};

// The gradient of split is a concat with split's own attributes.
const std::set<std::string> kLeftOver = {"concat.num", "concat.sections"};

void ExpectDeclared(const std::string& type, const Used& used) {
  const OpDef* def = AllOps().Find(type);
  ASSERT_NE(def, nullptr) << type << " is not declared";
  const bool runs_without = kWithoutKernel.contains(type) || !def->not_built().empty();
  EXPECT_NE(def->has_kernel(DeviceKind::kCpu), runs_without) << type << ": kernel";
  for (const std::string& slot : used.inputs) EXPECT_NE(def->FindInput(slot), nullptr) << type << " " << slot;
  for (const std::string& slot : used.outputs)
    EXPECT_NE(def->FindOutput(slot), nullptr) << type << " " << slot;
  for (const std::string& attr : used.attrs) {
    const bool known = kOfTheFramework.contains(attr) || kLeftOver.contains(StrCat(type, ".", attr));
    EXPECT_TRUE(known || def->FindAttr(attr) != nullptr) << type << " " << attr;
  }
}

TEST(Inventory, OpsAreDeclaredAsTheCorpusUsesThem) {
  if (CorpusFolder().empty()) GTEST_SKIP() << "the corpus is not beside this checkout";
  Inventory all;
  AddList(all);
  EXPECT_EQ(all.size(), 296u);
  AddLayers(all);
  AddGoldens(all);
  EXPECT_EQ(all.size(), 332u);
  for (const auto& [type, used] : all) ExpectDeclared(type, used);
}

TEST(Inventory, HasTheGradientsThatFluidHas) {
  if (CorpusFolder().empty()) GTEST_SKIP() << "the corpus is not beside this checkout";
  Inventory all;
  AddList(all);
  AddGoldens(all);
  const std::string suffix = "_grad";
  for (const auto& [type, used] : all) {
    if (!type.ends_with(suffix)) continue;
    const OpDef* forward = AllOps().Find(type.substr(0, type.size() - suffix.size()));
    ASSERT_NE(forward, nullptr) << type;
    EXPECT_TRUE(forward->has_grad()) << type;
  }
}

}  // namespace
}  // namespace penstock::test
