#include "framework/vector/gates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "tests/unit/vector/each_isa.h"

namespace penstock::vec {
namespace {

using Floats = std::vector<float>;
using Generator = std::mt19937;

constexpr GateFunction kFunctions[] = {GateFunction::kIdentity, GateFunction::kSigmoid, GateFunction::kTanh,
                                       GateFunction::kRelu};

double Defined(GateFunction f, bool bounds, double x) {
  if (f == GateFunction::kSigmoid) return 1 / (1 + std::exp(-(bounds ? std::clamp(x, -40.0, 13.0) : x)));
  if (f == GateFunction::kTanh) return std::tanh(x);
  return f == GateFunction::kRelu && x < 0 ? 0 : x;
}
// dy * f'(x), given y = f(x)
double DefinedGrad(GateFunction f, double y, double dy) {
  if (f == GateFunction::kSigmoid) return dy * y * (1 - y);
  if (f == GateFunction::kTanh) return dy * (1 - y * y);
  if (f == GateFunction::kRelu) return y > 0 ? dy : std::isnan(y) ? y : 0;
  return dy;
}

Floats RandomFloats(std::size_t count, Generator& random, std::initializer_list<float> specials = {}) {
  std::uniform_real_distribution<float> number(-1.5f, 1.5f);
  Floats made(count);
  for (float& value : made) {
    value = number(random);
    if (specials.size() > 0 && random() % 12 == 0) value = specials.begin()[random() % specials.size()];
  }
  return made;
}

// |got - wanted| <= 4e-6 * max(1, |wanted|); NaN and infinities are equal.
void ExpectNear(float got, double wanted, const char* what, std::size_t j) {
  if (std::isnan(wanted)) {
    EXPECT_TRUE(std::isnan(got)) << what << " " << j << ": " << got;
  } else if (std::isinf(wanted)) {
    EXPECT_EQ(got, wanted) << what << " " << j;
  } else {
    EXPECT_NEAR(got, wanted, 4e-6 * std::max(1.0, std::abs(wanted))) << what << " " << j;
  }
}

struct LstmCase {
  LstmGates<float> gates;
  Floats bias, peepholes, row, input, before;
  bool has_product = false, has_input = true, has_before = true;

  LstmCase(Generator& random, std::size_t width, std::initializer_list<float> specials) {
    const auto any = [&] { return kFunctions[random() % 4]; };
    gates.width = width;
    if (random() % 2 == 0) gates.gate = any(), gates.cell = any(), gates.candidate = any();
    gates.bounds_sigmoids = random() % 2 == 0;
    gates.clip = random() % 2 == 0 ? 0.8f : 0;
    if (random() % 2 == 0) std::swap(gates.parts.candidate, gates.parts.output);
    bias = RandomFloats(4 * width, random);
    peepholes = RandomFloats(3 * width, random);
    row = RandomFloats(4 * width, random, specials);
    input = RandomFloats(4 * width, random, specials);
    before = RandomFloats(width, random, specials);
    if (random() % 2 == 0) gates.bias = bias.data();
    if (random() % 2 == 0) gates.peepholes = peepholes.data();
    has_product = random() % 2 == 0;
    has_input = !has_product || random() % 2 == 0;
    has_before = random() % 3 != 0;
  }
  double Sum(std::size_t part, std::size_t j) const {
    const std::size_t at = part * gates.width + j;
    double sum = has_input ? input[at] : 0;
    if (gates.bias != nullptr) sum += bias[at];
    return has_product ? sum + row[at] : sum;
  }
  double Check(std::size_t part, std::size_t j) const {
    return gates.peepholes == nullptr ? 0 : peepholes[part * gates.width + j];
  }
};

TEST(LstmForward, MatchesTheDefinition) {
  OnEachIsa([&](Isa) {
    Generator random(3);
    for (int i = 0; i < 300; ++i) {
      const std::size_t width = std::size_t{1} + random() % 40;
      LstmCase c(random, width, {kNaN, kInfinity, -kInfinity});
      Floats row = c.row, cell(width), active(width), out(width);
      LstmForward(c.gates, {.gates = row.data(),
                            .has_product = c.has_product,
                            .input = c.has_input ? c.input.data() : nullptr,
                            .before = c.has_before ? c.before.data() : nullptr,
                            .cell = cell.data(),
                            .active = i % 5 == 0 ? nullptr : active.data(),
                            .out = out.data()});
      const auto& parts = c.gates.parts;
      for (std::size_t j = 0; j < width; ++j) {
        const double before = c.has_before ? c.before[j] : 0;
        const auto gate = [&](double x) { return Defined(c.gates.gate, c.gates.bounds_sigmoids, x); };
        const auto checked = [&](std::size_t part, double by) {
          return c.gates.peepholes == nullptr ? 0 : by * c.Check(part, j);
        };
        const double g = Defined(c.gates.candidate, c.gates.bounds_sigmoids, c.Sum(parts.candidate, j));
        const double in = gate(c.Sum(parts.input, j) + (c.has_before ? checked(0, before) : 0));
        const double forget = gate(c.Sum(parts.forget, j) + (c.has_before ? checked(1, before) : 0));
        double state = g * in + (c.has_before ? before * forget : 0);
        if (c.gates.clip > 0) state = std::clamp<double>(state, -c.gates.clip, c.gates.clip);
        const double output = gate(c.Sum(parts.output, j) + checked(2, state));
        const double squashed = Defined(c.gates.cell, c.gates.bounds_sigmoids, state);
        ExpectNear(row[parts.candidate * width + j], g, "candidate", j);
        ExpectNear(row[parts.input * width + j], in, "input gate", j);
        ExpectNear(row[parts.forget * width + j], forget, "forget gate", j);
        ExpectNear(row[parts.output * width + j], output, "output gate", j);
        ExpectNear(cell[j], state, "cell", j);
        if (i % 5 != 0) ExpectNear(active[j], squashed, "active", j);
        ExpectNear(out[j], output * squashed, "out", j);
      }
    }
  });
}

TEST(LstmBackward, MatchesTheDefinition) {
  OnEachIsa([&](Isa) {
    Generator random(4);
    for (int i = 0; i < 300; ++i) {
      const std::size_t width = std::size_t{1} + random() % 40;
      LstmCase c(random, width, {kNaN});
      const Floats cell = RandomFloats(width, random, {kNaN}), active = RandomFloats(width, random, {kNaN});
      const Floats dout = RandomFloats(width, random, {kNaN}), again = RandomFloats(width, random);
      const Floats direct = RandomFloats(width, random), dnext = RandomFloats(width, random, {kNaN});
      const bool adds = random() % 2 == 0;
      Floats dgates = c.row, dcell = dnext, dpeepholes(3 * width, 0.5f);
      const bool has_checks = c.gates.peepholes != nullptr;
      LstmBackward(c.gates, {.gates = i % 2 == 0 ? dgates.data() : c.row.data(),
                             .before = c.has_before ? c.before.data() : nullptr,
                             .cell = cell.data(),
                             .active = active.data(),
                             .dout = dout.data(),
                             .dout_again = adds ? again.data() : nullptr,
                             .dcell_direct = adds ? direct.data() : nullptr,
                             .dcell = dcell.data(),
                             .dgates = dgates.data(),
                             .dpeepholes = has_checks ? dpeepholes.data() : nullptr});
      const auto& parts = c.gates.parts;
      for (std::size_t j = 0; j < width; ++j) {
        const auto gate = [&](std::size_t part) -> double { return c.row[part * width + j]; };
        const double d = dout[j] + (adds ? again[j] : 0.0), before = c.has_before ? c.before[j] : 0;
        const double d_o = DefinedGrad(c.gates.gate, gate(parts.output), d * active[j]);
        double ds = dnext[j] + (adds ? direct[j] : 0.0);
        ds += DefinedGrad(c.gates.cell, active[j], d * gate(parts.output));
        if (has_checks) ds += d_o * c.Check(2, j);
        if (c.gates.clip > 0 && !(std::abs(cell[j]) < c.gates.clip)) ds = std::isnan(cell[j]) ? cell[j] : 0;
        const double di = DefinedGrad(c.gates.gate, gate(parts.input), ds * gate(parts.candidate));
        const double df = DefinedGrad(c.gates.gate, gate(parts.forget), c.has_before ? ds * before : 0);
        const double dg = DefinedGrad(c.gates.candidate, gate(parts.candidate), ds * gate(parts.input));
        const double handed =
            ds * gate(parts.forget) + (has_checks ? di * c.Check(0, j) + df * c.Check(1, j) : 0);
        ExpectNear(dgates[parts.candidate * width + j], dg, "candidate", j);
        ExpectNear(dgates[parts.input * width + j], di, "input gate", j);
        ExpectNear(dgates[parts.forget * width + j], df, "forget gate", j);
        ExpectNear(dgates[parts.output * width + j], d_o, "output gate", j);
        ExpectNear(dcell[j], handed, "previous cell", j);
        if (!has_checks) continue;
        ExpectNear(dpeepholes[j], 0.5 + (c.has_before ? di * before : 0), "first peephole", j);
        ExpectNear(dpeepholes[width + j], 0.5 + (c.has_before ? df * before : 0), "second peephole", j);
        ExpectNear(dpeepholes[2 * width + j], 0.5 + d_o * cell[j], "third peephole", j);
      }
    }
  });
}

struct GruCase {
  GruGates<float> gates;
  Floats bias, row, input, before;
  bool has_product = false, has_before = true;

  GruCase(Generator& random, std::size_t width, std::initializer_list<float> specials) {
    gates.width = width;
    if (random() % 2 == 0) gates.gate = kFunctions[random() % 4], gates.candidate = kFunctions[random() % 4];
    gates.bounds_sigmoids = random() % 2 == 0;
    gates.origin = random() % 2 == 0;
    bias = RandomFloats(3 * width, random);
    row = RandomFloats(3 * width, random, specials);
    input = RandomFloats(3 * width, random, specials);
    before = RandomFloats(width, random, specials);
    if (random() % 2 == 0) gates.bias = bias.data();
    has_product = random() % 2 == 0;
    has_before = random() % 3 != 0;
  }
  double Gate(GateFunction f, std::size_t at) const {
    double sum = input[at] + (gates.bias != nullptr ? bias[at] : 0.0);
    if (has_product) sum += row[at];
    return Defined(f, gates.bounds_sigmoids, sum);
  }
};

TEST(Gru, MatchesTheDefinition) {
  OnEachIsa([&](Isa) {
    Generator random(5);
    for (int i = 0; i < 300; ++i) {
      const std::size_t width = std::size_t{1} + random() % 40;
      const GruCase c(random, width, {kNaN, kInfinity, -kInfinity});
      Floats row = c.row, reset(width), out(width);
      const GruRow<float> arrays = {.gates = row.data(),
                                    .has_product = c.has_product,
                                    .input = c.input.data(),
                                    .before = c.has_before ? c.before.data() : nullptr,
                                    .reset = reset.data(),
                                    .out = out.data()};
      GruReset(c.gates, arrays);
      GruOut(c.gates, arrays);
      for (std::size_t j = 0; j < width; ++j) {
        const double old = c.has_before ? c.before[j] : 0;
        const double u = c.Gate(c.gates.gate, j), r = c.Gate(c.gates.gate, width + j);
        const double candidate = c.Gate(c.gates.candidate, 2 * width + j);
        ExpectNear(row[j], u, "update gate", j);
        ExpectNear(row[width + j], r, "reset gate", j);
        ExpectNear(row[2 * width + j], candidate, "candidate", j);
        ExpectNear(reset[j], c.has_before ? r * old : 0, "reset", j);
        ExpectNear(out[j], old + (c.gates.origin ? 1 - u : u) * (candidate - old), "out", j);
      }
    }
  });
}

TEST(GruGrad, MatchesTheDefinition) {
  OnEachIsa([&](Isa) {
    Generator random(6);
    for (int i = 0; i < 300; ++i) {
      const std::size_t width = std::size_t{1} + random() % 40;
      const GruCase c(random, width, {kNaN});
      const Floats dout = RandomFloats(width, random, {kNaN}), dreset = RandomFloats(width, random, {kNaN});
      const Floats dnext = RandomFloats(width, random);
      Floats dgates(3 * width), dbefore = dnext;
      const bool adds = random() % 2 == 0;
      const GruGradRow<float> arrays = {.gates = c.row.data(),
                                        .before = c.has_before ? c.before.data() : nullptr,
                                        .dout = dout.data(),
                                        .dout_again = adds ? dbefore.data() : nullptr,
                                        .dreset = dreset.data(),
                                        .dgates = dgates.data(),
                                        .dbefore = dbefore.data()};
      GruOutGrad(c.gates, arrays);
      GruResetGrad(c.gates, arrays);
      for (std::size_t j = 0; j < width; ++j) {
        const double d = dout[j] + (adds ? dnext[j] : 0.0), old = c.has_before ? c.before[j] : 0;
        const double u = c.row[j], r = c.row[width + j], candidate = c.row[2 * width + j];
        const double share = c.gates.origin ? 1 - u : u, sign = c.gates.origin ? -1 : 1;
        ExpectNear(dgates[j], DefinedGrad(c.gates.gate, u, sign * d * (candidate - old)), "update gate", j);
        ExpectNear(dgates[width + j], DefinedGrad(c.gates.gate, r, c.has_before ? dreset[j] * old : 0),
                   "reset gate", j);
        ExpectNear(dgates[2 * width + j], DefinedGrad(c.gates.candidate, candidate, d * share), "candidate",
                   j);
        ExpectNear(dbefore[j], d * (1 - share) + dreset[j] * r, "previous state", j);
      }
    }
  });
}

TEST(GateFunctions, ApplyToArrays) {
  OnEachIsa([&](Isa) {
    Generator random(7);
    for (const GateFunction f : kFunctions) {
      for (const bool bounds : {false, true}) {
        const Floats x = RandomFloats(75, random, {kNaN, kInfinity, -kInfinity, -0.0f, 50, -50});
        const Floats dy = RandomFloats(75, random);
        Floats y = x;
        Activate(f, bounds, y.data(), y.size());
        Floats dx = dy;
        ActivateGrad(f, y.data(), dx.data(), dx.size());
        for (std::size_t j = 0; j < x.size(); ++j) {
          ExpectNear(y[j], Defined(f, bounds, x[j]), "value", j);
          ExpectNear(dx[j], DefinedGrad(f, y[j], dy[j]), "gradient", j);
        }
      }
    }
  });
}

TEST(AddRowsTo, AddsRowsInOrder) {
  OnEachIsa([&](Isa) {
    Generator random(8);
    for (const std::size_t width : {1u, 7u, 16u, 37u}) {
      const Floats rows = RandomFloats(5 * width, random);
      Floats sums(width, 2), expected = sums;
      for (std::size_t i = 0; i < rows.size(); ++i) expected[i % width] += rows[i];
      AddRowsTo(rows.data(), 5, width, sums.data());
      EXPECT_TRUE(SameBytes(sums, expected));
    }
  });
}

TEST(Gates, HaveTheSameBytesWithFusedProducts) {
  ExpectSameBytesWithFusedProducts([] {
    Generator random(9);
    Floats all;
    for (int i = 0; i < 50; ++i) {
      const std::size_t width = std::size_t{1} + random() % 40;
      LstmCase c(random, width, {});
      Floats cell(width), active(width), out(width), dcell(width, 0.25f), dgates(4 * width);
      const float* const before = c.has_before ? c.before.data() : nullptr;
      LstmForward(c.gates, {c.row.data(), c.has_product, c.input.data(), before, cell.data(), active.data(),
                            out.data()});
      LstmBackward(c.gates, {.gates = c.row.data(),
                             .before = before,
                             .cell = cell.data(),
                             .active = active.data(),
                             .dout = c.input.data(),
                             .dcell = dcell.data(),
                             .dgates = dgates.data()});
      for (const Floats* part : {&c.row, &cell, &active, &out, &dcell, &dgates})
        all.insert(all.end(), part->begin(), part->end());
    }
    return all;
  });
}

}  // namespace
}  // namespace penstock::vec
