// lstm, lstmp and gru over random sequences: outputs agree with the formulas, gradients with central
// differences, floats with doubles; and the bytes do not depend on the number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "operators/all_ops.h"
#include "tests/ops/gradient_case.h"
#include "tests/support/op_harness.h"

namespace penstock::test {
namespace {

using Random = std::mt19937;
using Row = std::vector<double>;

const std::vector<std::string> kActivations = {"sigmoid", "tanh", "relu", "identity"};

double Apply(const std::string& f, double x) {
  if (f == "sigmoid") return 1 / (1 + std::exp(-std::clamp(x, -40.0, 13.0)));
  if (f == "tanh") return std::tanh(x);
  if (f == "relu") return std::max(x, 0.0);
  return x;
}
double Clipped(double x, double bound) { return bound > 0 ? std::clamp(x, -bound, bound) : x; }

// Sequences of up to 6 rows, some of none; sometimes so many that a step is divided into shares.
LoD RandomSequences(Random& random, bool many) {
  LoD lod = {{0}};
  const std::size_t count = many ? 33 + random() % 40 : 1 + random() % 5;
  for (std::size_t s = 0; s < count; ++s) lod[0].push_back(lod[0].back() + random() % (many ? 4 : 7));
  return lod;
}

struct RecurrentCase {
  Op op;
  Tensors inputs;  // f64
  LoD lod;
  Dim width = 1, recurrent = 1;
  std::vector<std::string> of;
  std::set<std::string> wanted;

  std::string Name(const std::string& attr) const { return op.GetOr<std::string>(attr, ""); }
  bool Flag(const std::string& attr) const { return op.GetOr<bool>(attr, false); }
  double At(const std::string& slot, Dim row, Dim j) const {
    const Tensor& tensor = inputs.at(slot);
    return tensor.Data<double>()[row * tensor.shape()[1] + j];
  }
  Row Initial(const std::string& slot, Dim sequence, Dim size) const {
    Row row(static_cast<std::size_t>(size), 0);
    for (Dim j = 0; inputs.contains(slot) && j < size; ++j)
      row[static_cast<std::size_t>(j)] = At(slot, sequence, j);
    return row;
  }
  // The rows of a sequence, in the order in which they run.
  std::vector<Dim> RowsOf(std::size_t sequence) const {
    std::vector<Dim> rows;
    for (std::uint64_t r = lod[0][sequence]; r < lod[0][sequence + 1]; ++r)
      rows.push_back(static_cast<Dim>(r));
    if (Flag("is_reverse")) std::ranges::reverse(rows);
    return rows;
  }
};

// Small values, so that recurrences without a bound (relu, identity) do not grow over the steps.
void AddInput(RecurrentCase& c, const std::string& slot, const Shape& shape, Random& random,
              double size = 0.7) {
  c.op.AddInput(slot, {slot});
  c.inputs[slot] = Values(shape, -size, size, static_cast<unsigned>(random()));
  c.wanted.insert(slot);
}

RecurrentCase RandomLstm(Random& random, bool many, Dim width_max) {
  RecurrentCase c;
  const bool projected = random() % 2 == 0, peepholes = random() % 2 == 0;
  c.lod = RandomSequences(random, many);
  const Dim rows = static_cast<Dim>(c.lod[0].back()), count = static_cast<Dim>(c.lod[0].size()) - 1;
  c.width = 1 + static_cast<Dim>(random()) % width_max;
  c.recurrent = projected ? 1 + static_cast<Dim>(random()) % width_max : c.width;
  const auto any = [&] { return kActivations[random() % 4]; };
  const bool usual = random() % 2 == 0;
  c.op = Op(projected ? "lstmp" : "lstm")
             .Set("use_peepholes", peepholes)
             .Set("is_reverse", random() % 2 == 0)
             .Set("gate_activation", usual ? "sigmoid" : any())
             .Set("cell_activation", usual ? "tanh" : any())
             .Set("candidate_activation", usual ? "tanh" : any());
  AddInput(c, "Input", {rows, 4 * c.width}, random);
  c.inputs["Input"].set_lod(c.lod);
  AddInput(c, "Weight", {c.recurrent, 4 * c.width}, random, 1.0 / static_cast<double>(c.recurrent));
  AddInput(c, "Bias", {1, (peepholes ? 7 : 4) * c.width}, random);
  if (random() % 2 == 0) AddInput(c, "H0", {count, c.recurrent}, random);
  if (random() % 2 == 0) AddInput(c, "C0", {count, c.width}, random);
  c.of = {projected ? "Projection" : "Hidden", "Cell"};
  if (projected) {
    AddInput(c, "ProjWeight", {c.width, c.recurrent}, random, 1.0 / static_cast<double>(c.width));
    c.op.Set("proj_activation", any())
        .Set("cell_clip", random() % 2 == 0 ? 0.75f : 0.0f)
        .Set("proj_clip", random() % 2 == 0 ? 0.5f : 0.0f)
        .AddOutput("BatchHidden", {"BatchHidden"});
  }
  for (const std::string& slot : {c.of[0], c.of[1], std::string("BatchGate"), std::string("BatchCellPreAct")})
    c.op.AddOutput(slot, {slot});
  return c;
}

RecurrentCase RandomGru(Random& random, bool many, Dim width_max) {
  RecurrentCase c;
  c.lod = RandomSequences(random, many);
  const Dim rows = static_cast<Dim>(c.lod[0].back()), count = static_cast<Dim>(c.lod[0].size()) - 1;
  c.width = c.recurrent = 1 + static_cast<Dim>(random()) % width_max;
  const bool usual = random() % 2 == 0;
  c.op = Op("gru")
             .Set("is_reverse", random() % 2 == 0)
             .Set("origin_mode", random() % 2 == 0)
             .Set("gate_activation", usual ? "sigmoid" : kActivations[random() % 4])
             .Set("activation", usual ? "tanh" : kActivations[random() % 4]);
  AddInput(c, "Input", {rows, 3 * c.width}, random);
  c.inputs["Input"].set_lod(c.lod);
  AddInput(c, "Weight", {c.width, 3 * c.width}, random, 1.0 / static_cast<double>(c.recurrent));
  if (random() % 2 == 0) AddInput(c, "Bias", {1, 3 * c.width}, random);
  if (random() % 2 == 0) AddInput(c, "H0", {count, c.width}, random);
  for (const char* slot : {"BatchGate", "BatchResetHiddenPrev", "BatchHidden", "Hidden"})
    c.op.AddOutput(slot, {slot});
  c.of = {"Hidden"};
  return c;
}

struct Expected {
  std::vector<Row> out, cell;  // by row
};

// One step of one sequence by the formulas: changes h and s, the output and the cell.
void LstmStep(const RecurrentCase& c, Dim row, Row& h, Row& s) {
  const Dim w = c.width;
  const auto sum = [&](Dim part, Dim j) {
    double total = c.At("Input", row, part * w + j) + c.At("Bias", 0, part * w + j);
    for (std::size_t i = 0; i < h.size(); ++i)
      total += h[i] * c.At("Weight", static_cast<Dim>(i), part * w + j);
    return total;
  };
  const auto check = [&](Dim part, Dim j, double cell) {
    return c.Flag("use_peepholes") ? cell * c.At("Bias", 0, (4 + part) * w + j) : 0;
  };
  const std::string gate = c.Name("gate_activation");
  Row hidden;
  for (Dim j = 0; j < w; ++j) {
    double& cell = s[static_cast<std::size_t>(j)];
    const double candidate = Apply(c.Name("candidate_activation"), sum(0, j));
    const double in = Apply(gate, sum(1, j) + check(0, j, cell)),
                 forget = Apply(gate, sum(2, j) + check(1, j, cell));
    cell = Clipped(candidate * in + cell * forget, c.op.GetOr<float>("cell_clip", 0));
    hidden.push_back(Apply(gate, sum(3, j) + check(2, j, cell)) * Apply(c.Name("cell_activation"), cell));
  }
  if (c.op.type() == "lstm") {
    h = hidden;
    return;
  }
  for (std::size_t p = 0; p < h.size(); ++p) {
    double total = 0;
    for (Dim j = 0; j < w; ++j)
      total += hidden[static_cast<std::size_t>(j)] * c.At("ProjWeight", j, static_cast<Dim>(p));
    h[p] = Clipped(Apply(c.Name("proj_activation"), total), c.op.GetOr<float>("proj_clip", 0));
  }
}

// Weight holds [width, 2 * width] and then [width, width].
void GruStep(const RecurrentCase& c, Dim row, Row& h) {
  const Dim w = c.width;
  const double* const weight = c.inputs.at("Weight").Data<double>();
  const auto input = [&](Dim part, Dim j) {
    return c.At("Input", row, part * w + j) + (c.inputs.contains("Bias") ? c.At("Bias", 0, part * w + j) : 0);
  };
  Row update, reset;
  for (Dim part = 0; part < 2; ++part) {
    for (Dim j = 0; j < w; ++j) {
      double total = input(part, j);
      for (Dim i = 0; i < w; ++i) total += h[static_cast<std::size_t>(i)] * weight[i * 2 * w + part * w + j];
      (part == 0 ? update : reset).push_back(Apply(c.Name("gate_activation"), total));
    }
  }
  Row next;
  for (Dim j = 0; j < w; ++j) {
    double total = input(2, j);
    for (std::size_t i = 0; i < h.size(); ++i)
      total += reset[i] * h[i] * weight[2 * w * w + static_cast<Dim>(i) * w + j];
    const double u = update[static_cast<std::size_t>(j)], share = c.Flag("origin_mode") ? 1 - u : u;
    const double old = h[static_cast<std::size_t>(j)];
    next.push_back((1 - share) * old + share * Apply(c.Name("activation"), total));
  }
  h = next;
}

Expected ByTheFormulas(const RecurrentCase& c) {
  Expected made;
  made.out.resize(c.lod[0].back());
  made.cell.resize(c.lod[0].back());
  for (std::size_t s = 0; s + 1 < c.lod[0].size(); ++s) {
    Row h = c.Initial("H0", static_cast<Dim>(s), c.recurrent),
        cell = c.Initial("C0", static_cast<Dim>(s), c.width);
    for (const Dim row : c.RowsOf(s)) {
      c.op.type() == "gru" ? GruStep(c, row, h) : LstmStep(c, row, h, cell);
      made.out[static_cast<std::size_t>(row)] = h;
      made.cell[static_cast<std::size_t>(row)] = cell;
    }
  }
  return made;
}

void ExpectRows(const Tensor& actual, const std::vector<Row>& expected, double tolerance, const Op& op) {
  std::int64_t at = 0;
  for (const Row& row : expected) {
    for (const double value : row) {
      const double given = ElementAt(actual, at++);
      ASSERT_NEAR(given, value, tolerance * std::max(1.0, std::abs(value))) << op.type();
    }
  }
}

Tensors InFloats(const Tensors& doubles) {
  Tensors floats;
  for (const auto& [name, tensor] : doubles) {
    Tensor made(DType::kFp32, tensor.shape());
    std::ranges::transform(tensor.Span<double>(), made.Data<float>(),
                           [](double x) { return static_cast<float>(x); });
    made.set_lod(tensor.lod());
    floats[name] = made;
  }
  return floats;
}

// The outputs and the gradients of all inputs. The gradients of the outputs depend on their shapes only.
Result<Tensors> ForwardAndBackward(const RecurrentCase& c, const Tensors& inputs, int threads) {
  Services services;
  services.threads = threads;
  PENSTOCK_ASSIGN_OR_RETURN(Tensors made, RunOp(AllOps(), c.op, inputs, services));
  Tensors known = inputs;
  for (const auto& [name, tensor] : made) known[name] = tensor;
  for (const std::string& name : c.of) {
    const Tensor& out = made.at(name);
    Tensor grad = Scattered(out.dtype(), out.shape(), -1, 1, 9);
    grad.set_lod(out.lod());
    known[name + kGradSuffix] = grad;
  }
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<Op> grads, MakeGradOps(AllOps(), c.op, c.wanted));
  for (const Op& grad : grads) {
    PENSTOCK_ASSIGN_OR_RETURN(const Tensors results, RunOp(AllOps(), grad, known, services));
    for (const auto& [name, tensor] : results) made[name] = tensor;
  }
  return made;
}

RecurrentCase AnyCase(int i, Random& random, Dim width_max) {
  const bool many = i % 4 == 3;
  return i % 3 == 2 ? RandomGru(random, many, width_max) : RandomLstm(random, many, width_max);
}

TEST(Recurrences, ComputeTheFormulas) {
  Random random(11);
  for (int i = 0; i < 160; ++i) {
    const RecurrentCase c = AnyCase(i, random, 40);
    const Expected expected = ByTheFormulas(c);
    for (const bool floats : {false, true}) {
      const Result<Tensors> made = RunOp(AllOps(), c.op, floats ? InFloats(c.inputs) : c.inputs);
      ASSERT_TRUE(made.ok()) << made.status().ToString();
      const double tolerance = floats ? 2e-5 : 1e-11;
      ExpectRows(made->at(c.of[0]), expected.out, tolerance, c.op);
      if (c.of.size() > 1) ExpectRows(made->at("Cell"), expected.cell, tolerance, c.op);
    }
  }
}

TEST(Recurrences, GradientsOfPartsAgreeWithDifferences) {
  Random random(12);
  for (int i = 0; i < 12; ++i) {
    RecurrentCase c = i % 3 == 2 ? RandomGru(random, true, 2) : RandomLstm(random, true, 2);
    // Near a kink a difference is no derivative.
    for (const char* attr :
         {"gate_activation", "cell_activation", "candidate_activation", "activation", "proj_activation"})
      if (c.Name(attr) == "relu") c.op.Set(attr, "tanh");
    for (const char* clip : {"cell_clip", "proj_clip"})
      if (c.op.type() == "lstmp") c.op.Set(clip, 0.0f);
    const Status agrees = CheckGradient(AllOps(), c.op, c.inputs, {.of = c.of, .wanted = c.wanted});
    EXPECT_TRUE(agrees.ok()) << c.op.type() << ": " << agrees.ToString();
  }
}

TEST(Recurrences, FloatGradientsAgreeWithDouble) {
  Random random(13);
  for (int i = 0; i < 160; ++i) {
    RecurrentCase c = AnyCase(i, random, 40);
    // At a bound, floats and doubles may lie on different sides.
    for (const char* attr :
         {"gate_activation", "cell_activation", "candidate_activation", "activation", "proj_activation"})
      if (c.Name(attr) == "relu" && i % 5 != 0) c.op.Set(attr, "sigmoid");
    const Result<Tensors> doubles = ForwardAndBackward(c, c.inputs, 1);
    const Result<Tensors> floats = ForwardAndBackward(c, InFloats(c.inputs), 1);
    ASSERT_TRUE(doubles.ok()) << doubles.status().ToString();
    ASSERT_TRUE(floats.ok()) << floats.status().ToString();
    for (const auto& [name, tensor] : *doubles) {
      const Tensor& given = floats->at(name);
      ASSERT_EQ(given.shape(), tensor.shape());
      double largest = 1;
      for (std::int64_t e = 0; e < tensor.count(); ++e)
        largest = std::max(largest, std::abs(ElementAt(tensor, e)));
      for (std::int64_t e = 0; e < tensor.count(); ++e)
        ASSERT_NEAR(ElementAt(given, e), ElementAt(tensor, e), 5e-5 * largest)
            << c.op.type() << " " << name << " " << i;
    }
  }
}

TEST(Recurrences, HaveTheSameBytesOnAnyNumberOfThreads) {
  Random random(14);
  for (int i = 0; i < 24; ++i) {
    const RecurrentCase c = i % 3 == 2 ? RandomGru(random, true, 40) : RandomLstm(random, true, 40);
    const Tensors inputs = InFloats(c.inputs);
    const Result<Tensors> alone = ForwardAndBackward(c, inputs, 1);
    ASSERT_TRUE(alone.ok()) << alone.status().ToString();
    for (const int threads : {2, 3, 9}) {
      const Result<Tensors> together = ForwardAndBackward(c, inputs, threads);
      ASSERT_TRUE(together.ok()) << together.status().ToString();
      for (const auto& [name, tensor] : *alone)
        EXPECT_EQ(std::memcmp(together->at(name).raw(), tensor.raw(), tensor.bytes()), 0)
            << c.op.type() << " " << name;
    }
  }
}

}  // namespace
}  // namespace penstock::test
