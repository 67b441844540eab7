// Gives temporaries the buffers of others that nobody reads any more.
//
//   before  a : f32[?, 256] = relu(X=x)     read last by the next op
//           b : f32[?, 256] = tanh(X=a)
//           c : f32[?, 256] = relu(X=b)
//   after   a : f32[?, 256] = relu(X=x)
//           b : f32[?, 256] = tanh(X=a)
//           a = relu(X=b)
//
// In program order, the buffer that is free longest first; an op's output never takes what the op reads.
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "framework/ir/edit.h"
#include "framework/text/describe.h"
#include "transpiler/memory/memory.h"
#include "transpiler/memory/require_declared.h"

namespace penstock {
namespace {

// One buffer: the variable whose name it keeps, and the type that holds all its tenants.
struct Buffer {
  const Var* owner = nullptr;
  TensorType type;
  MemorySize size;  // of the owner
};

// The narrowest shape that both have.
Shape Loosened(const Shape& a, const Shape& b) {
  std::vector<Dim> dims;
  dims.reserve(static_cast<std::size_t>(a.rank()));
  for (int i = 0; i < a.rank(); ++i) dims.push_back(a[i] == b[i] ? a[i] : kUnknownDim);
  return Shape(std::move(dims));
}

// The buffers of one block that nobody needs at the moment.
class FreeBuffers {
 public:
  explicit FreeBuffers(bool larger) : larger_(larger) {}

  // From op `last_use` + 1 on.
  void Release(int buffer, const Buffer& released, int last_use) {
    waiting_.emplace(last_use, buffer);
    keys_[buffer] = {KindOf(*released.owner, released.size), Bytes(released.size)};
  }

  // The tightest for a variable that op `first_write` makes; of equals the one that is free longest. -1:
  // none.
  int Take(const Var& var, int first_write) {
    while (!waiting_.empty() && waiting_.begin()->first < first_write) {
      const auto [last_use, buffer] = *waiting_.begin();
      waiting_.erase(waiting_.begin());
      const auto& [kind, bytes] = keys_.at(buffer);
      free_[kind].emplace(bytes, last_use, buffer);
    }
    const MemorySize size = SizeOfVar(var);
    const auto of_kind = free_.find(KindOf(var, size));
    if (of_kind == free_.end()) return -1;
    const auto found = of_kind->second.lower_bound({Bytes(size), 0, 0});
    if (found == of_kind->second.end()) return -1;
    const int buffer = std::get<2>(*found);
    of_kind->second.erase(found);
    return buffer;
  }

 private:
  // What tenants of a buffer have in common: element type, LoD level, stop_gradient, and the extents, or
  // their number and whether they grow with the batch where larger buffers are taken too.
  using Kind = std::tuple<DType, std::int32_t, bool, std::vector<Dim>>;

  Kind KindOf(const Var& var, const MemorySize& size) const {
    std::vector<Dim> extents = var.shape().dims();
    if (larger_ && size.unknown == 0) extents = {kAnyOf, var.shape().rank(), size.bytes_per_item != 0};
    return {var.type->dtype, var.type->lod_level, var.facts.stop_gradient, std::move(extents)};
  }
  static std::int64_t Bytes(const MemorySize& size) { return size.bytes + size.bytes_per_item; }

  static constexpr Dim kAnyOf = -2;  // no extent, so that the kinds do not meet
  const bool larger_;
  std::set<std::pair<int, int>> waiting_;                              // last use, buffer
  std::map<int, std::pair<Kind, std::int64_t>> keys_;                  // by buffer
  std::map<Kind, std::set<std::tuple<std::int64_t, int, int>>> free_;  // bytes, last use, buffer
};

class Reuser {
 public:
  Reuser(const Program& in, const Lifetimes& lifetimes, const ReuseOptions& options)
      : in_(in), lifetimes_(lifetimes), options_(options), edit_(in) {}

  Result<MemoryRewrite> Run() {
    MemoryRewrite out;
    int count = 0;
    for (int b = 0; b < in_.block_count(); ++b) count += Plan(b, out);
    RenameArguments();
    out.summary = StrCat(count, count == 1 ? " variable takes" : " variables take",
                         " the buffer of another; saves ", out.saved.ToString());
    PENSTOCK_ASSIGN_OR_RETURN(out.program, edit_.Apply());
    return out;
  }

 private:
  // Decides for one block, in the order of first writes. Returns how many variables go.
  int Plan(int block, MemoryRewrite& out) {
    std::vector<Buffer> buffers;
    FreeBuffers free(options_.larger_buffers);
    int count = 0;
    for (const Lifetime& lifetime : lifetimes_.OfBlock(block)) {
      const Var& var = *lifetime.var;
      int at = free.Take(var, lifetime.first_write);
      if (at < 0) {
        at = static_cast<int>(buffers.size());
        buffers.push_back({.owner = &var, .type = *var.type, .size = SizeOfVar(var)});
      } else {
        ++count;
        Move(var, block, buffers[static_cast<std::size_t>(at)], out);
      }
      free.Release(at, buffers[static_cast<std::size_t>(at)], lifetime.last_use);
    }
    return count;
  }

  void Move(const Var& tenant, int block, Buffer& buffer, MemoryRewrite& out) {
    const MemorySize size = SizeOfVar(tenant);
    out.saved.bytes += size.bytes;
    out.saved.bytes_per_item += size.bytes_per_item;
    out.saved.unknown += size.unknown;
    out.lines.push_back(StrCat(tenant.name, " takes the buffer of ", buffer.owner->name, ": ",
                               DTypeName(tenant.type->dtype), tenant.shape()));
    renames_[tenant.name] = buffer.owner->name;
    edit_.block(block).RemoveVar(tenant.name);
    const Shape loosened = Loosened(buffer.type.shape, tenant.shape());
    if (loosened == buffer.type.shape) return;
    buffer.type.shape = loosened;
    Var declared = *buffer.owner;
    declared.type = buffer.type;
    declared.wire_bytes.clear();
    edit_.block(block).SetVar(std::move(declared));
  }

  // A name that is moved is declared once in the program, so every mention of it is this variable.
  void RenameArguments() {
    for (int b = 0; b < in_.block_count(); ++b) {
      for (const OpEntry& entry : in_.block(b).ops()) {
        std::optional<Op> renamed;
        for (const auto* slots : {&entry.op->inputs(), &entry.op->outputs()}) {
          for (const Slot& slot : *slots) {
            for (const std::string& name : slot.args) {
              const auto it = renames_.find(name);
              if (it == renames_.end()) continue;
              if (!renamed) renamed = *entry.op;
              renamed->Rename(it->first, it->second, /*attrs=*/false);
            }
          }
        }
        if (renamed) edit_.block(b).Replace(entry.id, *std::move(renamed));
      }
    }
  }

  const Program& in_;
  const Lifetimes& lifetimes_;
  const ReuseOptions& options_;
  ProgramEdit edit_;
  std::map<std::string, std::string, std::less<>> renames_;
};

}  // namespace

Result<MemoryRewrite> ReuseBuffers(const OpRegistry& ops, const Program& in, const ReuseOptions& options) {
  PENSTOCK_RETURN_IF_ERROR(RequireDeclared(in, options.keep));
  const Lifetimes lifetimes(ops, in, options.keep, options.skip_grads ? Role::kBackward : Role::kForward);
  return Reuser(in, lifetimes, options).Run();
}

}  // namespace penstock
