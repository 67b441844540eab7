#include "transpiler/memory/extents.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "framework/base/strings.h"
#include "framework/ir/block_uses.h"
#include "framework/op/conform.h"
#include "framework/op/infer_context.h"
#include "framework/op/tensor_desc.h"
#include "transpiler/memory/nesting.h"

namespace penstock::memory {
namespace {

constexpr Dim kFirstSymbol = kUnknownDim - 1;  // of unknown 0; the others follow downwards
Dim SymbolOf(int unknown) { return kFirstSymbol - unknown; }
int UnknownOf(Dim symbol) { return static_cast<int>(kFirstSymbol - symbol); }
bool IsSymbol(Dim extent) { return extent <= kFirstSymbol; }

// Trial numbers for an op's unknown extents. Primes stay distinguishable after multiplication by other
// extents; the common factor lets an op fold one shape into another.
constexpr Dim kDividedBy = 5040;
constexpr int kTrials = 96;
const std::vector<Dim>& TrialNumbers() {
  static const std::vector<Dim> numbers = [] {
    std::vector<Dim> primes;
    for (Dim n = 1009; primes.size() < kTrials; n += 2) {
      bool prime = true;
      for (Dim d = 3; d * d <= n && prime; d += 2) prime = n % d != 0;
      if (prime) primes.push_back(n * kDividedBy);
    }
    return primes;
  }();
  return numbers;
}

}  // namespace

// Walks the ops in the order in which they run and records which extents each makes equal.
class ExtentReader {
 public:
  ExtentReader(const OpRegistry& ops, const Program& program, Extents& out)
      : ops_(ops),
        program_(program),
        out_(out),
        vars_(program),
        read_(static_cast<std::size_t>(program.block_count())) {}

  void Read() {
    ReadBlocks();
    std::set<int> fed;
    for (std::size_t i = 0; i < out_.unknowns_.size(); ++i) {
      const int root = out_.Root(static_cast<int>(i));
      if (IsFedBatch(out_.unknowns_[static_cast<std::size_t>(root)])) fed.insert(root);
    }
    out_.fed_batches_ = static_cast<int>(fed.size());
  }

  static bool IsFedBatch(const Extents::Unknown& unknown) {
    return unknown.fed && unknown.axis == 0 && unknown.var->type->lod_level == 0;
  }

 private:
  // An op's arguments in the order in which inference reads them.
  struct Argument {
    const Var* var = nullptr;  // null: not declared, or without a shape
    std::vector<Dim> extents;  // of an input
    bool output = false;
  };

  // A block of the walk: the next op to read, and the blocks that this op starts, last first.
  struct Reading {
    int block = 0;
    std::size_t next_op = 0;
    std::vector<int> started;
    bool looked = false;  // whether the blocks of the next op were collected
  };

  // Starts at block 0 and reads the blocks that an op starts before the op. Not recursive, because blocks may
  // nest arbitrarily deep.
  void ReadBlocks() {
    std::vector<Reading> way;
    way.push_back({.block = 0});
    read_[0] = true;
    while (!way.empty()) {
      Reading& at = way.back();
      const std::vector<OpEntry>& ops = program_.block(at.block).ops();
      if (at.next_op == ops.size()) {
        way.pop_back();
        continue;
      }
      const Op& op = *ops[at.next_op].op;
      if (!std::exchange(at.looked, true)) {
        at.started = StartedBlocks(op);
        std::reverse(at.started.begin(), at.started.end());
      }
      if (!at.started.empty()) {
        const int started = at.started.back();
        at.started.pop_back();
        if (started <= at.block || started >= program_.block_count()) continue;
        if (read_[static_cast<std::size_t>(started)]) continue;
        read_[static_cast<std::size_t>(started)] = true;
        way.push_back({.block = started});
        continue;
      }
      ReadOp(at.block, op);
      ++at.next_op;
      at.looked = false;
    }
  }

  void ReadOp(int block, const Op& op) {
    std::vector<Argument> arguments;
    std::vector<int> symbols;  // distinct roots, in the order of the inputs
    for (const auto* slots : {&op.inputs(), &op.outputs()}) {
      for (const Slot& slot : *slots) {
        for (const std::string& name : slot.args) {
          Argument& argument = arguments.emplace_back();
          argument.output = slots == &op.outputs();
          const Var* var = name == kEmptyVarName ? nullptr : vars_.Find(block, name);
          if (var == nullptr || !var->type) continue;
          argument.var = var;
          if (argument.output) continue;
          argument.extents = ExtentsOf(*var);
          for (const Dim extent : argument.extents) {
            if (!IsSymbol(extent)) continue;
            const int root = out_.Root(UnknownOf(extent));
            if (std::find(symbols.begin(), symbols.end(), root) == symbols.end()) symbols.push_back(root);
          }
        }
      }
    }
    const std::optional<std::vector<Shape>> made = Told(op, arguments, symbols);
    std::size_t output = 0;
    for (const Argument& argument : arguments) {
      if (!argument.output) continue;
      if (argument.var != nullptr) NoteMade(*argument.var, made ? (*made)[output] : Shape(), symbols);
      ++output;
    }
  }

  // For an input that no op has written: it is fed or persistable.
  std::vector<Dim> ExtentsOf(const Var& var) {
    const auto known = out_.extents_.find(&var);
    if (known != out_.extents_.end()) return known->second;
    return out_.extents_.emplace(&var, NewExtents(var, /*fed=*/true)).first->second;
  }

  std::vector<Dim> NewExtents(const Var& var, bool fed) {
    std::vector<Dim> extents = var.shape().dims();
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      if (extents[axis] < 0) extents[axis] = NewSymbol(var, static_cast<int>(axis), fed);
    }
    return extents;
  }

  Dim NewSymbol(const Var& var, int axis, bool fed) {
    out_.unknowns_.push_back({.var = &var, .axis = axis, .fed = fed, .same_as = -1});
    return SymbolOf(static_cast<int>(out_.unknowns_.size()) - 1);
  }

  // The output shapes that inference returns with a number for each symbol; nullopt if it returns none. Joins
  // symbols that the op requires to be equal.
  std::optional<std::vector<Shape>> Told(const Op& op, const std::vector<Argument>& arguments,
                                         std::vector<int>& symbols) {
    const OpDef* def = ops_.Find(op.type());
    if (def == nullptr || !def->has_infer_shape() || symbols.size() >= TrialNumbers().size())
      return std::nullopt;
    if (!def->CheckOp(op).ok()) return std::nullopt;
    std::vector<int> apart(symbols.size());  // the trial number of each
    for (std::size_t i = 0; i < apart.size(); ++i) apart[i] = static_cast<int>(i);
    auto made = Infer(*def, op, arguments, symbols, apart);
    if (made || symbols.size() < 2) return made;
    std::vector<int> numbers(symbols.size(), 0);
    made = Infer(*def, op, arguments, symbols, numbers);
    if (!made) return std::nullopt;
    // Separates those that may differ from the others after all.
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      numbers[i] = static_cast<int>(i) + 1;
      if (!Infer(*def, op, arguments, symbols, numbers)) numbers[i] = 0;
    }
    std::vector<int> equal;
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      if (numbers[i] == 0) equal.push_back(symbols[i]);
    }
    made = Infer(*def, op, arguments, symbols, numbers);
    for (const int symbol : equal) Unite(equal.front(), symbol);
    return made;
  }

  std::optional<std::vector<Shape>> Infer(const OpDef& def, const Op& op,
                                          const std::vector<Argument>& arguments,
                                          const std::vector<int>& symbols, const std::vector<int>& numbers) {
    std::size_t next = 0;
    const std::optional<Op> conformed = Conformed(def, op);
    InferContext context(
        def, conformed ? *conformed : op, [&](const std::string&) -> std::optional<TensorDesc> {
          const Argument& argument = arguments[next++];
          if (argument.var == nullptr) return std::nullopt;
          TensorDesc info = DescOf(*argument.var);
          for (std::size_t axis = 0; axis < argument.extents.size(); ++axis) {
            if (!IsSymbol(argument.extents[axis])) continue;
            const auto at =
                std::find(symbols.begin(), symbols.end(), out_.Root(UnknownOf(argument.extents[axis])));
            const int number = numbers[static_cast<std::size_t>(at - symbols.begin())];
            info.shape.Set(static_cast<int>(axis), TrialNumbers()[static_cast<std::size_t>(number)]);
          }
          return info;
        });
    if (!def.Infer(context).ok()) return std::nullopt;
    std::vector<Shape> made;
    for (const auto& slot : context.outputs()) {
      for (const TensorDesc& output : slot) made.push_back(output.shape);
    }
    tried_with_ = numbers;
    return made;
  }

  void NoteMade(const Var& var, const Shape& made, const std::vector<int>& symbols) {
    std::vector<Dim> extents = var.shape().dims();
    const bool told = made.rank() == var.shape().rank();
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      if (extents[axis] >= 0) continue;
      extents[axis] = told ? SymbolFor(made[static_cast<int>(axis)], symbols) : kUnknownDim;
      if (extents[axis] == kUnknownDim) extents[axis] = NewSymbol(var, static_cast<int>(axis), /*fed=*/false);
    }
    const auto [known, fresh] = out_.extents_.emplace(&var, extents);
    // Written twice, with extents that are not known to be equal.
    if (!fresh && !Same(known->second, extents)) known->second = NewExtents(var, /*fed=*/false);
  }

  Dim SymbolFor(Dim extent, const std::vector<int>& symbols) const {
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      if (TrialNumbers()[static_cast<std::size_t>(tried_with_[i])] == extent) return SymbolOf(symbols[i]);
    }
    return kUnknownDim;
  }

  bool Same(const std::vector<Dim>& a, const std::vector<Dim>& b) const {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](Dim x, Dim y) {
      return x == y || (IsSymbol(x) && IsSymbol(y) && out_.Root(UnknownOf(x)) == out_.Root(UnknownOf(y)));
    });
  }

  // The root of both is the one with the clearer name: a fed extent, without sequences if there is a choice.
  void Unite(int a, int b) {
    a = out_.Root(a);
    b = out_.Root(b);
    if (a == b) return;
    const auto rank = [&](int unknown) {
      const Extents::Unknown& of = out_.unknowns_[static_cast<std::size_t>(unknown)];
      return std::pair(IsFedBatch(of) ? 0 : of.fed ? 1 : 2, unknown);
    };
    if (rank(b) < rank(a)) std::swap(a, b);
    out_.unknowns_[static_cast<std::size_t>(b)].same_as = a;
  }

  const OpRegistry& ops_;
  const Program& program_;
  Extents& out_;
  const VarFinder vars_;
  std::vector<bool> read_;       // by block
  std::vector<int> tried_with_;  // the trial numbers of the last successful inference
};

Extents::Extents(const OpRegistry& ops, const Program& program) { ExtentReader(ops, program, *this).Read(); }

int Extents::Root(int unknown) const {
  while (unknowns_[static_cast<std::size_t>(unknown)].same_as >= 0)
    unknown = unknowns_[static_cast<std::size_t>(unknown)].same_as;
  return unknown;
}

std::vector<Dim> Extents::Of(const Var& var) const {
  const auto known = extents_.find(&var);
  std::vector<Dim> extents = known == extents_.end() ? var.shape().dims() : known->second;
  for (Dim& extent : extents) {
    if (known == extents_.end()) {
      extent = std::max(extent, kUnknownDim);
    } else if (IsSymbol(extent)) {
      extent = SymbolOf(Root(UnknownOf(extent)));
    }
  }
  return extents;
}

std::string Extents::NameOf(Dim symbol) const {
  const Unknown& unknown = unknowns_[static_cast<std::size_t>(Root(UnknownOf(symbol)))];
  if (fed_batches_ == 1 && ExtentReader::IsFedBatch(unknown)) return "batch item";
  return unknown.axis == 0 ? StrCat("row of ", unknown.var->name)
                           : StrCat("extent ", unknown.axis, " of ", unknown.var->name);
}

}  // namespace penstock::memory
