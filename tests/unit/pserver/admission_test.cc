#include "executor/pserver/machine/admission.h"

#include <gtest/gtest.h>

#include "framework/base/hash.h"
#include "framework/runtime/line_limiter.h"

namespace penstock::test {
namespace {

// b and w are trained; frozen is trainer 0's initial value.
roles::PserverFacts Facts() {
  roles::PserverFacts facts;
  facts.address = "a:1";
  facts.trainers = 2;
  facts.params = {{.param = {"b", DType::kFp32, {3}}, .grads = {"z.0", "b.1"}},
                  {.param = {"frozen", DType::kFp32, {5}}, .start = true, .grads = {}},
                  {.param = {"w", DType::kFp32, {6, 4}}, .grads = {"a.0", "w.1"}}};
  return facts;
}

protocol::Sender SenderOf(const pserver::Admission& admission, int trainer, std::uint64_t incarnation = 1) {
  return {.job = admission.job_hash(),
          .contract = admission.terms(trainer).hash(),
          .incarnation = incarnation,
          .trainer = static_cast<std::uint32_t>(trainer)};
}

protocol::HelloBody HelloOf(const pserver::Admission& admission, int trainer) {
  return {.job = "job", .trainers = 2, .contract = admission.terms(trainer).contract().ToText()};
}

TEST(TrainerTerms, VariablesAreIndicesOfTheContract) {
  const pserver::TrainerTerms terms(Facts(), 0);  // params b, frozen, w; then grads a.0 and z.0, by name
  EXPECT_EQ(terms.params_of_variables(), (std::vector<int>{0, 1, 2, 2, 0}));
  EXPECT_EQ(terms.PushedFor(0), 4u);
  EXPECT_EQ(terms.PushedFor(1), 1u);  // an initial value is the param itself
  EXPECT_EQ(terms.PushedFor(2), 3u);
  EXPECT_EQ(terms.ParamOfGrad(3), 2);
  EXPECT_EQ(terms.ParamOfGrad(2), std::nullopt);
  EXPECT_EQ(terms.ParamOfGrad(5), std::nullopt);
}

TEST(TrainerTerms, ATrainerPushesItsGradientsAndTrainer0FirstValues) {
  const pserver::TrainerTerms first(Facts(), 0), second(Facts(), 1);
  EXPECT_EQ(first.ParamOfPush(4, first.hash()), 0);
  EXPECT_EQ(first.ParamOfPush(4, first.contract().Startup().Hash()), std::nullopt);
  EXPECT_EQ(first.ParamOfPush(1, first.contract().Startup().Hash()), 1);
  EXPECT_EQ(first.ParamOfPush(0, first.hash()), std::nullopt);
  EXPECT_EQ(second.ParamOfPush(1, second.hash()), std::nullopt);
  EXPECT_EQ(second.ParamOfPush(9, second.hash()), std::nullopt);
}

TEST(Admission, DifferentJobFactsAreRefusedInOneLine) {
  roles::PserverFacts facts = Facts();
  facts.job_facts = "has random seed 1\nupdates b, w with adam\n";
  const pserver::Admission admission(facts, "job");
  protocol::HelloBody hello = HelloOf(admission, 1);
  EXPECT_TRUE(admission.Check(SenderOf(admission, 1), hello).ok()) << "Fluid's own programs say nothing";
  hello.job_facts = facts.job_facts;
  EXPECT_TRUE(admission.Check(SenderOf(admission, 1), hello).ok());
  hello.job_facts = "has random seed 1\nupdates b, w with sgd\n";
  const Status status = admission.Check(SenderOf(admission, 1), hello);
  EXPECT_EQ(status.id(), "E-job-mismatch");
  EXPECT_EQ(status.message(), "job: pserver a:1 updates b, w with adam; trainer 1 updates b, w with sgd");
}

TEST(Admission, AMatchingTrainerIsAdmittedUnderEitherContract) {
  const pserver::Admission admission(Facts(), "job");
  protocol::Sender sender = SenderOf(admission, 1);
  EXPECT_TRUE(admission.Check(sender, HelloOf(admission, 1)).ok());
  sender.contract = admission.terms(1).contract().Startup().Hash();
  EXPECT_TRUE(admission.Check(sender, HelloOf(admission, 1)).ok());
}

TEST(Admission, AMismatchedTrainerGetsTheReason) {
  const pserver::Admission admission(Facts(), "job");
  const auto error = [&](const protocol::Sender& sender, const protocol::HelloBody& hello) {
    return admission.Check(sender, hello).ToString();
  };
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  const protocol::Sender sender = SenderOf(admission, 1);
  protocol::HelloBody hello = HelloOf(admission, 1);
  hello.job = "other";
  protocol::Sender other = sender;
  other.job = Fnv1a64("other");
  expect(error(other, hello), "pserver a:1 works for job \"job\", this trainer for \"other\"");
  hello = HelloOf(admission, 1);
  hello.trainers = 3;
  expect(error(sender, hello), "plan: pserver a:1 is made for 2 trainers, trainer 1 for 3");
  protocol::Sender far = sender;
  far.trainer = 2;
  expect(error(far, HelloOf(admission, 1)),
         "plan: trainer_id 2 is out of range; pserver a:1 is made for 2 trainers (0 to 1)");
  protocol::Sender mismatch = sender;
  mismatch.contract = 1;
  hello = HelloOf(admission, 1);
  hello.contract = "param b : f32[4]\ngrad b.1 : f32[4]\n";
  expect(error(mismatch, hello), "first difference, line 1:  param b : f32[3]   |   param b : f32[4]");
  hello.contract = "param b : f32[3]\n";  // of a startup program: compared with that part of ours
  expect(error(mismatch, hello), "first difference, line 2:  param frozen : f32[5]   |   (nothing)");
}

// A hello has at most 64 KB, so that unauthenticated peers cannot send more.
TEST(Admission, TheHelloTruncatesLongContracts) {
  roles::PserverFacts facts = Facts();
  for (int i = 0; i < 5000; ++i) {
    const std::string name = StrCat("x", 10000 + i);
    facts.params.push_back({.param = {name, DType::kFp32, {7}}, .grads = {name + ".0", name + ".1"}});
  }
  const pserver::Admission admission(facts, "job");
  const std::string whole = admission.terms(1).contract().ToText();
  ASSERT_GT(whole.size(), std::size_t{64} << 10);
  const auto error = [&](const std::string& contract) {
    const std::string body = protocol::WriteHello({.job = "job", .trainers = 2, .contract = contract});
    EXPECT_LT(body.size(), std::size_t{33} << 10);
    protocol::Sender sender = SenderOf(admission, 1);
    EXPECT_TRUE(admission.Check(sender, protocol::ReadHello(body).value()).ok());
    sender.contract = 1;
    return admission.Check(sender, protocol::ReadHello(body).value()).ToString();
  };
  std::string early = whole;
  early.replace(early.find("param x10007 : f32[7]"), 21, "param x10007 : f32[9]");
  EXPECT_NE(error(early).find("param x10007 : f32[7]   |   param x10007 : f32[9]"), std::string::npos);
  std::string late = whole;
  late.replace(late.rfind("f32[7]"), 6, "f32[9]");
  EXPECT_NE(error(late).find("they differ after line "), std::string::npos) << error(late);
}

TEST(Admission, ATrainerHasOneProcess) {
  pserver::Admission admission(Facts(), "job");
  admission.Admit(SenderOf(admission, 1, 5), HelloOf(admission, 1));
  const protocol::HelloBody hello = HelloOf(admission, 1);
  EXPECT_TRUE(admission.Check(SenderOf(admission, 1, 5), hello).ok());
  EXPECT_EQ(admission.Check(SenderOf(admission, 1, 4), hello).id(), "E-rpc-fenced");
  EXPECT_EQ(admission.Check(SenderOf(admission, 1, 6), hello).id(), "E-rpc-restart");
  EXPECT_FALSE(admission.Returns(SenderOf(admission, 1, 5)));
  EXPECT_TRUE(admission.Returns(SenderOf(admission, 1, 6)));
  EXPECT_TRUE(admission.Check(SenderOf(admission, 1, 6), hello, true).ok());
}

TEST(LineLimiter, PrintsTenLinesAMinuteAndCountsTheRest) {
  FakeClock clock;
  std::vector<std::string> lines;
  LineLimiter limiter([&](const std::string& line) { lines.push_back(line); }, &clock);
  for (int i = 0; i < 500'000; ++i) limiter.Report("refused");
  EXPECT_EQ(lines, std::vector<std::string>(10, "refused"));
  clock.Advance(std::chrono::seconds(59));
  limiter.Tick();
  EXPECT_EQ(lines.size(), 10u);
  clock.Advance(std::chrono::seconds(1));
  limiter.Tick();
  EXPECT_EQ(lines.back(), "499990 more lines of this kind in the minute before were left out");
  limiter.Report("again");
  EXPECT_EQ(lines.back(), "again");
  clock.Advance(std::chrono::minutes(5));
  limiter.Tick();
  EXPECT_EQ(lines.size(), 12u);
}

TEST(Admission, AwaitsTrainersNeitherAdmittedNorRefused) {
  pserver::Admission admission(Facts(), "job");
  EXPECT_EQ(admission.Awaited(), (std::vector<int>{0, 1}));
  admission.Admit(SenderOf(admission, 0), HelloOf(admission, 0));
  EXPECT_EQ(admission.Awaited(), (std::vector<int>{1}));
  admission.TurnAway(1);
  EXPECT_TRUE(admission.Awaited().empty());
}

Status CheckOf(const pserver::Admission& admission, const protocol::Contract& contract) {
  protocol::Sender sender = SenderOf(admission, 0);
  sender.contract = contract.Hash();
  return admission.Check(sender, {.job = "job", .trainers = 1, .contract = contract.ToText()});
}

void Admit(pserver::Admission& admission, const protocol::Contract& contract) {
  protocol::Sender sender = SenderOf(admission, 0);
  sender.contract = contract.Hash();
  admission.Admit(sender, {.job = "job", .trainers = 1, .contract = contract.ToText()});
}

// emb is updated by rows: a trainer may look up rows, or pull the whole table.
TEST(Admission, TrainersStateHowTheyReadATable) {
  roles::PserverFacts facts;
  facts.address = "a:1";
  facts.trainers = 1;
  facts.params = {{.param = {"emb", DType::kFp32, {9, 2}}, .grads = {"emb.0"}, .rows = true},
                  {.param = {"w", DType::kFp32, {6, 4}}, .grads = {"w.0"}}};
  pserver::Admission admission(facts, "job");
  const protocol::Contract looks_up = protocol::ContractOf(facts, 0);
  const protocol::Contract pulls = protocol::ContractOf(facts, 0, {.whole = {"emb"}, .unused = {}});
  EXPECT_EQ(
      looks_up.ToText(),
      "param w : f32[6, 4]\ntable emb : f32[9, 2]\ngrad emb.0 : rows<f32[9, 2]>\ngrad w.0 : f32[6, 4]\n");
  for (const protocol::Contract& contract :
       {looks_up, looks_up.Startup(), looks_up.WithoutGrads(), pulls, pulls.Startup()}) {
    EXPECT_TRUE(CheckOf(admission, contract).ok());
  }
  Admit(admission, looks_up.Startup());
  EXPECT_EQ(admission.terms(0).ParamOfPull(0), 1);
  EXPECT_EQ(admission.terms(0).ParamOfPull(1), std::nullopt);
  EXPECT_EQ(admission.terms(0).ParamOfTable(1), 0);
  EXPECT_EQ(admission.terms(0).ParamOfTable(0), std::nullopt);
  EXPECT_EQ(admission.terms(0).VariableOf(0), 1u);
  EXPECT_EQ(admission.terms(0).PushedFor(0), 2u);
  Admit(admission, pulls);
  EXPECT_EQ(admission.terms(0).ParamOfPull(0), 0);
  EXPECT_EQ(admission.terms(0).ParamOfTable(0), std::nullopt);
}

// a and c are tables, and b is updated by rows too, by an op that needs all of it.
roles::PserverFacts Mixed() {
  roles::PserverFacts facts;
  facts.address = "a:1";
  facts.trainers = 1;
  facts.params = {{.param = {"a", DType::kFp32, {9, 2}}, .grads = {"a.0"}, .rows = true},
                  {.param = {"b", DType::kFp32, {6, 2}}, .grads = {"b.0"}, .rows = true},
                  {.param = {"c", DType::kFp32, {5, 2}}, .grads = {"c.0"}, .rows = true},
                  {.param = {"w", DType::kFp32, {4}}, .grads = {"w.0"}}};
  return facts;
}

TEST(Admission, ATrainerPullsSomeTablesWholeAndLooksUpRowsOfOthers) {
  const roles::PserverFacts facts = Mixed();
  pserver::Admission admission(facts, "job");
  const protocol::Contract mixed = protocol::ContractOf(facts, 0, {.whole = {"b"}, .unused = {}});
  EXPECT_TRUE(CheckOf(admission, mixed.Startup()).ok());
  Admit(admission, mixed.Startup());
  EXPECT_TRUE(CheckOf(admission, mixed).ok());
  Admit(admission, mixed);
  EXPECT_EQ(admission.terms(0).ParamOfPull(0), 1);
  EXPECT_EQ(admission.terms(0).ParamOfTable(2), 0);
  EXPECT_EQ(admission.terms(0).ParamOfTable(3), 2);
}

// A program that only computes may come before the one that trains, and need not use every table.
TEST(Admission, OnlyATrainerThatDoesNotTrainMayLeaveATableUnused) {
  const roles::PserverFacts facts = Mixed();
  pserver::Admission admission(facts, "job");
  const protocol::Contract some = protocol::ContractOf(facts, 0, {.whole = {"b"}, .unused = {"a"}});
  EXPECT_EQ(CheckOf(admission, some).id(), "E-plan-mismatch");
  EXPECT_TRUE(CheckOf(admission, some.WithoutGrads()).ok());
  Admit(admission, some.WithoutGrads());
  EXPECT_EQ(admission.terms(0).ParamOfTable(2), 2);
  const protocol::Contract all = protocol::ContractOf(facts, 0, {.whole = {"b"}, .unused = {}});
  EXPECT_TRUE(CheckOf(admission, all).ok());
  Admit(admission, all);
  EXPECT_EQ(admission.terms(0).ParamOfTable(2), 0);
  protocol::Contract without = all;
  without.params.pop_back();  // w has a dense gradient: every trainer pulls it
  EXPECT_EQ(CheckOf(admission, without).id(), "E-plan-mismatch");
}

}  // namespace
}  // namespace penstock::test
