#include "tests/parity/transpile/differences.h"

#include <algorithm>

#include "operators/all_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::test {
namespace {

bool IsTrainerMain(const RoleFile& file) { return !file.pserver && !file.startup; }

void ChangeOps(Program& program, int block, const std::function<bool(Op&)>& change) {
  const std::vector<OpEntry> ops = program.block(block).ops();
  for (const OpEntry& entry : ops) {
    Op op = *entry.op;
    if (change(op)) program.MutableBlock(block).Replace(entry.id, std::move(op));
  }
}

// --- D-send-trainer-id

bool SendsAsAnother(const CaseFolder&, const RoleSet&, const RoleFile& file) {
  return IsTrainerMain(file) && file.index != 0;
}

void SendAsOneself(const CaseFolder&, const RoleSet&, const RoleFile& file, Program& program) {
  ChangeOps(program, 0, [&](Op& op) {
    if (op.type() != "send") return false;
    op.Set("trainer_id", file.index);
    return true;
  });
}

// --- D-one-trainer

bool OneTrainer(const CaseFolder& folder, const RoleSet&, const RoleFile& file) {
  return folder.job.config.trainers == 1 && !file.startup;
}

// The trainer's pieces get the suffix that the pserver waits for. Pservers only quote the name, in
// op_role_var.
void AddSuffix(const CaseFolder&, const RoleSet& roles, const RoleFile& file, Program& program) {
  for (const ParamPlacement& param : roles.plan.params) {
    if (file.pserver) {
      if (param.sliced()) continue;
      for (int block = 1; block < program.block_count(); ++block) {
        ChangeOps(program, block, [&](Op& op) {
          auto pair = op.GetOr(kRoleVarAttr, std::vector<std::string>());
          std::replace(pair.begin(), pair.end(), param.grad, ReceivedGradName(param, 0, 0));
          op.Set(kRoleVarAttr, std::move(pair));
          return true;
        });
      }
      continue;
    }
    for (std::size_t i = 0; i < param.slices.size(); ++i) {
      const int slice = static_cast<int>(i);
      program.MutableBlock(0).RenameVar(MergedGradName(param, slice), ReceivedGradName(param, slice, 0));
    }
  }
}

// --- D-clip

bool InClipScope(const Op& op) {
  return op.GetOr<std::string>(kNameScopeAttr, "").find("/gradient_clip") == 0 &&
         op.role() == Role::kOptimize;
}

bool ClipsByOptimizer(const CaseFolder& folder, const RoleSet&, const RoleFile&) {
  const auto& ops = folder.main.main().ops();
  return std::any_of(ops.begin(), ops.end(), [](const OpEntry& entry) { return InClipScope(*entry.op); });
}

// As Fluid transpiles the same program if the clip ops are made by set_gradient_clip, whose scope it knows.
void AsSetGradientClip(const CaseFolder& folder, const RoleSet&, const RoleFile& file, Program& program) {
  Program main = folder.main;
  std::vector<std::pair<std::string, std::string>> scopes;
  ChangeOps(main, 0, [](Op& op) {
    if (!InClipScope(op)) return false;
    op.Set(kNameScopeAttr, op.GetOr<std::string>(kNameScopeAttr, "") + "@CLIP");
    return true;
  });
  TranspileConfig config = folder.job.config;
  config.dialect = Dialect::kFluid18;
  const Result<RoleSet> roles = Transpile(AllOps(), main, folder.startup, config);
  PENSTOCK_CHECK(roles.ok(), roles.status().ToString());
  for (const auto& [role, made] : RoleFilesOf(*roles)) {
    if (role.name == file.name) program = *made;
  }
  ChangeOps(program, 0, [](Op& op) {
    const std::string scope = op.GetOr<std::string>(kNameScopeAttr, "");
    if (!scope.ends_with("@CLIP")) return false;
    op.Set(kNameScopeAttr, scope.substr(0, scope.size() - std::string_view("@CLIP").size()));
    return true;
  });
}

}  // namespace

const std::vector<Difference>& Differences() {
  // In the order in which they are applied: the first makes a whole new program.
  static const std::vector<Difference> kDifferences = {
      {"D-clip", "Q-02", ClipsByOptimizer, AsSetGradientClip},
      {"D-send-trainer-id", "Q-54", SendsAsAnother, SendAsOneself},
      {"D-one-trainer", "Q-06", OneTrainer, AddSuffix},
  };
  return kDifferences;
}

}  // namespace penstock::test
