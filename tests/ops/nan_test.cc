// Propagation of NaN. The rule (kNanRule): an element of a result is NaN if an element of an input on which
// it depends is NaN. The test determines this dependence by changing the input. Ops that declare another
// result (OpDef::Nan) are tested by their values.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/text/printer.h"
#include "operators/all_ops.h"
#include "operators/common/convert.h"
#include "tests/ops/gradient_case.h"
#include "tests/ops/run_one.h"
#include "tests/ops/vision_cases.h"

namespace penstock::test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void SetAt(Tensor& tensor, std::int64_t i, double value) {
  if (tensor.dtype() == DType::kFp64) {
    tensor.Data<double>()[i] = value;
  } else {
    tensor.Data<float>()[i] = static_cast<float>(value);
  }
}

bool SameAt(const Tensor& a, const Tensor& b, std::int64_t i) {
  const std::size_t size = SizeOf(a.dtype()), at = static_cast<std::size_t>(i) * size;
  return std::memcmp(a.raw() + at, b.raw() + at, size) == 0;
}

// The first, the last and some elements between, because maxima and sums handle these separately.
std::set<std::int64_t> SomeOf(std::int64_t count) {
  std::set<std::int64_t> some;
  for (const std::int64_t i : {std::int64_t{0}, std::int64_t{1}, count / 2, count - 1}) {
    if (i >= 0 && i < count) some.insert(i);
  }
  return some;
}

// Outputs with an element that depends on the changed one and is not NaN if that one is.
void AddHidden(const Tensors& before, const Tensors& changed, const Tensors& with_nan,
               std::set<std::string>& hidden) {
  for (const auto& [name, old] : before) {
    const Tensor &other = changed.at(name), &got = with_nan.at(name);
    if (old.shape() != other.shape() || old.shape() != got.shape()) {
      hidden.insert(name);
      continue;
    }
    for (std::int64_t i = 0; i < old.count(); ++i) {
      if (SameAt(old, other, i)) continue;
      if (!IsFloat(old.dtype()) || !std::isnan(ElementAt(got, i))) hidden.insert(name);
    }
  }
}

// The op with the same random numbers in each run.
Op Repeatable(Op op) {
  if (AllOps().Find(op.type())->FindAttr("seed") != nullptr) op.Set("seed", 1);
  return op;
}

// The pairs of float inputs and outputs that violate the rule, as "X -> Out".
std::set<std::string> BreaksOfRule(const Op& given_op, const Tensors& inputs) {
  const Op op = Repeatable(given_op);
  std::set<std::string> breaks;
  const Result<Tensors> before = RunOp(AllOps(), op, inputs);
  EXPECT_TRUE(before.ok()) << PrintOp(op) << before.status().ToString();
  if (!before.ok()) return breaks;
  for (const Slot& slot : op.inputs()) {
    for (const std::string& name : slot.args) {
      const auto given = inputs.find(name);
      if (given == inputs.end() || !IsFloat(given->second.dtype())) continue;
      for (const std::int64_t i : SomeOf(given->second.count())) {
        const auto run = [&](double value) {
          Tensors other = inputs;
          Tensor& tensor = other[name] = given->second.Clone();
          tensor.set_lod(given->second.lod());
          SetAt(tensor, i, value);
          return RunOp(AllOps(), op, other);
        };
        const Result<Tensors> with_nan = run(kNan);
        if (!with_nan.ok()) continue;  // rejected, so NaN is not hidden
        std::set<std::string> hidden;
        const double value = ElementAt(given->second, i);
        for (const double other : {value + 1.25, value - 1.25, value * 0.75 + 0.1}) {
          const Result<Tensors> changed = run(other);
          if (changed.ok()) AddHidden(*before, *changed, *with_nan, hidden);
        }
        for (const std::string& out : hidden) breaks.insert(StrCat(slot.name, " -> ", out));
      }
    }
  }
  return breaks;
}

// The inputs in single precision, but for those that must be in double precision.
Tensors AsFloats(const Op& op, const Tensors& inputs) {
  std::set<std::string> doubles;
  for (const SlotDef& slot : AllOps().Find(op.type())->inputs()) {
    if (slot.type.types != std::vector<DType>{DType::kFp64}) continue;
    for (const std::string& name : op.Input(slot.name)) doubles.insert(name);
  }
  Tensors made;
  for (const auto& [name, tensor] : inputs) {
    Tensor& to = made[name] = tensor;
    if (tensor.dtype() != DType::kFp64 || doubles.contains(name)) continue;
    to = Tensor(DType::kFp32, tensor.shape());
    ConverterOf(DType::kFp64, DType::kFp32)(tensor, to);
    to.set_lod(tensor.lod());
  }
  return made;
}

// The op whose declaration applies: the op itself, or the op of which it is the gradient.
const OpDef& SpeaksFor(const std::string& type) {
  for (const OpDef* def : AllOps().All()) {
    if (def->grad() && (def->grad()->type.empty() ? def->type() + "_grad" : def->grad()->type) == type)
      return *def;
  }
  return *AllOps().Find(type);
}

TEST(Nan, PropagatesToEachDependentElement) {
  std::set<std::string> tried;
  ForEachOp([&tried](const Op& op, const Tensors& inputs) {
    tried.insert(op.type());
    if (!SpeaksFor(op.type()).nan().empty()) return;
    for (const Tensors& values : {inputs, AsFloats(op, inputs)}) {
      const std::set<std::string> breaks = BreaksOfRule(op, values);
      EXPECT_TRUE(breaks.empty()) << PrintOp(op) << " hides NaN: "
                                  << Join(std::vector<std::string>(breaks.begin(), breaks.end()), ", ");
    }
  });
  EXPECT_GT(tried.size(), 250u);
}

Tensor Row(std::initializer_list<double> values, Shape shape = {}) {
  Tensor tensor(DType::kFp32, shape.rank() == 0 ? Shape{static_cast<Dim>(values.size())} : shape);
  std::int64_t i = 0;
  for (const double value : values) SetAt(tensor, i++, value);
  return tensor;
}

Tensor InOneSequence(Tensor tensor) {
  tensor.set_lod({{0, static_cast<std::uint64_t>(tensor.shape()[0])}});
  return tensor;
}

std::vector<NanCase> Comparisons() {
  std::vector<NanCase> cases;
  for (const char* type :
       {"less_than", "less_equal", "greater_than", "greater_equal", "equal", "not_equal"}) {
    const double differs = type == std::string("not_equal") ? 1 : 0;
    cases.push_back({WithSlots(type, {"X", "Y"}, {"Out"}),
                     {{"X", Row({kNan, 1, kNan})}, {"Y", Row({1, kNan, kNan})}},
                     {{"Out", {differs, differs, differs}}}});
  }
  for (const auto& [type, found] : std::map<std::string, double>{{"isfinite", 0}, {"isinf", 0}, {"isnan", 1}})
    cases.push_back({WithSlots(type, {"X"}, {"Out"}), {{"X", Row({1, kNan, 2})}}, {{"Out", {found}}}});
  constexpr double kLeast32 = -2147483648.0, kLeast64 = -9223372036854775808.0;
  for (const auto& [type, number] : std::map<DType, double>{
           {DType::kInt32, kLeast32}, {DType::kInt64, kLeast64}, {DType::kInt8, 0}, {DType::kBool, 1}}) {
    cases.push_back({WithSlots("cast", {"X"}, {"Out"})
                         .Set("in_dtype", static_cast<std::int32_t>(DType::kFp32))
                         .Set("out_dtype", static_cast<std::int32_t>(type)),
                     {{"X", Row({kNan, 1})}},
                     {{"Out", {number, 1}}}});
  }
  return cases;
}

std::vector<NanCase> Orders() {
  std::vector<NanCase> cases;
  for (const char* type : {"arg_max", "arg_min"}) {
    cases.push_back({WithSlots(type, {"X"}, {"Out"}).Set("axis", std::int64_t{0}),
                     {{"X", Row({3, kNan, 9, kNan, 1})}},
                     {{"Out", {1}}}});
  }
  const Op argsort = WithSlots("argsort", {"X"}, {"Out", "Indices"});
  cases.push_back(
      {argsort, {{"X", Row({kNan, 3, kNan, 1})}}, {{"Out", {1, 3, kNan, kNan}}, {"Indices", {3, 1, 0, 2}}}});
  cases.push_back({Op(argsort).Set("descending", true),
                   {{"X", Row({3, kNan, 1, kNan})}},
                   {{"Out", {kNan, kNan, 3, 1}}, {"Indices", {1, 3, 0, 2}}}});
  cases.push_back({WithSlots("top_k", {"X"}, {"Out", "Indices"}).Set("k", 2),
                   {{"X", Row({1, 2, kNan, 3})}},
                   {{"Out", {kNan, 3}}, {"Indices", {2, 3}}}});
  cases.push_back({WithSlots("crf_decoding", {"Emission", "Transition"}, {"ViterbiPath"}),
                   {{"Emission", InOneSequence(Row({5, kNan, 9, kNan, 1, 2}, {2, 3}))},
                    {"Transition", Row({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {5, 3})}},
                   {{"ViterbiPath", {1, 0}}}});
  const LoD beams = {{0, 1, 2}, {0, 1, 2}};
  Tensors search = {{"pre_ids", TensorOf<std::int64_t>({2, 1}, {1, 1})},
                    {"pre_scores", Row({0.5, 0.5}, {2, 1})},
                    {"ids", TensorOf<std::int64_t>({2, 3}, {1, 2, 3, 4, 5, 6})},
                    {"scores", Row({kNan, 0.2, 0.3, 0.4, kNan, 0.6}, {2, 3})}};
  for (const char* name : {"pre_ids", "ids", "scores"}) search[name].set_lod(beams);
  cases.push_back({WithSlots("beam_search", {"pre_ids", "pre_scores", "ids", "scores"},
                             {"selected_ids", "selected_scores", "parent_idx"})
                       .Set("level", 0)
                       .Set("beam_size", 2)
                       .Set("end_id", 0),
                   search,
                   {{"selected_ids", {3, 2, 6, 4}}}});
  return cases;
}

// Each with its gradient.
std::vector<NanCase> Maxima() {
  std::vector<NanCase> cases;
  const auto add = [&cases](const Op& op, const Tensor& x, double out, const std::vector<double>& dx) {
    cases.push_back({op, {{"X", x}}, {{"Out", {out}}}});
    Tensor one = Row({7});
    if (op.type() != "sequence_pool") one = Row({7}, {1, 1, 1, 1});
    Op grad = WithSlots(op.type() + "_grad", {"X", "Out", "Out@GRAD"}, {"X@GRAD"});
    Tensors inputs = {{"X", x}, {"Out", Row({out}, one.shape())}, {"Out@GRAD", one}};
    if (op.type() == "sequence_pool") {
      grad = WithSlots("sequence_pool_grad", {"X", "Out@GRAD"}, {"X@GRAD"});
      inputs.erase("Out");
    }
    for (const NamedAttr& attr : op.attrs()) grad.Set(attr.name, attr.value);
    cases.push_back({grad, inputs, {{"X@GRAD", dx}}});
  };
  for (const auto& [values, first] :
       {std::pair{std::array{kNan, 1.0, 2.0, 3.0}, 0}, std::pair{std::array{9.0, 8.0, kNan, kNan}, 2},
        std::pair{std::array{9.0, 8.0, 7.0, kNan}, 3}}) {
    std::vector<double> dx(4, 0);
    dx[static_cast<std::size_t>(first)] = 7;
    const auto x = [&v = values](Shape shape) { return Row({v[0], v[1], v[2], v[3]}, std::move(shape)); };
    add(WithSlots("maxout", {"X"}, {"Out"}).Set("groups", 4), x({1, 4, 1, 1}), kNan, dx);
    add(WithSlots("pool2d", {"X"}, {"Out"})
            .Set("pooling_type", "max")
            .Set("ksize", std::vector<std::int32_t>{2, 2}),
        x({1, 1, 2, 2}), kNan, dx);
    Op pool = WithSlots("sequence_pool", {"X"}, {"Out", "MaxIndex"}).Set("pooltype", "MAX");
    add(pool, InOneSequence(x({4})), kNan, dx);
    cases.push_back({pool, {{"X", InOneSequence(x({4}))}}, {{"MaxIndex", {static_cast<double>(first)}}}});
  }
  return cases;
}

// NaN in the step counter that starts a compression, and in its inputs before that.
std::vector<NanCase> Compressions() {
  Op dgc = WithSlots("dgc", {"U", "V", "Grad", "Param", "current_step", "nranks"},
                     {"U_out", "V_out", "Grad_out", "k"});
  const Tensor zeros = Row({0, 0, 0, 0});
  const Tensors waiting = {{"U", zeros},     {"V", Row({1, kNan, 3, 0})}, {"Grad", zeros},
                           {"Param", zeros}, {"current_step", Row({1})},  {"nranks", Row({1})}};
  dgc.Set("sparsity", std::vector<float>{0.75f}).Set("rampup_begin_step", 0.0f).Set("rampup_step", 1.0f);
  Tensors before = waiting;
  before["current_step"] = Row({kNan});
  const Op clip = WithSlots("dgc_clip_by_norm", {"X", "current_step"}, {"Out"}).Set("max_norm", 1.0f);
  Op momentum =
      WithSlots("dgc_momentum", {"Param", "Grad", "Velocity", "LearningRate", "current_step", "nranks"},
                {"ParamOut", "VelocityOut"});
  momentum.Set("mu", 0.5f).Set("rampup_begin_step", 4.0f);
  const Op bytes = WithSlots("lookup_table_dequant", {"W", "Ids"}, {"Out"});
  const Tensor id = TensorOf<std::int64_t>({1, 1}, {0});
  return {{bytes, {{"W", Row({kNan, 1, 0}, {1, 3})}, {"Ids", id}}, {{"Out", {kNan, kNan, kNan, kNan}}}},
          {dgc, waiting, {{"Grad_out", {0, kNan, 0, 0}}, {"V_out", {1, 0, 3, 0}}}},
          {dgc, before, {{"Grad_out", {0, 0, 0, 0}}, {"V_out", {1, kNan, 3, 0}}}},
          {Op(clip).Set("rampup_begin_step", 0.0f),
           {{"X", Row({3, 4})}, {"current_step", Row({kNan})}},
           {{"Out", {3, 4}}}},
          {momentum,
           {{"Param", Row({10})},
            {"Grad", Row({8})},
            {"Velocity", Row({6})},
            {"LearningRate", Row({0.5})},
            {"current_step", Row({kNan})},
            {"nranks", Row({2})}},
           {{"VelocityOut", {7}}, {"ParamOut", {6.5}}}}};
}

// A label also decides the number of counted elements.
std::vector<NanCase> Labels() {
  const Op loss =
      WithSlots("sigmoid_cross_entropy_with_logits", {"X", "Label"}, {"Out"}).Set("normalize", true);
  return {{loss, {{"X", Row({0, 0})}, {"Label", Row({kNan, 1})}}, {{"Out", {kNan, std::log(2.0f) / 2}}}},
          {loss, {{"X", Row({kNan, 0})}, {"Label", Row({0, 1})}}, {{"Out", {kNan, std::log(2.0f) / 2}}}}};
}

// Searched elements and drawn numbers.
std::vector<NanCase> Searches() {
  const Tensor some = Row({2, kNan, 2, kNan});
  const Op shares = WithSlots("sampling_id", {"X"}, {"Out"}).Set("seed", 1);
  const Op close = WithSlots("allclose", {"Input", "Other"}, {"Out"});
  return {
      {WithSlots("where_index", {"Condition"}, {"Out"}),
       {{"Condition", Row({0, kNan, 3})}},
       {{"Out", {1, 2}}}},
      {WithSlots("unique", {"X"}, {"Out", "Index"}).Set("dtype", 2),
       {{"X", some}},
       {{"Out", {2, kNan, kNan}}, {"Index", {0, 1, 0, 2}}}},
      {WithSlots("unique_with_counts", {"X"}, {"Out", "Index", "Count"}).Set("dtype", 3),
       {{"X", some}},
       {{"Out", {2, kNan, kNan}}, {"Count", {2, 1, 1}}}},
      {WithSlots("equal_reduce", {"X", "Y"}, {"Out"}),
       {{"X", Row({1, kNan})}, {"Y", Row({1, kNan})}},
       {{"Out", {0}}}},
      {close, {{"Input", Row({1, kNan})}, {"Other", Row({1, kNan})}}, {{"Out", {0}}}},
      {Op(close).Set("equal_nan", true),
       {{"Input", Row({1, kNan})}, {"Other", Row({1, kNan})}},
       {{"Out", {1}}}},
      {Op(close).Set("equal_nan", true), {{"Input", Row({1, kNan})}, {"Other", Row({1, 2})}}, {{"Out", {0}}}},
      {shares, {{"X", Row({kNan, 1, 0}, {1, 3})}}, {{"Out", {2}}}},
      {WithSlots("sequence_topk_avg_pooling", {"X", "ROW", "COLUMN"}, {"Out", "pos"})
           .Set("topks", std::vector<std::int32_t>{1, 2})
           .Set("channel_num", 1),
       {{"X", InOneSequence(Row({5, kNan, 2}, {3, 1}))},
        {"ROW", InOneSequence(Row({0}, {1, 1}))},
        {"COLUMN", InOneSequence(Row({0, 0, 0}, {3, 1}))}},
       {{"Out", {kNan, kNan}}, {"pos", {1, 0}}}},
      {WithSlots("similarity_focus", {"X"}, {"Out"})
           .Set("axis", 1)
           .Set("indexes", std::vector<std::int32_t>{0}),
       {{"X", Row({kNan, 2, 3, 1}, {1, 1, 2, 2})}},
       {{"Out", {0, 1, 1, 0}}}}};
}

std::vector<NanCase> AllNanCases() {
  std::vector<NanCase> all;
  for (auto* some : {Comparisons, Orders, Maxima, Compressions, Labels, Searches}) {
    for (NanCase& c : some()) all.push_back(std::move(c));
  }
  for (NanCase& c : VisionNanCases()) all.push_back(std::move(c));
  return all;
}

TEST(Nan, FollowsTheDeclarationOfEachOp) {
  for (const NanCase& c : AllNanCases()) {
    const Result<Tensors> made = RunOp(AllOps(), c.op, c.inputs);
    ASSERT_TRUE(made.ok()) << PrintOp(c.op) << made.status().ToString();
    for (const auto& [name, expected] : c.outputs) {
      const Tensor& got = made->at(name);
      ASSERT_EQ(static_cast<std::size_t>(got.count()), expected.size()) << PrintOp(c.op);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const double value = ElementAt(got, static_cast<std::int64_t>(i));
        if (std::isnan(expected[i])) {
          EXPECT_TRUE(std::isnan(value)) << PrintOp(c.op) << name << "[" << i << "] = " << value;
        } else {
          EXPECT_FLOAT_EQ(static_cast<float>(value), static_cast<float>(expected[i]))
              << PrintOp(c.op) << name << "[" << i << "]";
        }
      }
    }
  }
}

TEST(Nan, NceRefusesNanProbabilities) {
  int refused = 0;
  ForEachOp([&refused](const Op& op, const Tensors& inputs) {
    const auto given = inputs.find("CustomDistAliasProbs");
    if (op.type() != "nce" || given == inputs.end()) return;
    Tensors other = inputs;
    Tensor& tensor = other["CustomDistAliasProbs"] = given->second.Clone();
    for (std::int64_t i = 0; i < tensor.count(); ++i) SetAt(tensor, i, kNan);
    EXPECT_EQ(RunOp(AllOps(), op, other).status().id(), "E-op-label");
    ++refused;
  });
  EXPECT_GT(refused, 0);
}

TEST(Nan, EachDeclarationHasATest) {
  std::set<std::string> declared, tested;
  for (const OpDef* def : AllOps().All()) {
    if (!def->nan().empty()) declared.insert(def->type());
  }
  for (const NanCase& c : AllNanCases()) tested.insert(SpeaksFor(c.op.type()).type());
  EXPECT_EQ(declared, tested);
}

}  // namespace
}  // namespace penstock::test
