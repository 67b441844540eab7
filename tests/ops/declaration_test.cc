// Properties of all declarations together: none is missing, and each has the schema of Fluid's op.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "operators/all_ops.h"
#include "tests/support/corpus.h"

namespace penstock::test {
namespace {

std::vector<std::string> Matches(const std::string& text, const std::string& pattern) {
  std::vector<std::string> found;
  const std::regex regex(pattern);
  for (std::sregex_iterator it(text.begin(), text.end(), regex); it != std::sregex_iterator(); ++it) {
    found.push_back((*it)[1]);
  }
  return found;
}

// The build finds Register functions at the beginning of a line (tools/dev/cmake/register_all_ops.cmake).
TEST(Declarations, EachRegisterFunctionIsFound) {
  int found = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(SourceFolder() + "/operators")) {
    if (entry.path().extension() != ".cc") continue;
    const std::string text = BytesOf(entry.path());
    const std::size_t all = Matches(text, R"((void\s+Register\w+)\s*\(\s*OpRegistry)").size();
    EXPECT_EQ(Matches(text, R"(\n(void Register\w+)\(OpRegistry& ops\) \{)").size(), all) << entry.path();
    found += static_cast<int>(all);
  }
  EXPECT_GT(found, 200);
}

// operators/README.md, Decisions.
TEST(Declarations, EachKernelTemplateHasANameOfItsOwn) {
  std::map<std::string, std::string> files;  // by name
  for (const auto& entry : std::filesystem::recursive_directory_iterator(SourceFolder() + "/operators")) {
    if (entry.path().extension() != ".cc") continue;
    for (const std::string& name : Matches(
             BytesOf(entry.path()), R"(\ntemplate <typename Device, typename \w+>\nclass (\w+) : public)")) {
      const auto [at, is_new] = files.emplace(name, entry.path().filename());
      EXPECT_TRUE(is_new) << name << " stands in " << at->second << " and in " << entry.path().filename();
    }
  }
  EXPECT_GT(files.size(), 50u);
}

TEST(Declarations, EachOpDeclaresItsGradient) {
  std::set<std::string> grads;
  for (const OpDef* def : AllOps().All()) {
    if (def->grad()) grads.insert(def->grad()->type.empty() ? def->type() + "_grad" : def->grad()->type);
  }
  for (const OpDef* def : AllOps().All()) {
    EXPECT_FALSE(def->summary().empty()) << def->type();
    // Gradient ops, and their gradient ops, which have none: a third-order gradient is an error.
    if (grads.contains(def->type()) || def->type().ends_with("_grad_grad")) continue;
    EXPECT_TRUE(def->has_grad() || def->no_grad()) << def->type() << " has no gradient and does not say so";
    EXPECT_FALSE(def->doc().empty()) << def->type();
  }
}

TEST(Declarations, NameTheOpsThatDrawRandomNumbers) {
  int drawing = 0;
  for (const OpDef* def : AllOps().All()) {
    if (def->type().ends_with("_grad")) continue;
    const bool drawn = def->effects().Has(Effect::kRandom);
    drawing += drawn ? 1 : 0;
    for (const char* attr : {"seed", "startup_seed", "use_random"}) {
      EXPECT_TRUE(drawn || def->FindAttr(attr) == nullptr) << def->type() << " has " << attr;
    }
  }
  EXPECT_GT(drawing, 15);
}

TEST(Declarations, StateHowOpsTreatSlices) {
  const auto on_slices = [](const Op& op) { return AllOps().Find(op.type())->on_slices(op); };
  EXPECT_EQ(on_slices(Op("relu")), OnSlices::kByRows);
  EXPECT_EQ(on_slices(Op("merge_selected_rows")), OnSlices::kByRows);
  EXPECT_EQ(on_slices(Op("get_tensor_from_selected_rows")), OnSlices::kByRows);
  EXPECT_EQ(on_slices(Op("reduce_sum").Set("reduce_all", true)), OnSlices::kAddsUp);
  EXPECT_EQ(on_slices(Op("reduce_sum")), OnSlices::kNeedsWhole);
  EXPECT_EQ(on_slices(Op("reduce_max").Set("reduce_all", true)), OnSlices::kNeedsWhole);
  EXPECT_EQ(on_slices(Op("softmax")), OnSlices::kNeedsWhole);
}

TEST(Declarations, EachOptimizerNamesItsStateAsFluidDoes) {
  using States = std::vector<std::pair<std::string, std::string>>;
  std::map<std::string, States> found;
  for (const OpDef* def : AllOps().All()) {
    if (!def->optimizer()) continue;
    States& states = found[def->type()];
    for (const StateDef& state : def->optimizer()->states) states.emplace_back(state.slot, state.accumulator);
  }
  const States adam = {{"Moment1", "moment1"},
                       {"Moment2", "moment2"},
                       {"Beta1Pow", "beta1_pow_acc"},
                       {"Beta2Pow", "beta2_pow_acc"}};
  const std::map<std::string, States> expected = {
      {"adadelta", {{"AvgSquaredGrad", "_avg_squared_grad"}, {"AvgSquaredUpdate", "_avg_squared_update"}}},
      {"adagrad", {{"Moment", "moment"}}},
      {"adam", adam},
      {"adamax", {{"Moment", "moment"}, {"InfNorm", "inf_norm"}, {"Beta1Pow", "beta1_pow_acc"}}},
      {"decayed_adagrad", {{"Moment", "moment"}}},
      {"dgc_momentum", {{"Velocity", "velocity"}}},
      {"dpsgd", {}},
      {"ftrl", {{"SquaredAccumulator", "squared"}, {"LinearAccumulator", "linear"}}},
      {"keyed_update",
       {{"State1", "state1"}, {"State2", "state2"}, {"State3", "state3"}, {"Product", "product"}}},
      {"keyed_update_whole", {{"State1", "state1"}, {"State2", "state2"}, {"History", "history"}}},
      {"lamb", adam},
      {"lars_momentum", {{"Velocity", "velocity"}}},
      {"momentum", {{"Velocity", "velocity"}}},
      {"proximal_adagrad", {{"Moment", "moment"}}},
      {"proximal_gd", {}},
      {"rmsprop", {{"Moment", "momentum"}, {"MeanSquare", "mean_square"}, {"MeanGrad", "mean_grad"}}},
      {"sgd", {}}};
  EXPECT_EQ(found, expected);
}

// Compares slots and attributes with Fluid's own OpProtos.
class FluidSchema : public testing::Test {
 protected:
  static void ExpectSlots(const std::string& op, const nlohmann::json& protos,
                          const std::vector<SlotDef>& slots) {
    static const std::set<std::string> kOursAlone = {"send.Residual", "send.ResidualOut"};
    std::set<std::string> theirs, ours;
    for (const SlotDef& slot : slots) {
      if (!kOursAlone.contains(StrCat(op, ".", slot.name))) ours.insert(slot.name);
    }
    for (const auto& proto : protos) {
      const std::string name = proto["name"];
      theirs.insert(name);
      const auto slot = std::ranges::find(slots, name, &SlotDef::name);
      if (slot == slots.end()) continue;
      EXPECT_EQ(slot->repeated, proto["duplicable"].get<bool>()) << op << " slot " << name << ": repeated";
      EXPECT_EQ(slot->intermediate, proto["intermediate"].get<bool>())
          << op << " slot " << name << ": intermediate";
      // Ours may be optional if Fluid's programs omit a slot that its schema requires.
      EXPECT_TRUE(slot->optional || !proto["dispensable"].get<bool>())
          << op << " slot " << name << ": optional";
    }
    EXPECT_EQ(ours, theirs) << op;
  }

  static void ExpectAttrs(const std::string& op, const nlohmann::json& protos,
                          const std::vector<AttrDef>& attrs) {
    static const std::set<std::string> kFrameworks = {kRoleAttr, kRoleVarAttr, kNameScopeAttr, kDeviceAttr,
                                                      kCallstackAttr};
    static const std::map<std::string, AttrKind> kKinds = {
        {"INT", AttrKind::kInt},      {"FLOAT", AttrKind::kFloat},    {"STRING", AttrKind::kString},
        {"INTS", AttrKind::kInts},    {"FLOATS", AttrKind::kFloats},  {"STRINGS", AttrKind::kStrings},
        {"BOOLEAN", AttrKind::kBool}, {"BOOLEANS", AttrKind::kBools}, {"BLOCK", AttrKind::kBlock},
        {"LONG", AttrKind::kLong},    {"BLOCKS", AttrKind::kBlocks},  {"LONGS", AttrKind::kLongs}};
    // Attributes that Fluid's op does not have.
    static const std::map<std::string, std::string> kOursAlone = {{"listen_and_serv", "start_values"},
                                                                  {"lookup_table", "row_policy"},
                                                                  {"lookup_table_v2", "row_policy"}};
    std::set<std::string> theirs, ours;
    for (const AttrDef& attr : attrs) ours.insert(attr.name);
    if (const auto own = kOursAlone.find(op); own != kOursAlone.end()) theirs.insert(own->second);
    for (const auto& proto : protos) {
      const std::string name = proto["name"];
      if (kFrameworks.contains(name)) continue;
      theirs.insert(name);
      const auto attr = std::ranges::find(attrs, name, &AttrDef::name);
      if (attr == attrs.end()) continue;
      EXPECT_EQ(attr->kind, kKinds.at(proto["type"])) << op << " attribute " << name;
      if (!proto["default"].is_null()) ExpectDefault(op, *attr, proto["default"]);
    }
    EXPECT_EQ(ours, theirs) << op;
  }

  static void ExpectDefault(const std::string& op, const AttrDef& attr, const nlohmann::json& expected) {
    ASSERT_TRUE(attr.default_value.has_value()) << op << " attribute " << attr.name;
    const Attr& value = *attr.default_value;
    const std::string text = AttrToString(value);
    switch (KindOf(value)) {
      case AttrKind::kInt:
        EXPECT_EQ(std::get<std::int32_t>(value), expected) << op << " " << attr.name;
        break;
      case AttrKind::kLong:
        EXPECT_EQ(std::get<std::int64_t>(value), expected) << op << " " << attr.name;
        break;
      case AttrKind::kBool:
        EXPECT_EQ(std::get<bool>(value), expected.get<bool>()) << op << " " << attr.name;
        break;
      case AttrKind::kString:
        EXPECT_EQ(std::get<std::string>(value), expected) << op << " " << attr.name;
        break;
      case AttrKind::kFloat:
        EXPECT_EQ(std::get<float>(value), static_cast<float>(expected.get<double>()))
            << op << " " << attr.name;
        break;
      case AttrKind::kStrings:
        EXPECT_EQ(std::get<std::vector<std::string>>(value), expected.get<std::vector<std::string>>())
            << op << attr.name;
        break;
      case AttrKind::kInts:
        EXPECT_EQ(std::get<std::vector<std::int32_t>>(value), expected.get<std::vector<std::int32_t>>())
            << op << attr.name;
        break;
      case AttrKind::kFloats:
        EXPECT_EQ(std::get<std::vector<float>>(value), expected.get<std::vector<float>>()) << op << attr.name;
        break;
      default:
        EXPECT_TRUE(expected.empty()) << op << " attribute " << attr.name << " is " << text;
    }
  }
};

TEST_F(FluidSchema, EachOpMatchesIt) {
  if (CorpusFolder().empty()) GTEST_SKIP() << "the corpus is not beside this checkout";
  const auto inventory = nlohmann::json::parse(BytesOf(CorpusFolder() + "/ops.json"));
  int compared = 0;
  for (const OpDef* def : AllOps().All()) {
    if (!inventory.contains(def->type()) || inventory[def->type()]["proto"].is_null()) continue;
    const auto& proto = inventory[def->type()]["proto"];
    ExpectSlots(def->type(), proto["inputs"], def->inputs());
    ExpectSlots(def->type(), proto["outputs"], def->outputs());
    ExpectAttrs(def->type(), proto["attrs"], def->attrs());
    ++compared;
  }
  EXPECT_EQ(compared, 194);  // all ops with an OpProto
}

}  // namespace
}  // namespace penstock::test
