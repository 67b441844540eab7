// Any program and configuration give role programs or an error with a message, never a crash.
#include "transpiler/pipeline/transpile.h"

#include <gtest/gtest.h>

#include <random>

#include "framework/wire/wire.h"
#include "operators/all_ops.h"
#include "tests/support/corpus.h"
#include "tests/support/run_program.h"
#include "transpiler/pipeline/check_role_set.h"

namespace penstock {
namespace {

using Random = std::mt19937_64;

struct Pair {
  Program main, startup;
};

const std::vector<Pair>& Seeds() {
  static const std::vector<Pair> seeds = [] {
    std::vector<Pair> out;
    const std::string programs = test::CorpusOrSelection() + "/open/programs/";
    for (const char* id : {"fit_a_line.sgd", "wide_linear.momentum", "wide_linear.adam", "lstm_text.adam"}) {
      const std::string folder = programs + id;
      out.push_back({test::ProgramOf(folder + "/main.pb"), test::ProgramOf(folder + "/startup.pb")});
    }
    return out;
  }();
  return seeds;
}

template <typename Range>
const auto& OneOf(const Range& range, Random& random) {
  return range[random() % range.size()];
}

std::string SomeName(const Block& block, Random& random) {
  if (block.vars().empty() || random() % 8 == 0)
    return OneOf(std::vector<std::string>{"", "@EMPTY@", "x:1", "w"}, random);
  return OneOf(block.vars(), random)->name;
}

void DamageOp(Block& block, Random& random) {
  if (block.ops().empty()) return;
  const OpEntry entry = OneOf(block.ops(), random);
  Op op = *entry.op;
  switch (random() % 8) {
    case 0:
      block.Remove(entry.id);
      return;
    case 1:
      op.SetRole(static_cast<OpRole>(OneOf(std::vector<int>{0, 1, 2, 4, 16, 18, 257, -1}, random)));
      break;
    case 2:
      op.SetRolePair(SomeName(block, random), SomeName(block, random));
      break;
    case 3:
      op.Set(kRoleVarAttr, std::vector<std::string>{SomeName(block, random)});  // half a pair
      break;
    case 4:
      if (!op.inputs().empty()) op.AddInput(OneOf(op.inputs(), random).name, {SomeName(block, random)});
      break;
    case 5:
      if (!op.outputs().empty()) op.AddOutput(OneOf(op.outputs(), random).name, {});
      break;
    case 6:
      op.SetType(OneOf(std::vector<std::string>{"sgd", "momentum", "adam", "lookup_table", "lookup_table_v2",
                                                "nce", "recv", "listen_and_serv", "unheard_of", ""},
                       random));
      break;
    default:
      op.Set("remote_prefetch", true).Set("sub_block", BlockRef{static_cast<int>(random() % 5) - 1});
  }
  block.Replace(entry.id, std::move(op));
}

void DamageVar(Block& block, Random& random) {
  if (block.vars().empty()) return;
  Var var = *OneOf(block.vars(), random);
  switch (random() % 5) {
    case 0:
      block.RemoveVar(var.name);
      return;
    case 1:
      var.type.reset();
      break;
    case 2:
      if (var.type) {
        var.type->shape =
            OneOf(std::vector<Shape>{{}, {0}, {-1}, {1}, {1ll << 62, 1ll << 62}, {7, -5}, {5, 5000}}, random);
      }
      break;
    case 3:
      var.kind = OneOf(std::vector<VarKind>{VarKind::kSelectedRows, VarKind::kRaw, VarKind::kTensor}, random);
      break;
    default:
      var.persistable = !var.persistable;
  }
  var.wire_bytes.clear();
  block.SetVar(std::move(var));
}

void Damage(Program& program, Random& random) {
  for (std::uint64_t n = random() % 6; n > 0; --n) {
    Block& block =
        program.MutableBlock(static_cast<int>(random() % static_cast<unsigned>(program.block_count())));
    if (random() % 2 == 0) {
      DamageOp(block, random);
    } else {
      DamageVar(block, random);
    }
  }
}

plan::TranspileConfig SomeConfig(Random& random) {
  plan::TranspileConfig config;
  config.dialect = random() % 2 == 0 ? plan::Dialect::kDefault : plan::Dialect::kFluid18;
  config.trainers = static_cast<int>(random() % 5);
  config.trainer_ids = {0, static_cast<int>(random() % 6) - 1};
  for (std::uint64_t i = random() % 5; i > 0; --i) config.pservers.push_back(StrCat("h:", 1 + random() % 20));
  config.slice_params = random() % 4 != 0;
  constexpr plan::Slicing kSlicings[] = {plan::Slicing::kFluid, plan::Slicing::kEven, plan::Slicing::kMxnet};
  constexpr plan::Placement kPlacements[] = {plan::Placement::kRoundRobin, plan::Placement::kHashName,
                                             plan::Placement::kSizeBalanced};
  if (config.slice_params) config.slicing = kSlicings[random() % 3];
  if (config.slicing != plan::Slicing::kMxnet) config.placement = kPlacements[random() % 3];
  config.big_array_bound = static_cast<std::int64_t>(random() % 20000) - 10;
  if (random() % 2 == 0) config.chunk_bytes = static_cast<std::int64_t>(random() % 20000) - 10;
  config.min_block_size = static_cast<std::int64_t>(random() % 20000) - 10;
  config.allow_small_blocks = random() % 4 != 0;
  if (random() % 2 == 0) config.sync_mode_argument = random() % 2 == 0;
  config.runtime_split_send_recv = random() % 4 == 0;
  config.half_async = random() % 4 == 0;
  config.completely_not_async = random() % 4 == 0;
  config.dc_asgd = random() % 4 == 0;
  config.shared_transpiler = random() % 4 == 0;
  return config;
}

TEST(Fuzz, TranspilingADamagedProgramGivesProgramsOrAnError) {
  Random random(20);
  int made = 0;
  for (int round = 0; round < 3000; ++round) {
    Pair pair = OneOf(Seeds(), random);
    Damage(pair.main, random);
    Damage(pair.startup, random);
    const Result<RoleSet> roles = Transpile(AllOps(), pair.main, pair.startup, SomeConfig(random));
    if (!roles.ok()) {
      EXPECT_FALSE(roles.status().message().empty());
      EXPECT_TRUE(StartsWith(roles.status().id(), "E-")) << roles.status().ToString();
      continue;
    }
    ++made;
    EXPECT_EQ(*plan::ParsePlan(plan::PrintPlan(roles->plan)), roles->plan);
    for (const TrainerPrograms& role : roles->trainers)
      EXPECT_TRUE(ParseProgram(SerializeProgram(role.main)).ok());
    if (round % 10 == 0) check::CheckRoles(FilesOf(*roles), AllOps());
  }
  EXPECT_GT(made, 100);  // otherwise the damage is too great to reach the passes
}

}  // namespace
}  // namespace penstock
