// Optimizers of a key-value store: arguments, text, the numbers of an update, and the update's program.
#include "executor/kvstore/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "framework/base/strings.h"
#include "framework/text/printer.h"

namespace penstock::kvstore {
namespace {

KeyOptimizer Made(const char* name, const Numbers& given, Schedule schedule = {},
                  std::map<std::string, std::string, std::less<>> names = {}) {
  return MakeOptimizer(name, given, std::move(schedule), std::move(names)).value();
}
Schedule Scheduled(const char* type, const Numbers& given, std::vector<std::int64_t> steps = {},
                   bool constant_warmup = false) {
  return MakeSchedule(type, given, std::move(steps), constant_warmup).value();
}

TEST(KeyOptimizer, FillsInTheDefaultsOfMxnet) {
  const KeyOptimizer adam = Made("adam", {{"wd", 0.5}});
  EXPECT_EQ(adam.Number("learning_rate"), 0.001);
  EXPECT_EQ(adam.Number("beta2"), 0.999);
  EXPECT_EQ(adam.Number("wd"), 0.5);
  EXPECT_FALSE(adam.numbers.contains("clip_gradient"));
  EXPECT_EQ(Made("sgd", {}).Number("learning_rate"), 0.01);
}

TEST(KeyOptimizer, TextReadsBack) {
  for (const std::string& name : OptimizerNames()) {
    KeyOptimizer made = Made(name.c_str(), {{"learning_rate", 1.0 / 3}, {"clip_gradient", 0.25}},
                             Scheduled("multi_factor", {{"factor", 0.5}}, {2, 7}, true),
                             {{"0", "a_weight"}, {"1", "b bias"}});
    made.lr_multipliers = {{"3", 0.1}, {"w.x", 2}};
    const Result<KeyOptimizer> read = ParseOptimizer(made.ToString());
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_EQ(*read, made) << made.ToString();
  }
  EXPECT_EQ(Made("test", {}).ToString(),
            "test {begin_num_update=0, learning_rate=0.01, multi_precision=0, rescale_grad=1, wd=0}");
}

// The text comes from a peer: whatever it is, reading it ends.
TEST(KeyOptimizer, DamagedTextsAreRefusedOrRead) {
  KeyOptimizer made = Made("sgd", {{"momentum", 0.5}}, Scheduled("multi_factor", {{"factor", 0.5}}, {2, 7}),
                           {{"0", "a_weight"}});
  made.lr_multipliers = {{"w x", 0.1}};
  const std::string text = made.ToString();
  int refused = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    refused += ParseOptimizer(text.substr(0, i)).ok() ? 0 : 1;
    for (const char c : {'{', '}', '"', '9', '-', '\0', '\n'}) {
      std::string other = text;
      other[i] = c;
      const Result<KeyOptimizer> read = ParseOptimizer(other);
      if (!read.ok()) continue;
      EXPECT_TRUE(std::isfinite(NumbersAt(*read, "w", 5, 9).rate)) << other;
    }
  }
  EXPECT_GT(refused, 100);
}

std::string ErrorOf(const Result<KeyOptimizer>& made) { return made.status().ToString(); }

TEST(KeyOptimizer, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(
      ErrorOf(MakeOptimizer("adamw", {})),
      "there is no optimizer \"adamw\"; there are adadelta, adagrad, adam, adamax, ccsgd, dcasgd, ftml, "
      "ftrl, groupadagrad, lamb, lars, nadam, nag, rmsprop, sgd, sgld, signum, test   "
      "[E-kv-optimizer-name]");
  EXPECT_EQ(ErrorOf(MakeOptimizer("sgd", {{"momentun", 0.9}})),
            "sgd has no argument momentun; it has learning_rate, momentum, lazy_update, wd, rescale_grad, "
            "clip_gradient, multi_precision, begin_num_update   [E-kv-optimizer-argument]\n"
            "  did you mean momentum");
  EXPECT_EQ(ErrorOf(MakeOptimizer("adam", {{"beta1", 1}})),
            "adam: beta1 is 1; it must be at least 0 and below 1   [E-kv-optimizer-argument]");
  EXPECT_EQ(ErrorOf(MakeOptimizer("groupadagrad", {{"wd", 0.1}})),
            "groupadagrad: wd is 0.1; it has no weight decay   [E-kv-optimizer-refused]");
  EXPECT_EQ(ErrorOf(MakeOptimizer("dcasgd", {{"momentum", 0.9}})),
            "dcasgd: momentum is 0.9; it has no momentum   [E-kv-optimizer-refused]");
  EXPECT_EQ(ErrorOf(MakeOptimizer("lbsgd", {})),
            "lbsgd: it is not offered; use lars, or sgd with a schedule that has warmup_steps   "
            "[E-kv-optimizer-refused]");
  EXPECT_EQ(ParseOptimizer("sgd {wd=0, wd=1}").status().id(), "E-text-syntax");
  EXPECT_EQ(ParseOptimizer("sgd {} keys").status().id(), "E-text-syntax");
}

TEST(KeyOptimizer, MultipliesByKeyThenByName) {
  KeyOptimizer sgd = Made("sgd", {{"learning_rate", 1}, {"wd", 1}}, {},
                          {{"0", "a_weight"}, {"1", "b_bias"}, {"2", "c_gamma"}});
  sgd.lr_multipliers = {{"0", 0.25}, {"c_gamma", 0.5}, {"a_weight", 8}};
  const auto at = [&](const char* key) { return NumbersAt(sgd, key, 1, 1); };
  EXPECT_EQ(at("0").rate, 0.25);
  EXPECT_EQ(at("1").rate, 1);
  EXPECT_EQ(at("2").rate, 0.5);
  EXPECT_EQ(at("0").decay, 1);
  EXPECT_EQ(at("1").decay, 0);  // its name ends neither in _weight nor in _gamma
  EXPECT_EQ(at("2").decay, 1);
  SetDecayMultipliers(sgd, {{"b_bias", 0.5}});
  EXPECT_EQ(at("1").decay, 0.5);
}

TEST(KeyOptimizer, SchedulesByTheLargestCount) {
  const KeyOptimizer sgd =
      Made("sgd", {{"begin_num_update", 10}}, Scheduled("factor", {{"step", 10}, {"factor", 0.5}}));
  EXPECT_EQ(NumbersAt(sgd, "w", 3, 10).rate, 0.005);
  EXPECT_EQ(NumbersAt(sgd, "w", 3, 11).rate, 0.0025);
  EXPECT_EQ(NumbersAt(sgd, "w", 3, 11).count, 13);
}

TEST(KeyOptimizer, AGivenRateReplacesThatOfFactors) {
  const Schedule factors = Scheduled("factor", {{"step", 1}, {"base_lr", 1}});
  EXPECT_EQ(NumbersAt(Made("sgd", {}, factors), "w", 1, 1).rate, 1);
  EXPECT_EQ(NumbersAt(Made("sgd", {{"learning_rate", 0.5}}, factors), "w", 1, 1).rate, 0.5);
  EXPECT_EQ(NumbersAt(Made("adam", {}, factors), "w", 1, 1).rate, 0.001);
  const Schedule cosine = Scheduled("cosine", {{"max_update", 4}, {"base_lr", 1}});
  EXPECT_EQ(NumbersAt(Made("sgd", {{"learning_rate", 0.5}}, cosine), "w", 2, 2).rate, 0.5);
}

TEST(Schedule, GivesTheRatesOfMxnet) {
  const auto rates = [](const Schedule& schedule) {
    std::vector<double> all;
    for (int n = 1; n <= 7; ++n) all.push_back(RateAt(schedule, n));
    return all;
  };
  using Rates = std::vector<double>;
  EXPECT_EQ(
      rates(Scheduled("factor", {{"step", 2}, {"factor", 0.5}, {"base_lr", 1}, {"stop_factor_lr", 0.2}})),
      (Rates{1, 1, 0.5, 0.5, 0.25, 0.25, 0.2}));
  EXPECT_EQ(rates(Scheduled("multi_factor", {{"factor", 0.25}, {"base_lr", 1}}, {2, 4})),
            (Rates{1, 1, 0.25, 0.25, 0.0625, 0.0625, 0.0625}));
  EXPECT_EQ(rates(Scheduled(
                "poly", {{"max_update", 6}, {"base_lr", 1}, {"warmup_steps", 2}, {"warmup_begin_lr", 0.25}})),
            (Rates{0.625, 1, 0.5625, 0.25, 0.0625, 0, 0}));
  const Rates cosine = rates(Scheduled("cosine", {{"max_update", 4}, {"base_lr", 1}, {"final_lr", 0.5}}));
  EXPECT_NEAR(cosine[1], 0.75, 1e-12);
  EXPECT_NEAR(cosine[0], 0.5 + 0.5 * (1 + std::sqrt(0.5)) / 2, 1e-12);
  EXPECT_EQ(cosine[6], 0.5);
  EXPECT_EQ(
      RateAt(Scheduled("poly",
                       {{"max_update", 6}, {"base_lr", 1}, {"warmup_steps", 3}, {"warmup_begin_lr", 0.25}},
                       {}, true),
             2),
      0.25);
}

TEST(Schedule, RefusesWhatCannotBe) {
  const auto error = [](const char* type, const Numbers& given, std::vector<std::int64_t> steps = {}) {
    return MakeSchedule(type, given, std::move(steps)).status().ToString();
  };
  EXPECT_EQ(error("step", {}),
            "there is no schedule step; there are cosine, factor, multi_factor and poly   [E-kv-schedule]");
  EXPECT_EQ(error("factor", {}), "schedule factor: argument step is missing   [E-kv-schedule]");
  EXPECT_EQ(error("factor", {{"step", 0}}),
            "schedule factor: step is 0; it must be an integer from 1 on   [E-kv-schedule]");
  EXPECT_EQ(error("factor", {{"step", 1}, {"factor", 2}}),
            "schedule factor: factor is 2; it must be at least 0 and at most 1   [E-kv-schedule]");
  EXPECT_EQ(error("poly", {{"max_update", 3}, {"step", 2}}),
            "schedule poly: has no argument step   [E-kv-schedule]");
  EXPECT_EQ(error("poly", {{"max_update", 3}, {"warmup_steps", 3}}),
            "schedule poly: max_update is 3; it must be above warmup_steps, 3   [E-kv-schedule]");
  EXPECT_EQ(error("multi_factor", {}, {3, 3}),
            "schedule multi_factor: step 3 follows 3; steps must rise, from 1 on   [E-kv-schedule]");
  EXPECT_EQ(error("multi_factor", {}), "schedule multi_factor: the list of steps is empty   [E-kv-schedule]");
  EXPECT_EQ(error("cosine", {{"max_update", 3}, {"warmup_begin_lr", 1}}),
            "schedule cosine: warmup_begin_lr is 1; it must be at most base_lr, 0.01   [E-kv-schedule]");
}

TEST(UpdateProgram, DeclaresStatesAndNumbers) {
  const KeyUpdate update =
      UpdateProgram(Made("nadam", {}), {.key = "w", .dtype = DType::kFp16, .shape = {3, 2}}).value();
  EXPECT_EQ(update.states, (std::vector<std::string>{"w@State1", "w@State2", "w@Product"}));
  const Var* param = update.program.main().FindVar("w");
  ASSERT_NE(param, nullptr);
  EXPECT_EQ(param->type->dtype, DType::kFp32);  // of a key of f16
  EXPECT_EQ(update.program.main().FindVar("w@Product")->shape(), Shape({1}));
  EXPECT_EQ(update.program.block(KeyUpdate::kStart).ops().size(), 3u);
  EXPECT_EQ(update.program.block(KeyUpdate::kUpdate).ops().size(), 1u);
}

TEST(UpdateProgram, RefusesKeysThatItCannotUpdate) {
  const auto error = [](const KeyOptimizer& optimizer, const KeyFacts& key) {
    return UpdateProgram(optimizer, key).status().ToString();
  };
  EXPECT_EQ(error(Made("sgd", {}), {.key = "3", .dtype = DType::kInt32, .shape = {1}}),
            "key 3 is i32; an optimizer updates f16, f32 and f64   [E-kv-optimizer-type]");
  EXPECT_EQ(error(Made("groupadagrad", {}), {.key = "3", .shape = {1}}),
            "groupadagrad: key 3 has dense gradients; it updates by rows only   [E-kv-optimizer-refused]");
  EXPECT_EQ(error(Made("adagrad", {{"wd", 0.5}}), {.key = "3", .shape = {4, 2}, .rows = true}),
            "adagrad: wd is 0.5, and key 3 has gradients of rows; it has no weight decay by rows   "
            "[E-kv-optimizer-refused]");
}

}  // namespace
}  // namespace penstock::kvstore
