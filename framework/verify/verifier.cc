#include "framework/verify/verifier.h"

#include "framework/ir/block_uses.h"
#include "framework/ir/role.h"
#include "framework/text/describe.h"
#include "framework/verify/scene.h"

namespace penstock {
std::span<const BlockRef> BlocksOf(const Attr& attr) {
  if (const auto* one = std::get_if<BlockRef>(&attr)) return {one, 1};
  if (const auto* many = std::get_if<std::vector<BlockRef>>(&attr)) return *many;
  return {};
}

const std::vector<VerifyRule>& VerifierRules() {
  // Rules about blocks come first, because other rules walk from a block to its parents.
  static const std::vector<VerifyRule> rules = {
      {"E-verify-block-parent", "block 0 has no parent, every other block has an earlier one",
       CheckBlockParents},
      {"E-verify-block-index",
       "a block attribute names a block of the program, and not one that the op stands in",
       CheckBlockReferences},
      {"E-verify-undeclared", "every argument is declared in the op's block or in one around it",
       CheckDeclared},
      {"E-verify-order", "a temporary is written before it is read", CheckWrittenBeforeRead},
      {"E-verify-sent-twice", "a variable is sent at most once in a step", CheckSentOnce},
      {"E-op", "an op that the registry knows fits its schema", CheckSchemas},
      {"E-shape", "the declared types of its outputs are those that follow from its inputs", CheckShapes},
  };
  return rules;
}

VerifyScene::VerifyScene(const Program& program, const VerifyOptions& options)
    : program_(program), options_(options), declarations_(static_cast<std::size_t>(program.block_count())) {
  if (options.before == nullptr || options.before->block_count() == 1) return;
  for (int i = 1; i < options.before->block_count(); ++i) left_behind_.insert(i);
  for (const int block : ReachedBlocks(program)) left_behind_.erase(block);
}

bool IsName(std::string_view arg) { return !arg.empty() && arg != kEmptyVarName; }

Declarations::Declarations(const Program& program, int block) {
  constexpr std::size_t kTogether = 256;  // names per batch look-up
  std::vector<std::string_view> names;
  names.reserve(kTogether);
  const std::vector<OpEntry>& ops = program.block(block).ops();
  begins_.reserve(2 * ops.size() + 1);
  all_.reserve(2 * ops.size());  // most ops have at least two arguments
  for (const OpEntry& entry : ops) {
    for (const auto* slots : {&entry.op->inputs(), &entry.op->outputs()}) {
      begins_.push_back(all_.size() + names.size());
      for (const Slot& slot : *slots) {
        for (const std::string& name : slot.args) {
          names.push_back(name);
          if (names.size() < kTogether) continue;
          LookUp(program, block, names);
          names.clear();
        }
      }
    }
  }
  LookUp(program, block, names);
  begins_.push_back(all_.size());
}

void Declarations::LookUp(const Program& program, int block, std::span<const std::string_view> names) {
  const Block& here = program.block(block);
  std::vector<std::int64_t> positions(names.size());
  here.VarPositions(names, positions);
  std::vector<std::string_view> elsewhere;
  const std::size_t begin = all_.size();
  for (std::size_t i = 0; i < names.size(); ++i) {
    Declaration& found = all_.emplace_back();
    if (!IsName(names[i])) continue;
    found.here = static_cast<std::int32_t>(positions[i]);
    found.missing = found.here < 0;
    if (found.missing) {
      elsewhere.push_back(names[i]);
    } else {
      found.var = here.vars()[static_cast<std::size_t>(found.here)].get();
    }
  }
  if (elsewhere.empty()) return;
  std::vector<const Var*> around(elsewhere.size());
  if (block != 0) program.FindVars(block, elsewhere, around);
  auto next = around.begin();
  for (std::size_t i = begin; i < all_.size(); ++i) {
    Declaration& found = all_[i];
    if (!found.missing) continue;
    found.var = *next++;
    found.missing = found.var == nullptr;
    complete_ = complete_ && !found.missing;
  }
}

const Declarations& VerifyScene::DeclarationsIn(int block) {
  std::optional<Declarations>& found = declarations_[static_cast<std::size_t>(block)];
  if (!found) found.emplace(program_, block);
  return *found;
}

bool VerifyScene::Touched(const Block& block, const OpEntry& entry) const {
  const Program* before = options_.before;
  if (before == nullptr || block.index() >= before->block_count()) return true;
  return before->block(block.index()).FindOp(entry.id) != entry.op.get();
}

void VerifyScene::Add(Status violation) {
  if (!violation.ok() && !Full()) violations_.push_back(std::move(violation));
}

void VerifyScene::AddAt(Status violation, const Block& block, std::size_t position) {
  if (Full()) return;
  Add(AtOp(std::move(violation), program_, block.index(), static_cast<int>(position),
           *block.ops()[position].op));
}

std::vector<Status> FindViolations(const Program& program, const VerifyOptions& options) {
  VerifyScene scene(program, options);
  for (const VerifyRule& rule : VerifierRules()) {
    rule.check(scene);
    // If a parent does not exist or the parents form a cycle, other rules cannot walk the blocks.
    if (rule.check == CheckBlockParents) {
      std::vector<Status> found = scene.TakeViolations();
      if (!found.empty()) return found;
    }
    if (scene.Full()) break;
  }
  return scene.TakeViolations();
}

Status VerifyProgram(const Program& program, const VerifyOptions& options) {
  VerifyOptions first = options;
  first.findings_max = 1;
  std::vector<Status> violations = FindViolations(program, first);
  return violations.empty() ? OkStatus() : std::move(violations.front());
}

}  // namespace penstock
