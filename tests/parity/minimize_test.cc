// Minimize on the forward part of programs made by Fluid 1.8.5, compared with the rest of the same programs,
// op by op and variable by variable, and with the initial values in their startup programs.
//
// The forward part consists of the ops before the first op with the backward bit, with the loss's role reset.
// Properties that a program file does not contain come from elsewhere: parameters from program.json; a
// variable without a gradient in the whole program counts as stop_gradient; counters of names continue from
// the names in the forward part; hyperparameters and regularizers are read from the whole program's ops.
#include "framework/autodiff/minimize.h"

#include <gtest/gtest.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "framework/text/printer.h"
#include "operators/all_ops.h"
#include "tests/support/corpus.h"
#include "tests/support/run_program.h"

namespace penstock::test {
namespace {

struct Case {
  std::string main, startup;  // files
  std::string facts;          // program.json, or info.json of a numeric case
};

struct Original {
  Program main, startup;
  nlohmann::json facts;
};

// The number after the last "_", and the text before it. Only tests may parse names: this one must determine
// the values of Fluid's counters.
std::optional<std::pair<std::string, int>> Numbered(std::string_view name) {
  const std::size_t at = name.rfind('_');
  if (at == std::string_view::npos || at + 1 == name.size()) return std::nullopt;
  int n = 0;
  const auto [end, error] = std::from_chars(name.data() + at + 1, name.data() + name.size(), n);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return std::pair(std::string(name.substr(0, at)), n);
}

void Count(UniqueNames& names, std::string_view name) {
  const auto numbered = Numbered(name);
  if (numbered) names.Set(numbered->first, std::max(names.Peek(numbered->first), numbered->second + 1));
}

// "fc_0.tmp_1" comes from the counters of "fc_0.tmp" and of "fc".
UniqueNames CountersAfter(const Program& forward) {
  UniqueNames names;
  for (const VarRef& var : forward.main().vars()) {
    Count(names, var->name);
    const std::size_t dot = var->name.find('.');
    if (dot != std::string::npos) Count(names, var->name.substr(0, dot));
  }
  return names;
}

// Name scopes are numbered across all programs of a process: they start with the whole program's first
// numbers.
void StartScopes(const Program& whole, NameScopes& scopes) {
  NameSet seen;
  for (const OpEntry& entry : whole.main().ops()) {
    const std::string path = entry.op->GetOr<std::string>(kNameScopeAttr, "/");
    if (path == "/") continue;
    const std::string outer = path.substr(1, path.find('/', 1) - 1);
    const auto numbered = Numbered(outer);
    if (!seen.insert(numbered ? numbered->first : outer).second || !numbered) continue;
    scopes.SetCount(numbered->first, numbered->second);
  }
}

std::size_t ForwardCount(const Program& whole) {
  const std::vector<OpEntry>& ops = whole.main().ops();
  std::size_t n = 0;
  while (n < ops.size() && !Has(ops[n].op->role(), OpRole::kBackward)) ++n;
  return n;
}

Program ForwardPart(const Original& original) {
  const Program& whole = original.main;
  const std::size_t count = ForwardCount(whole);
  NameSet forward_vars, added_vars;
  for (std::size_t i = 0; i < whole.main().ops().size(); ++i) {
    const Op& op = *whole.main().ops()[i].op;
    NameSet& vars = i < count ? forward_vars : added_vars;
    for (const std::string& name : op.InputNames()) vars.insert(name);
    for (const std::string& name : op.OutputNames()) vars.insert(name);
  }
  Program forward = whole;
  Block& block = forward.MutableBlock(0);
  std::vector<OpEntry> ops(block.ops().begin(), block.ops().begin() + static_cast<std::ptrdiff_t>(count));
  block.SetOps(ops);
  for (const OpEntry& entry : ops) {
    if (!Has(entry.op->role(), OpRole::kLoss)) continue;
    Op op = *entry.op;
    block.Replace(entry.id, op.SetRole(OpRole::kForward));
  }
  const std::vector<VarRef> vars = block.vars();
  for (const VarRef& var : vars) block.RemoveVar(var->name);
  for (const auto& param : original.facts.at("params")) {
    Var var = *whole.main().FindVar(param.at("name").get<std::string>());
    var.facts.is_parameter = true;
    var.facts.trainable = param.at("trainable").get<bool>();
    var.facts.learning_rate = param.at("learning_rate").get<float>();
    block.SetVar(std::move(var));
  }
  for (const VarRef& var : vars) {
    if (added_vars.contains(var->name) && !forward_vars.contains(var->name)) continue;
    if (block.FindVar(var->name) != nullptr) continue;
    Var kept = *var;
    kept.facts.stop_gradient = whole.main().FindVar(GradName(var->name)) == nullptr;
    block.SetVar(std::move(kept));
  }
  return forward;
}

// The first op that updates a parameter.
const Op* FindUpdate(const Program& whole) {
  for (const OpEntry& entry : whole.main().ops()) {
    const OpDef* def = AllOps().Find(entry.op->type());
    if (def != nullptr && def->optimizer()) return entry.op.get();
  }
  return nullptr;
}

void ReadRegularizers(const Original& original, const NameSet& params, OptimizerSpec& spec) {
  std::map<std::string, std::string> signs;  // by the variable of a parameter's signs
  for (const OpEntry& entry : original.main.main().ops()) {
    const Op& op = *entry.op;
    if (op.role() != OpRole::kOptimize) continue;
    const std::string& x = op.InputName("X");
    if (op.type() == "sign") signs[op.OutputName("Out")] = x;
    if (op.type() != "scale") continue;
    const float coefficient = op.GetOr<float>("scale", 0.0f);
    if (params.contains(x)) {
      spec.param_regularizers[x] = {.kind = Regularizer::Kind::kL2, .coefficient = coefficient};
    } else if (signs.contains(x)) {
      spec.param_regularizers[signs.at(x)] = {.kind = Regularizer::Kind::kL1, .coefficient = coefficient};
    }
  }
}

OptimizerSpec ReadSpec(const Original& original, const Program& forward, const Op& update) {
  const OpDef& def = *AllOps().Find(update.type());
  OptimizerSpec spec{.op_type = update.type()};
  for (const AttrDef& attr : def.attrs()) {
    if (const Attr* value = update.FindAttr(attr.name)) spec.attrs.push_back({attr.name, *value});
  }
  std::string rate = "learning_rate_0";
  if (def.FindInput(def.optimizer()->rate_slot) != nullptr) {
    for (const OpEntry& entry : original.main.main().ops()) {
      if (entry.op->type() != update.type()) continue;
      const std::string& param = entry.op->InputName(def.optimizer()->param_slot);
      if (forward.main().FindVar(param)->facts.learning_rate == 1.0f) {
        rate = entry.op->InputName(def.optimizer()->rate_slot);
      }
    }
  }
  if (forward.main().FindVar(rate) != nullptr) {
    spec.learning_rate = rate;
  } else {
    for (const OpEntry& entry : original.startup.main().ops()) {
      if (entry.op->OutputName("Out") == rate) spec.learning_rate = entry.op->GetOr<float>("value", 0.0f);
    }
  }
  NameSet params;
  for (const auto& param : original.facts.at("params")) params.insert(param.at("name").get<std::string>());
  ReadRegularizers(original, params, spec);
  return spec;
}

void ExpectSameOps(const std::vector<OpRef>& made, const std::vector<OpRef>& expected,
                   const std::string& what) {
  for (std::size_t i = 0; i < std::min(made.size(), expected.size()); ++i) {
    ASSERT_TRUE(made[i]->SameAs(*expected[i]))
        << what << ", op " << i << "\n  made     " << PrintOp(*made[i], PrintOptions::Everything())
        << "\n  expected " << PrintOp(*expected[i], PrintOptions::Everything());
  }
  EXPECT_EQ(made.size(), expected.size()) << what;
}

std::vector<OpRef> OpsOf(const Program& program) {
  std::vector<OpRef> ops;
  for (const OpEntry& entry : program.main().ops()) ops.push_back(entry.op);
  return ops;
}

void ExpectSameVars(const Program& made, const Program& expected) {
  for (const VarRef& var : expected.main().vars()) {
    const Var* ours = made.main().FindVar(var->name);
    ASSERT_NE(ours, nullptr) << var->name << " is missing";
    EXPECT_TRUE(ours->SameAs(*var)) << "made " << PrintVar(*ours) << ", expected " << PrintVar(*var);
  }
  for (const VarRef& var : made.main().vars()) {
    EXPECT_NE(expected.main().FindVar(var->name), nullptr) << var->name << " is not in Fluid's program";
  }
}

void Compare(const Case& files) {
  SCOPED_TRACE(files.main);
  Original original{ProgramOf(files.main), ProgramOf(files.startup),
                    nlohmann::json::parse(BytesOf(files.facts))};
  if (!original.facts.contains("params")) {
    // A numeric case does not list parameters: they are the variables with both an initial value and a
    // gradient.
    nlohmann::json params = nlohmann::json::array();
    for (const OpEntry& entry : original.startup.main().ops()) {
      const std::string& name = entry.op->OutputName("Out");
      if (original.main.main().FindVar(GradName(name)) == nullptr) continue;
      const nlohmann::json param = {{"name", name}, {"trainable", true}, {"learning_rate", 1.0}};
      params.insert(params.begin(), param);
    }
    original.facts["params"] = params;
  }
  Program made = ForwardPart(original);
  const Op* update = FindUpdate(original.main);
  ASSERT_NE(update, nullptr) << "no optimizer that is known";
  const OptimizerSpec spec = ReadSpec(original, made, *update);
  UniqueNames names = CountersAfter(made);
  NameScopes scopes;
  StartScopes(original.main, scopes);
  const NameSet before = [&] {
    NameSet set;
    for (const VarRef& var : made.main().vars()) set.insert(var->name);
    return set;
  }();
  Program startup;
  const Result<MinimizeResult> result =
      Minimize(AllOps(), made, startup, {.names = names, .scopes = scopes}, spec,
               {.loss = original.facts.at("loss").get<std::string>()});
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  ExpectSameOps(OpsOf(made), OpsOf(original.main), "main program");
  ExpectSameVars(made, original.main);
  std::vector<OpRef> initial;
  for (const OpEntry& entry : original.startup.main().ops()) {
    if (!before.contains(entry.op->OutputName("Out"))) initial.push_back(entry.op);
  }
  ExpectSameOps(OpsOf(startup), initial, "startup program");
}

Case ProgramCase(const std::string& id) {
  const std::string folder = CorpusOrSelection() + "/open/programs/" + id + "/";
  return {folder + "main.pb", folder + "startup.pb", folder + "program.json"};
}

TEST(MinimizeParityTest, ModelsAreMinimizedAsByFluid) {
  const std::vector<std::string> ids = {"fit_a_line.sgd",   "wide_linear.sgd", "wide_linear.momentum",
                                        "wide_linear.adam", "lenet.momentum",  "vgg11.momentum.reg_l2"};
  for (const std::string& id : ids) Compare(ProgramCase(id));
  EXPECT_EQ(ids.size(), 6u);
}

TEST(MinimizeParityTest, NumericCasesAreMinimizedAsByFluid) {
  int compared = 0;
  for (const char* model : {"linear", "softmax_reg"}) {
    for (const char* optimizer : {"sgd", "sgd_l2", "momentum", "nesterov", "adam"}) {
      const std::string folder = StrCat(CorpusOrSelection(), "/open/numeric/", model, "/");
      Compare({folder + optimizer + ".main.pb", folder + optimizer + ".startup.pb", folder + "info.json"});
      ++compared;
    }
  }
  EXPECT_EQ(compared, 10);
}

// Excludes gradient clipping, which Minimize does not add; the Python front end makes it from layers. With a
// table sharded by id, Fluid's startup program has the learning rate in another name scope; tests/python
// compares the main programs of both.
bool MinimizeMakes(const Op& op) {
  return AllOps().Find(op.type()) != nullptr &&
         op.GetOr<std::string>(kNameScopeAttr, "").find("gradient_clip") == std::string::npos &&
         !op.GetOr("is_distributed", false);
}

// Whether Minimize makes all that Fluid's minimize added to a program.
bool Known(const std::string& main) {
  const Program whole = ProgramOf(main);
  const std::vector<OpEntry>& ops = whole.main().ops();
  return std::all_of(ops.begin() + static_cast<std::ptrdiff_t>(ForwardCount(whole)), ops.end(),
                     [](const OpEntry& entry) { return MinimizeMakes(*entry.op); });
}

// Further programs are included as soon as their ops are declared.
TEST(MinimizeParityTest, EveryProgramWhoseOpsAreKnownIsMinimizedAsByFluid) {
  if (CorpusFolder().empty()) GTEST_SKIP() << "the corpus is not beside the checkout";
  int programs = 0;
  for (const std::string& id : FilesEndingIn(CorpusFolder() + "/open/programs", "")) {
    const Case files = ProgramCase(id);
    if (!Known(files.main)) continue;
    Compare(files);
    ++programs;
  }
  EXPECT_GE(programs, 43);
  int numeric = 0;
  for (const std::string& model : FilesEndingIn(CorpusFolder() + "/open/numeric", "")) {
    const std::string folder = StrCat(CorpusFolder(), "/open/numeric/", model, "/");
    for (const std::string& optimizer : FilesEndingIn(folder, ".main.pb")) {
      const Case files = {folder + optimizer + ".main.pb", folder + optimizer + ".startup.pb",
                          folder + "info.json"};
      if (!Known(files.main)) continue;
      Compare(files);
      ++numeric;
    }
  }
  EXPECT_GE(numeric, 31);
}

}  // namespace
}  // namespace penstock::test
