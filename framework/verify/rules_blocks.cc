// Rules about blocks: their parents, and the attributes that name them.
#include <string>

#include "framework/text/lexer.h"
#include "framework/verify/scene.h"

namespace penstock {
namespace {

bool IsAround(const Program& program, int outer, int block) {
  for (int at = block; at >= 0; at = program.block(at).parent()) {
    if (at == outer) return true;
  }
  return false;
}

}  // namespace

void CheckBlockParents(VerifyScene& scene) {
  const Program& program = scene.program();
  for (int i = 0; i < program.block_count(); ++i) {
    const int parent = program.block(i).parent();
    if (i == 0 ? parent == -1 : parent >= 0 && parent < i) continue;
    scene.Add(InvalidArgument("E-verify-block-parent", "block ", i, " has parent ", parent, "; ",
                              i == 0 ? "block 0 has none (-1)" : StrCat("it must be one of 0 to ", i - 1)));
  }
}

void CheckBlockReferences(VerifyScene& scene) {
  const Program& program = scene.program();
  for (int b = 0; b < program.block_count(); ++b) {
    const Block& block = program.block(b);
    for (std::size_t i = 0; i < block.ops().size(); ++i) {
      const Op& op = *block.ops()[i].op;
      if (!op.may_name_blocks()) continue;
      for (const NamedAttr& attr : op.attrs()) {
        for (const BlockRef ref : BlocksOf(attr.value)) {
          if (ref.index < 0 || ref.index >= program.block_count()) {
            scene.AddAt(InvalidArgument("E-verify-block-index", SpellName(op.type()), ": ",
                                        SpellName(attr.name), " names block ", ref.index,
                                        ", but the program has ", program.block_count(), " blocks"),
                        block, i);
          } else if (IsAround(program, ref.index, b)) {
            scene.AddAt(
                InvalidArgument("E-verify-block-index", SpellName(op.type()), ": ", SpellName(attr.name),
                                " names block ", ref.index, ", in which the op itself stands"),
                block, i);
          }
        }
      }
    }
  }
}

}  // namespace penstock
