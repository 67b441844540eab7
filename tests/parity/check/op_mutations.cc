#include <algorithm>
#include <map>

#include "operators/all_ops.h"
#include "tests/parity/check/mutations.h"

namespace penstock::test {
namespace {

using Names = std::vector<std::string>;

// Edits of one op, by name.
class OpEdits {
 public:
  OpEdits(const Program& program, OpAt at, std::vector<std::pair<std::string, std::function<void(Op&)>>>& out)
      : program_(program), at_(at), op_(OpOf(program, at)), out_(out) {}

  void All() {
    for (const NamedAttr& attr : op_.attrs()) EditAttr(attr);
    for (const Slot& slot : op_.inputs()) EditSlot(slot, true);
    for (const Slot& slot : op_.outputs()) EditSlot(slot, false);
    ExchangeInputs();
  }

 private:
  void Add(std::string how, std::function<void(Op&)> edit) {
    out_.emplace_back(StrCat(op_.type(), how), std::move(edit));
  }

  // Harmless: any axis for two operands of the same shape; bias_after_scale without a bias or a scale.
  bool IsWithoutEffect(const NamedAttr& attr) const {
    if (attr.name == "axis") {
      const Var* x = program_.FindVar(at_.block, op_.InputName("X"));
      const Var* y = program_.FindVar(at_.block, op_.InputName("Y"));
      return x != nullptr && y != nullptr && x->type && y->type && x->shape() == y->shape();
    }
    return attr.name == "bias_after_scale" &&
           (op_.GetOr<float>("bias", 0.0f) == 0.0f || op_.GetOr<float>("scale", 1.0f) == 1.0f);
  }

  void EditAttr(const NamedAttr& attr) {
    if (IsWithoutEffect(attr)) return;
    const auto add = [&](std::string_view how, Attr value) {
      if (value == attr.value) return;
      Add(StrCat(".", attr.name, ": ", how), [name = attr.name, value](Op& op) { op.Set(name, value); });
    };
    if (const auto* value = std::get_if<std::int32_t>(&attr.value)) {
      add("plus one", *value + 1);
      add("minus one", *value - 1);
    }
    if (const auto* value = std::get_if<std::int64_t>(&attr.value)) {
      add("plus one", *value + 1);
      add("minus one", *value - 1);
    }
    if (const auto* value = std::get_if<float>(&attr.value)) {
      add("another", *value == 0.0f ? 0.5f : *value * 1.5f);
      add("nothing", 0.0f);
    }
    if (const auto* value = std::get_if<bool>(&attr.value)) add("turned", !*value);
    if (const auto* value = std::get_if<std::string>(&attr.value)) add("another", *value + "x");
    if (const auto* value = std::get_if<BlockRef>(&attr.value)) {
      add("the next", BlockRef{value->index + 1});
      add("the one before", BlockRef{value->index - 1});
    }
    if (const auto* list = std::get_if<Names>(&attr.value)) EditList(add, *list, std::string("other"));
    if (const auto* list = std::get_if<std::vector<std::int32_t>>(&attr.value)) EditNumbers(add, *list);
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&attr.value)) EditNumbers(add, *list);
    if (const auto* list = std::get_if<std::vector<float>>(&attr.value)) EditNumbers(add, *list);
    if (const auto* list = std::get_if<std::vector<BlockRef>>(&attr.value)) EditList(add, *list, BlockRef{0});
    if (!IsLeftOut(attr)) {
      Add(StrCat(".", attr.name, ": removed"), [name = attr.name](Op& op) { op.RemoveAttr(name); });
    }
  }

  // The program computes the same without it.
  bool IsLeftOut(const NamedAttr& attr) const {
    const OpDef* def = AllOps().Find(op_.type());
    const AttrDef* declared = def == nullptr ? nullptr : def->FindAttr(attr.name);
    return declared == nullptr || (declared->default_value && *declared->default_value == attr.value);
  }

  template <typename Adder, typename T>
  static void EditList(const Adder& add, const std::vector<T>& list, T other) {
    using List = std::vector<T>;
    List longer = list;
    longer.push_back(other);
    add("one more", longer);
    if (list.empty()) return;
    List changed = list;
    changed.front() = other;
    add("first changed", changed);
    add("last dropped", List(list.begin(), list.end() - 1));
    add("turned round", List(list.rbegin(), list.rend()));
    List copied = list;
    copied.back() = list.front();
    add("last like the first", copied);
  }

  // One more here and one less there keeps the sum constant.
  template <typename Adder, typename T>
  static void EditNumbers(const Adder& add, const std::vector<T>& list) {
    EditList(add, list, T{7});
    if (list.size() < 2) return;
    std::vector<T> shifted = list;
    shifted.front() += 1;
    shifted.back() -= 1;
    add("shifted by one", shifted);
  }

  void EditSlot(const Slot& slot, bool input) {
    const std::string prefix = StrCat(".", slot.name, input ? " in: " : " out: ");
    const auto add = [&](std::string_view how, Names args) {
      if (args == slot.args) return;
      Add(StrCat(prefix, how), [name = slot.name, args, input](Op& op) {
        input ? op.AddInput(name, args) : op.AddOutput(name, args);
      });
    };
    const Names args(slot.args);
    if (args.empty()) return;
    add("last dropped", {args.begin(), args.end() - 1});
    add("turned round", {args.rbegin(), args.rend()});
    Names doubled = args;
    doubled.push_back(args.front());
    add("first again", doubled);
    Names other = args;
    other.front() = "other";
    add("first undeclared", other);
    for (const bool alike : {true, false}) {
      other.back() = Another(args.back(), alike);
      other.front() = args.size() == 1 ? other.back() : args.front();
      if (!other.back().empty()) add(alike ? "last another of its type" : "last another", other);
    }
  }

  // Another variable of the block: the next one in order of declaration, cyclically.
  std::string Another(const std::string& name, bool alike) const {
    const Var* given = program_.FindVar(at_.block, name);
    if (given == nullptr) return "";
    const auto& vars = program_.block(program_.BlockOfVar(at_.block, name)).vars();
    const auto at =
        std::find_if(vars.begin(), vars.end(), [&](const VarRef& var) { return var->name == name; });
    const auto start = static_cast<std::size_t>(at - vars.begin());
    for (std::size_t i = 1; i < vars.size(); ++i) {
      const Var& var = *vars[(start + i) % vars.size()];
      const bool same = var.kind == given->kind && var.type == given->type;
      if (same == alike && var.kind != VarKind::kFeed && var.kind != VarKind::kFetch) return var.name;
    }
    return "";
  }

  void ExchangeInputs() {
    const auto& inputs = op_.inputs();
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      const Slot a = inputs[i - 1], b = inputs[i];
      if (a.args.empty() || b.args.empty() || a.args == b.args) continue;
      Add(StrCat(".", a.name, " and ", b.name, " in: exchanged"),
          [a, b](Op& op) { op.AddInput(a.name, b.args).AddInput(b.name, a.args); });
    }
  }

  const Program& program_;
  const OpAt at_;
  const Op& op_;
  std::vector<std::pair<std::string, std::function<void(Op&)>>>& out_;
};

// Repeating an op that does not read its outputs changes nothing, unless it communicates.
bool MayBeRepeated(const Op& op) {
  if (Has(op.role(), OpRole::kRpc)) return false;
  const Names inputs = op.InputNames(), outputs = op.OutputNames();
  return !outputs.empty() && std::none_of(outputs.begin(), outputs.end(), [&](const std::string& name) {
    return std::find(inputs.begin(), inputs.end(), name) != inputs.end();
  });
}

// Whether moving an op from one position of a block to another passes an op that reads or writes its outputs,
// or writes its inputs. If not, the move changes nothing.
bool PassesDependency(const Block& block, int from, int to) {
  const Op& moved = *block.ops()[static_cast<std::size_t>(from)].op;
  const auto any = [](const Names& a, const Names& b) {
    return std::any_of(a.begin(), a.end(), [&](const std::string& name) {
      return std::find(b.begin(), b.end(), name) != b.end();
    });
  };
  for (int i = std::min(from, to); i <= std::max(from, to); ++i) {
    if (i == from) continue;
    const Op& other = *block.ops()[static_cast<std::size_t>(i)].op;
    if (any(moved.OutputNames(), other.InputNames()) || any(moved.OutputNames(), other.OutputNames()) ||
        any(moved.InputNames(), other.OutputNames()))
      return true;
  }
  return false;
}

}  // namespace

std::vector<Mutation> OpMutations(const Program& program, int per_type) {
  std::vector<Mutation> out;
  std::map<std::string, int> of_kind, of_type;
  const auto add = [&](std::string what, std::function<void(Program&)> make) {
    const int number = of_kind[what]++;
    out.push_back({std::move(what), number, std::move(make)});
  };
  for (int b = 0; b < program.block_count(); ++b) {
    const Block& block = program.block(b);
    const int count = static_cast<int>(block.ops().size());
    for (int i = 0; i < count; ++i) {
      const OpEntry& entry = block.ops()[static_cast<std::size_t>(i)];
      const std::string& type = entry.op->type();
      if (of_type[type]++ >= per_type) continue;
      const OpAt at{b, entry.id};
      add(StrCat(type, " removed"), [at](Program& edited) { Remove(edited, at); });
      if (!MayBeRepeated(*entry.op))
        add(StrCat(type, " repeated"), [at](Program& edited) { Repeat(edited, at); });
      const std::pair<int, const char*> places[] = {{0, "first"}, {i + 1, "one later"}, {count - 1, "last"}};
      for (const auto& [to, name] : places) {
        if (to >= count || to == i || !PassesDependency(block, i, to)) continue;
        add(StrCat(type, " moved: ", name), [at, to = to](Program& edited) {
          Op op = OpOf(edited, at);
          Block& changed = edited.MutableBlock(at.block);
          changed.Remove(at.id);
          changed.Insert(to, std::move(op));
        });
      }
      std::vector<std::pair<std::string, std::function<void(Op&)>>> edits;
      OpEdits(program, at, edits).All();
      for (const auto& named : edits) {
        add(named.first, [at, edit = named.second](Program& edited) { Change(edited, at, edit); });
      }
    }
  }
  return out;
}

}  // namespace penstock::test
