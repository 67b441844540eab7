#include "transpiler/memory/lifetimes.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "transpiler/memory/nesting.h"

namespace penstock::memory {
namespace {

std::vector<BlockRef> BlocksOf(const Attr& attr) {
  if (const auto* one = std::get_if<BlockRef>(&attr)) return {*one};
  if (const auto* many = std::get_if<std::vector<BlockRef>>(&attr)) return *many;
  return {};
}

struct Place {
  int block = -1;
  int position = -1;
};

// The uses of one variable found so far.
struct Uses {
  const Var* var = nullptr;
  int block = -1;
  int first = -1;  // the first op that mentions it
  int last = -1;
  bool written_first = false;  // that op is in the variable's block, writes it, and does not read it
  bool read = false;
  bool pinned = false;  // must not move
};

class Reader {
 public:
  Reader(const OpRegistry& ops, const Program& program, OpRole skip)
      : ops_(ops), program_(program), skip_(skip) {}

  std::vector<std::vector<Lifetime>> Read(const NameSet& keep) {
    Declare();
    FindOwners();
    for (int b = 0; b < program_.block_count(); ++b) {
      const std::vector<OpEntry>& ops = program_.block(b).ops();
      for (std::size_t i = 0; i < ops.size(); ++i) ReadOp(*ops[i].op, {b, static_cast<int>(i)});
    }
    for (const std::string& name : keep) Pin(name);
    return Movable();
  }

 private:
  void Declare() {
    for (int b = 0; b < program_.block_count(); ++b) {
      for (const VarRef& var : program_.block(b).vars()) {
        Uses& uses = uses_[var->name];
        uses.pinned = uses.var != nullptr || !IsTemporary(*var);  // or declared by two blocks
        uses.var = var.get();
        uses.block = b;
        order_.push_back(var.get());
      }
    }
  }

  static bool IsTemporary(const Var& var) {
    VarFacts facts = var.facts;
    facts.stop_gradient = false;
    return var.kind == VarKind::kTensor && var.type && !var.persistable && !var.need_check_feed &&
           facts == VarFacts();
  }

  void FindOwners() {
    owners_.resize(static_cast<std::size_t>(program_.block_count()));
    for (int b = 0; b < program_.block_count(); ++b) {
      const std::vector<OpEntry>& ops = program_.block(b).ops();
      for (std::size_t i = 0; i < ops.size(); ++i) {
        for (const NamedAttr& attr : ops[i].op->attrs()) {
          for (const BlockRef ref : BlocksOf(attr.value)) {
            // Blocks are entered only from earlier ones, so the walk outwards ends.
            if (ref.index > b && ref.index < program_.block_count())
              owners_[static_cast<std::size_t>(ref.index)].push_back({b, static_cast<int>(i)});
          }
        }
      }
    }
    std::vector<int> around;
    for (const std::vector<Place>& owners : owners_) {
      const bool one = owners.size() == 1;
      const int from = one ? owners.front().block : -1;
      shared_.push_back(one ? shared_[static_cast<std::size_t>(from)] : !owners.empty());
      around.push_back(from);
    }
    entered_.emplace(around);
  }

  void Pin(const std::string& name) {
    if (const auto it = uses_.find(name); it != uses_.end()) it->second.pinned = true;
  }

  void PinNamesIn(const Attr& attr) {
    if (const auto* text = std::get_if<std::string>(&attr)) Pin(*text);
    if (const auto* texts = std::get_if<std::vector<std::string>>(&attr)) {
      for (const std::string& text : *texts) Pin(text);
    }
  }

  // Whether something other than the program's ops may see the op's arguments, or the op moves with its
  // variables to a server, where updates run in parallel.
  bool IsOpaque(const Op& op) const {
    constexpr OpRole kElsewhere = OpRole::kRpc | OpRole::kDist | OpRole::kOptimize | OpRole::kLrSched;
    const OpDef* def = ops_.Find(op.type());
    return def == nullptr || def->effects().AreOutside() || Has(op.role(), kElsewhere);
  }

  void ReadOp(const Op& op, Place at) {
    for (const NamedAttr& attr : op.attrs()) PinNamesIn(attr.value);
    const bool opaque = IsOpaque(op);
    const bool pin_outputs = opaque || Has(op.role(), OpRole::kLoss) || Has(op.role(), skip_);
    for (const Slot& slot : op.inputs()) {
      for (const std::string& name : slot.args) Mention(name, at, /*writes=*/false, opaque);
    }
    for (const Slot& slot : op.outputs()) {
      for (const std::string& name : slot.args) Mention(name, at, /*writes=*/true, pin_outputs);
    }
  }

  void Mention(const std::string& name, Place at, bool writes, bool pin) {
    const auto it = uses_.find(name);
    if (it == uses_.end()) return;
    Uses& uses = it->second;
    if (pin) uses.pinned = true;
    if (!writes) uses.read = true;
    if (at.block == uses.block) {
      Use(uses, at.position, writes);
    } else if (!UseFromWithin(uses, at.block)) {
      uses.pinned = true;
    }
  }

  // Visits an op's inputs before its outputs, so that an op that updates in place counts as a reader.
  static void Use(Uses& uses, int position, bool writes) {
    if (uses.first < 0 || position < uses.first) {
      uses.first = position;
      uses.written_first = writes;
    }
    uses.last = std::max(uses.last, position);
  }

  // Records the ops of the variable's block through which a block is entered. False if it is not entered from
  // there: a gradient block reads variables that the block whose gradient it computes left behind.
  bool UseFromWithin(Uses& uses, int block) {
    if (shared_[static_cast<std::size_t>(block)]) return ClimbFrom(uses, block);
    if (!entered_->IsWithin(block, uses.block)) return false;
    const int step = entered_->StepToward(block, uses.block);
    Use(uses, owners_[static_cast<std::size_t>(step)].front().position, /*writes=*/false);
    return true;
  }

  // The same if several ops enter a block on the way out.
  bool ClimbFrom(Uses& uses, int block) {
    bool reached = false;
    std::vector<int> climbing = {block};
    std::vector<bool> seen(owners_.size(), false);
    while (!climbing.empty()) {
      const int at = climbing.back();
      climbing.pop_back();
      for (const Place& owner : owners_[static_cast<std::size_t>(at)]) {
        if (owner.block == uses.block) {
          Use(uses, owner.position, /*writes=*/false);
          reached = true;
        } else if (!seen[static_cast<std::size_t>(owner.block)]) {
          seen[static_cast<std::size_t>(owner.block)] = true;
          climbing.push_back(owner.block);
        }
      }
    }
    return reached;
  }

  std::vector<std::vector<Lifetime>> Movable() const {
    std::vector<std::vector<Lifetime>> blocks(static_cast<std::size_t>(program_.block_count()));
    for (const Var* var : order_) {
      const Uses& uses = uses_.at(var->name);
      if (uses.pinned || !uses.written_first || !uses.read) continue;
      blocks[static_cast<std::size_t>(uses.block)].push_back({var, uses.first, uses.last});
    }
    for (int b = 0; b < program_.block_count(); ++b) SortByFirstWrite(b, blocks[static_cast<std::size_t>(b)]);
    return blocks;
  }

  void SortByFirstWrite(int block, std::vector<Lifetime>& lifetimes) const {
    const auto place_in_op = [&](const Lifetime& lifetime) {
      const Op& op = *program_.block(block).ops()[static_cast<std::size_t>(lifetime.first_write)].op;
      int place = 0;
      for (const Slot& slot : op.outputs()) {
        for (const std::string& name : slot.args) {
          if (name == lifetime.var->name) return place;
          ++place;
        }
      }
      return place;
    };
    std::stable_sort(lifetimes.begin(), lifetimes.end(), [&](const Lifetime& a, const Lifetime& b) {
      if (a.first_write != b.first_write) return a.first_write < b.first_write;
      return place_in_op(a) < place_in_op(b);
    });
  }

  const OpRegistry& ops_;
  const Program& program_;
  const OpRole skip_;
  std::unordered_map<std::string_view, Uses> uses_;  // looked up, never iterated
  std::vector<const Var*> order_;
  std::vector<std::vector<Place>> owners_;  // by block: the ops that enter it
  std::vector<bool> shared_;                // by block: whether several ops enter it or a block around it
  std::optional<Nesting> entered_;          // the nesting of blocks that one op each enters
};

}  // namespace

Lifetimes::Lifetimes(const OpRegistry& ops, const Program& program, const NameSet& keep, OpRole skip)
    : blocks_(Reader(ops, program, skip).Read(keep)) {}

}  // namespace penstock::memory
