// Rules about variables' names: declared, written before read, sent once.
#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "framework/base/view_map.h"
#include "framework/ir/role.h"
#include "framework/text/lexer.h"
#include "framework/verify/scene.h"

namespace penstock {
namespace {

constexpr std::string_view kSend = "send";

// Calls visit(slot, argument, declaration) for each; `next` goes through VerifyScene::DeclarationsIn.
template <typename Visit>
void ForEachDeclared(const std::vector<Slot>& slots, std::vector<Declaration>::const_iterator& next,
                     const Visit& visit) {
  for (const Slot& slot : slots) {
    for (const std::string& arg : slot.args) visit(slot, arg, *next++);
  }
}

// What a send op sends, with the name that it goes by where the op gives one for each. One that is for no
// parameter tells of rows that were touched, and may do so twice.
std::vector<std::pair<std::string, std::string>> SentBy(const Op& op) {
  const std::vector<std::string>& vars = op.Input("X");
  const auto names = op.GetOr<std::vector<std::string>>("send_varnames", {});
  std::vector<std::pair<std::string, std::string>> sent;
  for (std::size_t i = 0; i < vars.size(); ++i) {
    if (!IsName(vars[i])) continue;
    std::pair one(vars[i], names.size() == vars.size() ? names[i] : std::string());
    const bool tells = !one.second.empty() && op.RolePairs().empty();
    if (!tells || std::find(sent.begin(), sent.end(), one) == sent.end()) sent.push_back(std::move(one));
  }
  return sent;
}

// A variable of this block whose value comes from this block's ops alone: not fed, not kept between steps,
// not filled element by element as arrays are.
bool IsTemporary(const Declaration& declaration) {
  const Var* var = declaration.var;
  return declaration.here && !var->persistable && !var->facts.is_data &&
         (var->kind == VarKind::kTensor || var->kind == VarKind::kSelectedRows);
}

void CheckOrderIn(const Block& block, VerifyScene& scene) {
  const std::vector<Declaration>& declarations = scene.DeclarationsIn(block.index());
  const auto ignore = [](const Slot&, const std::string&, const Declaration&) {};
  std::unordered_map<const Var*, std::size_t> first_write;  // of temporaries; asked, never walked
  auto next = declarations.begin();
  for (std::size_t i = 0; i < block.ops().size(); ++i) {
    ForEachDeclared(block.ops()[i].op->inputs(), next, ignore);
    ForEachDeclared(block.ops()[i].op->outputs(), next,
                    [&](const Slot&, const std::string&, const Declaration& declaration) {
                      if (IsTemporary(declaration)) first_write.emplace(declaration.var, i);
                    });
  }
  std::unordered_set<const Var*> reported;
  next = declarations.begin();
  for (std::size_t i = 0; i < block.ops().size(); ++i) {
    const Op& op = *block.ops()[i].op;
    ForEachDeclared(
        op.inputs(), next, [&](const Slot& slot, const std::string& arg, const Declaration& declaration) {
          if (!IsTemporary(declaration)) return;
          const auto write = first_write.find(declaration.var);
          // What no op writes is fed; what this op itself writes first is updated in place.
          if (write == first_write.end() || write->second <= i) return;
          if (!reported.insert(declaration.var).second) return;
          scene.AddAt(
              InvalidArgument("E-verify-order", SpellName(op.type()), ": input ", SpellName(slot.name), " (",
                              SpellName(arg), ") is read before op ", write->second, " (",
                              SpellName(block.ops()[write->second].op->type()), ") first writes it"),
              block, i);
        });
    ForEachDeclared(op.outputs(), next, ignore);
  }
}

}  // namespace

void CheckDeclared(VerifyScene& scene) {
  const Program& program = scene.program();
  for (int b = 0; b < program.block_count(); ++b) {
    if (scene.LeftBehind(b)) continue;
    const Block& block = program.block(b);
    auto next = scene.DeclarationsIn(b).begin();
    for (std::size_t i = 0; i < block.ops().size(); ++i) {
      const Op& op = *block.ops()[i].op;
      const auto check = [&](std::string_view what, const std::vector<Slot>& slots) {
        ForEachDeclared(slots, next, [&](const Slot& slot, const std::string& arg, const Declaration& found) {
          if (found.var != nullptr || !IsName(arg)) return;
          scene.AddAt(InvalidArgument("E-verify-undeclared", SpellName(op.type()), ": ", what, " ",
                                      SpellName(slot.name), " (", SpellName(arg),
                                      ") is not declared in block ", b, " or around it"),
                      block, i);
        });
      };
      check("input", op.inputs());
      check("output", op.outputs());
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
  std::map<std::pair<std::string, std::string>, Place> sent;  // by variable and the name it is sent as
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
