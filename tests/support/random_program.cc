#include "tests/support/random_program.h"

#include <cstring>
#include <limits>
#include <random>

namespace penstock::test {
namespace {

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : random_(seed) {}

  Program Make() {
    Program program;
    FillMeta(program.mutable_meta());
    const int blocks = 1 + Below(4);
    for (int i = 1; i < blocks; ++i) program.AddBlock(Below(8) == 0 ? -1 : Below(i));
    for (int i = 0; i < blocks; ++i) FillBlock(program.MutableBlock(i));
    return program;
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  bool Chance(int one_in) { return Below(one_in) == 0; }

  std::string Text() {
    std::string out;
    for (int n = Below(6); n > 0; --n) {
      // Sometimes any bytes: quotes, line ends, incomplete UTF-8.
      out += Chance(3) ? static_cast<char>(Below(256)) : static_cast<char>('a' + Below(26));
    }
    return out;
  }
  std::string Name() {
    static constexpr const char* kNames[] = {
        "x",  "w@GRAD", "fc_0.w_0",   "a/b",  "at",      "var", "data", "true", "inf",   "block", "lod",
        "by", "w:0",    "dnn-fc.b_0", "@LR@", "@EMPTY@", "",    "1st",  "é",    "a b\n", "in"};
    return Chance(4) ? Text() : kNames[Below(std::size(kNames))];
  }
  std::int64_t Integer() {
    static constexpr std::int64_t kOdd[] = {0, -1, std::numeric_limits<std::int64_t>::min(),
                                            std::numeric_limits<std::int64_t>::max(), 1ll << 31};
    return Chance(3) ? kOdd[Below(std::size(kOdd))] : Below(1000);
  }
  float Float() {
    if (Chance(5)) return Chance(2) ? -std::numeric_limits<float>::infinity() : -0.0f;
    float value = 0;
    do {
      const auto bits = static_cast<std::uint32_t>(random_());
      std::memcpy(&value, &bits, sizeof(value));
    } while (value != value);  // a nan is equal to nothing
    return value;
  }
  template <typename Make>
  auto List(const Make& make) {
    std::vector<decltype(make())> out;
    for (int n = Below(4); n > 0; --n) out.push_back(make());
    return out;
  }
  BlockRef Ref() { return {static_cast<std::int32_t>(Integer())}; }

  Attr Value() {
    switch (static_cast<AttrKind>(Below(12))) {
      case AttrKind::kInt:
        return static_cast<std::int32_t>(Integer());
      case AttrKind::kFloat:
        return Float();
      case AttrKind::kString:
        return Text();
      case AttrKind::kInts:
        return List([&] { return static_cast<std::int32_t>(Integer()); });
      case AttrKind::kFloats:
        return List([&] { return Float(); });
      case AttrKind::kStrings:
        return List([&] { return Text(); });
      case AttrKind::kBool:
        return Chance(2);
      case AttrKind::kBools:
        return List([&] { return Chance(2); });
      case AttrKind::kBlock:
        return Ref();
      case AttrKind::kLong:
        return Integer();
      case AttrKind::kBlocks:
        return List([&] { return Ref(); });
      case AttrKind::kLongs:
        return List([&] { return Integer(); });
    }
    return 0;
  }

  DType AnyDType() {
    static constexpr int kNumbers[] = {0, 1, 2, 3, 4, 5, 6, 19, 20, 21};
    return static_cast<DType>(kNumbers[Below(std::size(kNumbers))]);
  }
  TensorType Type(bool lod) {
    TensorType type;
    type.dtype = AnyDType();
    type.shape = Shape(List([&] { return Chance(3) ? kUnknownDim : static_cast<Dim>(Below(100)); }));
    type.has_lod_level = lod;
    if (lod && Chance(3)) type.lod_level = Below(3);
    return type;
  }

  Var Variable(std::string name) {
    static constexpr int kKinds[] = {7, 7, 7, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18};
    Var var;
    var.name = std::move(name);
    var.kind = static_cast<VarKind>(kKinds[Below(std::size(kKinds))]);
    const bool typed = var.kind == VarKind::kTensor || var.kind == VarKind::kSelectedRows ||
                       var.kind == VarKind::kTensorArray;
    if (typed && !Chance(5)) var.type = Type(var.kind != VarKind::kSelectedRows);
    if (var.kind == VarKind::kReader) var.reader = List([&] { return Type(true); });
    if (var.kind == VarKind::kTuple) var.tuple = List([&] { return AnyDType(); });
    var.persistable = Chance(4);
    var.need_check_feed = Chance(8);
    if (Chance(2)) return var;
    VarFacts& facts = var.facts;
    facts.is_parameter = Chance(3);
    facts.trainable = !Chance(4);
    facts.is_distributed = Chance(8);
    if (Chance(5)) facts.learning_rate = Float();
    facts.stop_gradient = Chance(4);
    facts.is_data = Chance(4);
    if (Chance(6)) facts.slice = InitialSlice{Name(), Type(false).shape, Below(9), Below(99)};
    return var;
  }

  Op Operation() {
    Op op(Name());
    for (int n = Below(3); n > 0; --n) op.AddInput(Name(), List([&] { return Name(); }));
    for (int n = Below(3); n > 0; --n) op.AddOutput(Chance(2) ? "Out" : Name(), List([&] { return Name(); }));
    for (int n = Below(4); n > 0; --n) op.Set(Name(), Value());
    if (!Chance(3)) op.SetRole(static_cast<OpRole>(Chance(8) ? Integer() : Below(32) | Below(2) * 256));
    if (Chance(3)) op.Set(kRoleVarAttr, List([&] { return Name(); }));
    if (Chance(8)) op.Set(kNameScopeAttr, "/").Set(kDeviceAttr, "");
    if (Chance(8)) op.SetTarget(true);
    if (Chance(4)) op.SetLocation(Text());
    if (Chance(4)) op.SetMadeBy(Text());
    return op;
  }

  void FillBlock(Block& block) {
    for (int n = Below(8); n > 0; --n) block.SetVar(Variable(Name()));
    for (int n = Below(8); n > 0; --n) block.Append(Operation());
    if (Chance(4)) block.set_forward_block(Below(4) - 1);
  }

  void FillMeta(ProgramMeta& meta) {
    if (Chance(2)) meta.name = Text();
    if (Chance(2)) {
      meta.version = Integer();
      meta.has_version_message = true;
    }
    if (Chance(3)) meta.random_seed = Integer();
    if (Chance(3)) meta.plan = Text();
    for (int n = Below(3); n > 0; --n) meta.policies[Text()] = Text();
    if (Chance(4)) meta.op_compatible_map = std::string();
  }

  std::mt19937_64 random_;
};

}  // namespace

Program RandomProgram(std::uint64_t seed) { return Maker(seed).Make(); }

}  // namespace penstock::test
