// Rules about variables' names: declared, written before read, sent once.
#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "framework/base/view_map.h"
#include "framework/ir/block_uses.h"
#include "framework/ir/role.h"
#include "framework/roles/views.h"
#include "framework/text/lexer.h"
#include "framework/verify/scene.h"

namespace penstock {
namespace {

constexpr std::string_view kSend = "send";

// Calls visit(slot, argument, declaration) for each argument.
template <typename Visit>
void ForEachDeclared(const std::vector<Slot>& slots, std::span<const Declaration> declarations,
                     const Visit& visit) {
  auto next = declarations.begin();
  for (const Slot& slot : slots) {
    for (const std::string& arg : slot.args) visit(slot, arg, *next++);
  }
}

// The variables that a send op sends, each with the name of its message if the op gives one per variable. A
// send for no parameter reports touched rows to the communicator; it may list a variable twice, which counts
// once.
std::vector<std::pair<std::string, std::string>> SentBy(const Op& op) {
  const ArgList& vars = op.Input("X");
  const roles::Names names = roles::SendView(op).messages();
  std::vector<std::pair<std::string, std::string>> sent;
  for (std::size_t i = 0; i < vars.size(); ++i) {
    if (!IsName(vars[i])) continue;
    std::pair one(vars[i], names.size() == vars.size() ? names[i] : std::string());
    const bool tells = !one.second.empty() && op.RolePairs().empty();
    if (!tells || std::find(sent.begin(), sent.end(), one) == sent.end()) sent.push_back(std::move(one));
  }
  return sent;
}

// Whether the variable is declared in this block and gets its value only from this block's ops: it is not
// fed, not kept between steps, and not filled element by element as arrays are.
bool IsTemporary(const Declaration& declaration) {
  const Var* var = declaration.var;
  return declaration.here >= 0 && !var->persistable && !var->facts.is_data &&
         (var->kind == VarKind::kTensor || var->kind == VarKind::kSelectedRows);
}

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

void ReportOrder(const Block& block, std::size_t reader, const std::vector<std::size_t>& first_write,
                 std::unordered_set<const Var*>& reported, VerifyScene& scene) {
  const Op& op = *block.ops()[reader].op;
  ForEachDeclared(
      op.inputs(), scene.DeclarationsIn(block.index()).InputsOf(reader),
      [&](const Slot& slot, const std::string& arg, const Declaration& declaration) {
        if (!IsTemporary(declaration)) return;
        const std::size_t write = first_write[static_cast<std::size_t>(declaration.here)];
        if (write == kNever || write <= reader || !reported.insert(declaration.var).second) return;
        scene.AddAt(InvalidArgument("E-verify-order", SpellName(op.type()), ": input ", SpellName(slot.name),
                                    " (", SpellName(arg), ") is read before op ", write, " (",
                                    SpellName(block.ops()[write].op->type()), ") first writes it"),
                    block, reader);
      });
}

void CheckOrderIn(const Block& block, VerifyScene& scene) {
  const Declarations& declarations = scene.DeclarationsIn(block.index());
  // The first write of each temporary, by its position in the block. A temporary that no op writes is fed. If
  // the op that first writes it also reads it, the op updates it in place.
  std::vector<std::size_t> first_write(block.vars().size(), kNever);
  for (std::size_t i = 0; i < block.ops().size(); ++i) {
    for (const Declaration& declaration : declarations.OutputsOf(i)) {
      if (!IsTemporary(declaration)) continue;
      std::size_t& first = first_write[static_cast<std::size_t>(declaration.here)];
      first = std::min(first, i);
    }
  }
  std::unordered_set<const Var*> reported;
  for (std::size_t i = 0; i < block.ops().size(); ++i) {
    const auto inputs = declarations.InputsOf(i);
    const bool early = std::any_of(inputs.begin(), inputs.end(), [&](const Declaration& declaration) {
      if (declaration.here < 0) return false;
      const std::size_t write = first_write[static_cast<std::size_t>(declaration.here)];
      return write != kNever && write > i;  // set only for temporaries
    });
    if (early) ReportOrder(block, i, first_write, reported, scene);
  }
}

// Whether the slot takes a raw variable, such as a reader's queue, that the process puts into the scope.
// Fluid does not declare such variables.
bool TakesFromScope(const OpRegistry* ops, const Op& op, const Slot& slot) {
  const OpDef* def = ops == nullptr ? nullptr : ops->Find(op.type());
  const SlotDef* input = def == nullptr ? nullptr : def->FindInput(slot.name);
  return input != nullptr && input->kinds != KindSet::Any() && input->kinds.Has(VarKind::kRaw);
}

// The gradients that a gradient block gets from the op that runs it: those of the variables that the op's
// string-list attributes name. The gradient of a step gets them from that of the next step. Fluid does not
// declare them.
class GivenGradients {
 public:
  GivenGradients(const Program& program, int block) {
    if (program.block(block).forward_block() < 0) return;
    for (int b = 0; b < program.block_count(); ++b) {
      for (const OpEntry& entry : program.block(b).ops()) {
        if (!entry.op->may_name_blocks()) continue;
        const std::vector<int> started = StartedBlocks(*entry.op);
        if (std::find(started.begin(), started.end(), block) != started.end()) AddGivenBy(*entry.op);
      }
    }
  }
  bool contains(const std::string& name) const { return names_.contains(name); }

 private:
  void AddGivenBy(const Op& op) {
    for (const NamedAttr& attr : op.attrs()) {
      const auto* texts = std::get_if<std::vector<std::string>>(&attr.value);
      if (texts == nullptr) continue;
      for (const std::string& text : *texts) names_.insert(text + kGradSuffix);
    }
  }

  std::set<std::string> names_;
};

}  // namespace

void CheckDeclared(VerifyScene& scene) {
  const Program& program = scene.program();
  for (int b = 0; b < program.block_count(); ++b) {
    if (scene.LeftBehind(b) || scene.DeclarationsIn(b).Complete()) continue;
    const Block& block = program.block(b);
    const Declarations& declarations = scene.DeclarationsIn(b);
    const GivenGradients given(program, b);
    for (std::size_t i = 0; i < block.ops().size(); ++i) {
      const Op& op = *block.ops()[i].op;
      const auto check = [&](std::string_view what, const std::vector<Slot>& slots,
                             std::span<const Declaration> found) {
        ForEachDeclared(slots, found, [&](const Slot& slot, const std::string& arg, const Declaration& of) {
          if (!of.missing || TakesFromScope(scene.ops(), op, slot) || given.contains(arg)) return;
          scene.AddAt(InvalidArgument("E-verify-undeclared", SpellName(op.type()), ": ", what, " ",
                                      SpellName(slot.name), " (", SpellName(arg),
                                      ") is not declared in block ", b, " or around it"),
                      block, i);
        });
      };
      check("input", op.inputs(), declarations.InputsOf(i));
      check("output", op.outputs(), declarations.OutputsOf(i));
    }
  }
}

void CheckWrittenBeforeRead(VerifyScene& scene) {
  for (int b = 0; b < scene.program().block_count(); ++b) CheckOrderIn(scene.program().block(b), scene);
}

void CheckSentOnce(VerifyScene& scene) {
  struct Place {
    int block;
    std::size_t op;
  };
  std::map<std::pair<std::string, std::string>, Place> sent;  // by variable and name of the message
  for (int b = 0; b < scene.program().block_count(); ++b) {
    const Block& block = scene.program().block(b);
    for (std::size_t i = 0; i < block.ops().size(); ++i) {
      const Op& op = *block.ops()[i].op;
      if (op.type() != kSend) continue;
      for (const auto& [arg, name] : SentBy(op)) {
        const auto [first, added] = sent.emplace(std::pair(arg, name), Place{b, i});
        if (added) continue;
        scene.AddAt(InvalidArgument("E-verify-sent-twice", "send: ", SpellName(arg),
                                    " is sent twice in one step, by op ", first->second.op, " of block ",
                                    first->second.block, " and by op ", i, " of block ", b),
                    block, i);
      }
    }
  }
}

}  // namespace penstock
