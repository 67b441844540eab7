// Marks the last use of each temporary.
//
//   before  b : f32[?, 256] = tanh(X=a)
//   after   b : f32[?, 256] = tanh(X=a)
//           delete_var(X=[a])
#include <map>
#include <utility>

#include "framework/ir/edit.h"
#include "framework/op/unknown_ops.h"
#include "transpiler/memory/memory.h"
#include "transpiler/memory/require_declared.h"

namespace penstock::memory {

Result<MemoryRewrite> ReleaseBuffers(const OpRegistry& ops, const Program& in, const NameSet& keep) {
  PENSTOCK_RETURN_IF_ERROR(RequireDeclared(in, keep));
  const Lifetimes lifetimes(ops, in, keep);
  ProgramEdit edit(in);
  MemoryRewrite out;
  for (int b = 0; b < in.block_count(); ++b) {
    std::map<int, std::vector<std::string>> ending;  // by the position of the last use
    for (const Lifetime& lifetime : lifetimes.OfBlock(b))
      ending[lifetime.last_use].push_back(lifetime.var->name);
    for (auto& [position, names] : ending) {
      const OpEntry& last = in.block(b).ops()[static_cast<std::size_t>(position)];
      for (const std::string& name : names)
        out.lines.push_back(StrCat(name, " is released behind op ", position, " (", last.op->type(), ")"));
      Op release("delete_var");
      release.AddInput("X", std::move(names)).SetRole(last.op->role()).SetLocation(last.op->location());
      edit.block(b).InsertAfter(last.id, std::move(release));
    }
  }
  const std::size_t count = out.lines.size();
  out.summary =
      StrCat(count, count == 1 ? " variable is" : " variables are", " released before the program ends");
  out.unknown_ops = UnknownOps(ops, in);
  PENSTOCK_ASSIGN_OR_RETURN(out.program, edit.Apply());
  return out;
}

}  // namespace penstock::memory
