// Gives temporaries the buffers of others that no op reads any more.
//
//   before  a : f32[?, 256] = relu(X=x)     read last by the next op
//           b : f32[?, 256] = tanh(X=a)
//           c : f32[?, 256] = relu(X=b)
//   after   a : f32[?, 256] = relu(X=x)
//           b : f32[?, 256] = tanh(X=a)
//           a = relu(X=b)
//
// Works in program order. Each temporary takes the smallest free buffer that fits, and of equals the one that
// is free longest. An op's output never takes the buffer of the op's own input, and buffers whose unknown
// extents are not known to be equal are not shared.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "framework/ir/edit.h"
#include "framework/op/unknown_ops.h"
#include "framework/text/describe.h"
#include "transpiler/memory/extents.h"
#include "transpiler/memory/memory.h"
#include "transpiler/memory/require_declared.h"

namespace penstock::memory {
namespace {

// The memory of a tensor: bytes for each combination of its unknown extents (extents.h).
struct Footprint {
  std::int64_t bytes = 0;
  std::vector<Dim> extents;  // from Extents::Of
  std::vector<Dim> symbols;  // the unknown ones among them, in order
};

// nullopt if 64 bits cannot hold the size (such a tensor cannot be allocated), or if no op that runs names
// it.
std::optional<Footprint> FootprintOf(const Var& var, const Extents& extents) {
  Footprint out{
      .bytes = static_cast<std::int64_t>(SizeOf(var.type->dtype)), .extents = extents.Of(var), .symbols = {}};
  for (const Dim extent : out.extents) {
    if (extent == kUnknownDim) return std::nullopt;
    if (extent < 0) {
      out.symbols.push_back(extent);
    } else if (__builtin_mul_overflow(out.bytes, extent, &out.bytes)) {
      return std::nullopt;
    }
  }
  std::sort(out.symbols.begin(), out.symbols.end());
  return out;
}

// One buffer: the variable whose name it keeps, and a type that fits all its tenants.
struct Buffer {
  const Var* owner = nullptr;
  TensorType type;
  Footprint footprint;  // of the owner
};

// The narrowest shape that covers both.
Shape Loosened(const Shape& a, const Shape& b) {
  std::vector<Dim> dims;
  dims.reserve(static_cast<std::size_t>(a.rank()));
  for (int i = 0; i < a.rank(); ++i) dims.push_back(a[i] == b[i] ? a[i] : kUnknownDim);
  return Shape(std::move(dims));
}

// The free buffers of one block.
class FreeBuffers {
 public:
  explicit FreeBuffers(bool larger) : larger_(larger) {}

  // Free from op `last_use` + 1 on.
  void Release(int buffer, const Buffer& released, int last_use) {
    waiting_.emplace(last_use, buffer);
    keys_[buffer] = {KindOf(*released.owner, released.footprint), released.footprint.bytes};
  }

  // The smallest buffer for a variable that op `first_write` writes; of equals the one that is free longest.
  // -1 if none fits.
  int Take(const Var& var, const Footprint& footprint, int first_write) {
    while (!waiting_.empty() && waiting_.begin()->first < first_write) {
      const auto [last_use, buffer] = *waiting_.begin();
      waiting_.erase(waiting_.begin());
      const auto& [kind, bytes] = keys_.at(buffer);
      free_[kind].emplace(bytes, last_use, buffer);
    }
    const auto of_kind = free_.find(KindOf(var, footprint));
    if (of_kind == free_.end()) return -1;
    const auto found = of_kind->second.lower_bound({footprint.bytes, 0, 0});
    if (found == of_kind->second.end()) return -1;
    const int buffer = std::get<2>(*found);
    of_kind->second.erase(found);
    return buffer;
  }

 private:
  // The properties that tenants of a buffer share: element type, LoD level, stop_gradient and extents; with
  // larger buffers the rank and the unknown extents instead of all extents.
  using Kind = std::tuple<DType, std::int32_t, bool, std::vector<Dim>>;

  Kind KindOf(const Var& var, const Footprint& footprint) const {
    std::vector<Dim> extents = footprint.extents;
    if (larger_) {
      extents = {kUnknownDim, var.shape().rank()};  // the first is no extent, so that the kinds do not meet
      extents.insert(extents.end(), footprint.symbols.begin(), footprint.symbols.end());
    }
    return {var.type->dtype, var.type->lod_level, var.facts.stop_gradient, std::move(extents)};
  }

  const bool larger_;
  std::set<std::pair<int, int>> waiting_;                              // last use, buffer
  std::map<int, std::pair<Kind, std::int64_t>> keys_;                  // by buffer
  std::map<Kind, std::set<std::tuple<std::int64_t, int, int>>> free_;  // bytes, last use, buffer
};

class Reuser {
 public:
  Reuser(const Program& in, const Lifetimes& lifetimes, const Extents& extents, const ReuseOptions& options)
      : in_(in), lifetimes_(lifetimes), extents_(extents), options_(options), edit_(in) {}

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
  // Decides for one block, in the order of first writes. Returns the number of variables that are removed.
  int Plan(int block, MemoryRewrite& out) {
    std::vector<Buffer> buffers;
    FreeBuffers free(options_.larger_buffers);
    int count = 0;
    for (const Lifetime& lifetime : lifetimes_.OfBlock(block)) {
      const Var& var = *lifetime.var;
      const std::optional<Footprint> footprint = FootprintOf(var, extents_);
      if (!footprint) continue;
      int at = free.Take(var, *footprint, lifetime.first_write);
      if (at < 0) {
        at = static_cast<int>(buffers.size());
        buffers.push_back({.owner = &var, .type = *var.type, .footprint = *footprint});
      } else {
        ++count;
        Move(var, *footprint, block, buffers[static_cast<std::size_t>(at)], out);
      }
      free.Release(at, buffers[static_cast<std::size_t>(at)], lifetime.last_use);
    }
    return count;
  }

  void Move(const Var& tenant, const Footprint& footprint, int block, Buffer& buffer, MemoryRewrite& out) {
    std::vector<std::string> each;
    for (const Dim symbol : footprint.symbols) each.push_back(extents_.NameOf(symbol));
    (each.empty() ? out.saved.bytes : out.saved.bytes_for_each[Join(each, " by ")]) += footprint.bytes;
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

  // A moved name is declared only once in the program, so every mention of it is this variable.
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
  const Extents& extents_;
  const ReuseOptions& options_;
  ProgramEdit edit_;
  std::map<std::string, std::string, std::less<>> renames_;
};

}  // namespace

Result<MemoryRewrite> ReuseBuffers(const OpRegistry& ops, const Program& in, const ReuseOptions& options) {
  PENSTOCK_RETURN_IF_ERROR(RequireDeclared(in, options.keep));
  PENSTOCK_RETURN_IF_ERROR(RequireSchemas(ops, in));
  const Lifetimes lifetimes(ops, in, options.keep, options.skip_grads ? OpRole::kBackward : OpRole::kForward);
  const Extents extents(ops, in);
  PENSTOCK_ASSIGN_OR_RETURN(MemoryRewrite out, Reuser(in, lifetimes, extents, options).Run());
  out.unknown_ops = UnknownOps(ops, in);
  return out;
}

}  // namespace penstock::memory
