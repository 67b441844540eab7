// Rules about variables' names: declared, written before read, sent once.
#include <set>
#include <string>
#include <string_view>

#include "framework/base/view_map.h"
#include "framework/ir/role.h"
#include "framework/text/lexer.h"
#include "framework/verify/scene.h"

namespace penstock {
namespace {

constexpr std::string_view kSend = "send";

bool IsName(const std::string& arg) { return !arg.empty() && arg != kEmptyVarName; }

// Calls visit(slot, argument) for each argument that names a variable.
template <typename Visit>
void ForEachArgument(const std::vector<Slot>& slots, const Visit& visit) {
  for (const Slot& slot : slots) {
    for (const std::string& arg : slot.args) {
      if (IsName(arg)) visit(slot, arg);
    }
  }
}

// A variable of this block whose value comes from this block's ops alone: not fed, not kept between steps,
// not filled element by element as arrays are.
bool IsTemporary(const Block& block, const std::string& name) {
  const Var* var = block.FindVar(name);
  return var != nullptr && !var->persistable && !var->facts.is_data &&
         (var->kind == VarKind::kTensor || var->kind == VarKind::kSelectedRows);
}

void CheckOrderIn(const Block& block, VerifyScene& scene) {
  ViewMap<std::size_t> first_write;
  first_write.reserve(block.ops().size());
  for (std::size_t i = 0; i < block.ops().size(); ++i) {
    ForEachArgument(block.ops()[i].op->outputs(),
                    [&](const Slot&, const std::string& arg) { first_write.emplace(arg, i); });
  }
  std::set<std::string, std::less<>> reported;
  for (std::size_t i = 0; i < block.ops().size(); ++i) {
    const Op& op = *block.ops()[i].op;
    ForEachArgument(op.inputs(), [&](const Slot& slot, const std::string& arg) {
      const auto write = first_write.find(arg);
      // What no op writes is fed; what this op itself writes first is updated in place.
      if (write == first_write.end() || write->second <= i || !IsTemporary(block, arg)) return;
      if (!reported.insert(arg).second) return;
      scene.AddAt(InvalidArgument("E-verify-order", SpellName(op.type()), ": input ", SpellName(slot.name),
                                  " (", SpellName(arg), ") is read before op ", write->second, " (",
                                  SpellName(block.ops()[write->second].op->type()), ") first writes it"),
                  block, i);
    });
  }
}

}  // namespace

void CheckDeclared(VerifyScene& scene) {
  const Program& program = scene.program();
  for (int b = 0; b < program.block_count(); ++b) {
    if (scene.LeftBehind(b)) continue;
    const Block& block = program.block(b);
    for (std::size_t i = 0; i < block.ops().size(); ++i) {
      const Op& op = *block.ops()[i].op;
      const auto check = [&](std::string_view what, const std::vector<Slot>& slots) {
        ForEachArgument(slots, [&](const Slot& slot, const std::string& arg) {
          if (program.FindVar(b, arg) != nullptr) return;
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
  ViewMap<Place> sent;
  for (int b = 0; b < scene.program().block_count(); ++b) {
    const Block& block = scene.program().block(b);
    for (std::size_t i = 0; i < block.ops().size(); ++i) {
      const Op& op = *block.ops()[i].op;
      if (op.type() != kSend) continue;
      ForEachArgument(op.inputs(), [&](const Slot&, const std::string& arg) {
        const auto [first, added] = sent.emplace(arg, Place{b, i});
        if (added) return;
        scene.AddAt(InvalidArgument("E-verify-sent-twice", "send: ", SpellName(arg),
                                    " is sent twice in one step, by op ", first->second.op, " of block ",
                                    first->second.block, " and by op ", i, " of block ", b),
                    block, i);
      });
    }
  }
}

}  // namespace penstock
