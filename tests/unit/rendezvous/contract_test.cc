// The errors that ranks get if their programs do not fit together.
#include "executor/collective/rendezvous/contract.h"

#include <gtest/gtest.h>

#include "framework/text/parser.h"
#include "tests/unit/rendezvous/ranks.h"

namespace penstock::rendezvous {
namespace {

// A program that contains the ops of `exchange`.
Program ProgramOf(const std::string& exchange, const std::string& rate = "0.1") {
  const std::string text = StrCat(
      "program\n"
      "block 0 {\n"
      "  param w : f32[784, 200]\n"
      "  param b : f32[200]\n"
      "  var w@GRAD : f32[784, 200]\n"
      "  var b@GRAD : f32[200]\n"
      "  (Out=w@GRAD) = scale(X=w) {scale=",
      rate,
      "} at \"train.py:31 in model\"\n"
      "  (Out=b@GRAD) = scale(X=b) {scale=1.0} at \"train.py:32 in model\"\n",
      exchange, "}\n");
  return ParseText(text, "main.ir").value();
}

const std::string kSumW = "  (Out=w@GRAD) = c_allreduce_sum(X=w@GRAD) {ring_id=0}\n";
const std::string kSumB = "  (Out=b@GRAD) = c_allreduce_sum(X=b@GRAD) {ring_id=0}\n";

CollectiveContract Contract(const std::string& exchange, const std::string& rate = "0.1") {
  return ContractOf(ProgramOf(exchange, rate), 2);
}

// The differences between rank 0 and rank 1, each as the other reports it.
std::string Difference(const CollectiveContract& rank0, const CollectiveContract& rank1) {
  const Result<CollectiveContract> read = ReadContract(WriteContract(rank1));
  if (!read.ok()) return read.status().ToString();
  EXPECT_EQ(DigestOf(*read), DigestOf(rank1));
  const std::optional<std::string> difference = ContractDifference(rank0, 1, *read);
  EXPECT_EQ(difference.has_value(), DigestOf(rank0) != DigestOf(rank1));
  return difference.value_or("none");
}

TEST(Contract, DoesNotDependOnSourceLocations) {
  EXPECT_EQ(Difference(Contract(kSumW + kSumB), Contract(kSumW + kSumB)), "none");
  Program moved = ProgramOf(kSumW);
  Block& main = moved.MutableBlock(0);
  for (const OpEntry& entry : std::vector<OpEntry>(main.ops())) {
    Op op = *entry.op;
    main.Replace(entry.id, std::move(op.SetLocation("other.py:1 in main").Set("trainer_id", 7)));
  }
  EXPECT_EQ(Difference(Contract(kSumW), ContractOf(moved, 2)), "none");
}

// In jobs that also have pservers, the names of sent variables contain the trainer.
Program SendingProgram(int trainer, std::string_view gradient) {
  const std::string sent = StrCat("t@GRAD.trainer_", trainer);
  const std::string text =
      StrCat("program\nblock 0 {\n  param t : f32[4]\n  var g : f32[4]\n  (Out=", sent,
             " : f32[4]) = scale(X=t) {op_role_var=[\"t\", \"", sent, "\"]}\n  g = scale(X=", gradient,
             ")\n  c : control = send(X=", sent, ") {epmap=[\"a:1\"], trainer_id=", trainer, "}\n}\n");
  return ParseText(text, "main.ir").value();
}

TEST(Contract, SentVariablesMayHaveTrainerSuffixes) {
  const auto of = [](int trainer, std::string_view gradient) {
    return ContractOf(SendingProgram(trainer, gradient), 2);
  };
  EXPECT_EQ(Difference(of(0, "t"), of(1, "t")), "none");
  EXPECT_EQ(Difference(of(0, "t@GRAD.trainer_0"), of(1, "t@GRAD.trainer_1")), "none");
  EXPECT_EQ(Difference(of(0, "t"), of(1, "t@GRAD.trainer_1")),
            "rank 1's op 1, scale, has other variables or attributes than rank 0's");
}

TEST(Contract, ADifferentOrderIsReportedWithBothLines) {
  EXPECT_EQ(Difference(Contract(kSumW + kSumB), Contract(kSumB + kSumW)),
            "rank 1's collective 0 is c_allreduce_sum of b@GRAD f32[200] (train.py:32 in model), rank 0's is "
            "c_allreduce_sum of w@GRAD f32[784, 200] (train.py:31 in model)");
}

TEST(Contract, ADifferentReductionOrRootIsReported) {
  EXPECT_EQ(
      Difference(Contract(kSumW), Contract("  (Out=w@GRAD) = c_allreduce_max(X=w@GRAD) {ring_id=0}\n")),
      "rank 1's collective 0 is c_allreduce_max of w@GRAD f32[784, 200] (train.py:31 in model), rank 0's is "
      "c_allreduce_sum of w@GRAD f32[784, 200] (train.py:31 in model)");
  EXPECT_EQ(
      Difference(Contract("  (Out=w) = c_broadcast(X=w) {root=0}\n"),
                 Contract("  (Out=w) = c_broadcast(X=w) {root=1} at \"init.py:3 in start\"\n")),
      "rank 1's collective 0 is c_broadcast of w f32[784, 200] from rank 1 (init.py:3 in start), rank 0's is "
      "c_broadcast of w f32[784, 200] from rank 0");
}

TEST(Contract, AMissingCollectiveIsReported) {
  EXPECT_EQ(
      Difference(Contract(kSumW + kSumB), Contract(kSumW)),
      "rank 1 has 1 collectives, rank 0 has 2; the first that rank 1 lacks is c_allreduce_sum of b@GRAD "
      "f32[200] (train.py:32 in model)");
  EXPECT_EQ(
      Difference(Contract(""), Contract(kSumW)),
      "rank 1 has 1 collectives, rank 0 has 0; the first that rank 0 lacks is c_allreduce_sum of w@GRAD "
      "f32[784, 200] (train.py:31 in model)");
}

TEST(Contract, AMismatchNamesItsRing) {
  const std::string on_ring_1 = "  (Out=b@GRAD) = c_allreduce_sum(X=b@GRAD) {ring_id=1}\n";
  EXPECT_EQ(
      Difference(Contract(kSumW + on_ring_1), Contract(kSumW)),
      "rank 1 has 0 collectives of ring 1, rank 0 has 1; the first that rank 1 lacks is c_allreduce_sum of "
      "b@GRAD f32[200] (train.py:32 in model)");
}

TEST(Contract, DifferentWorldsJobsAndOpsAreReported) {
  EXPECT_EQ(Difference(Contract(kSumW), ContractOf(ProgramOf(kSumW), 3)),
            "rank 1 is one of 3 ranks, rank 0 one of 2");
  EXPECT_EQ(Difference(Contract(kSumW), Contract(kSumW, "0.2")),
            "rank 1's op 0, scale, has other variables or attributes than rank 0's");
  EXPECT_EQ(Difference(Contract("  (Out=w) = relu(X=w)\n" + kSumW), Contract(kSumW)),
            "rank 1's op 2 is c_allreduce_sum, rank 0's is relu");
  EXPECT_EQ(Difference(Contract(kSumW + "  (Out=w) = relu(X=w)\n"), Contract(kSumW)),
            "rank 1's op 3 is missing, rank 0's is relu");
  Program adam = ProgramOf(kSumW), sgd = ProgramOf(kSumW);
  adam.mutable_meta().job_facts = "updates w with adam";
  sgd.mutable_meta().job_facts = "updates w with sgd";
  EXPECT_EQ(Difference(ContractOf(adam, 2), ContractOf(sgd, 2)),
            "rank 1's program updates w with sgd, rank 0's updates w with adam");
}

// Ranks may draw different initial values and masks, because rank 0's parameters are broadcast.
TEST(Contract, SeedsAndInitialValuesMayDiffer) {
  Program one = ProgramOf(kSumW), two = ProgramOf(kSumW);
  one.mutable_meta().job_facts =
      "works in mode nccl2\nhas random seed 1\nstarts w with uniform_random {seed=1}\nupdates w with sgd\n";
  two.mutable_meta().job_facts =
      "works in mode nccl2\nhas random seed 2\nstarts w with uniform_random {seed=2}\nupdates w with sgd\n";
  EXPECT_EQ(Difference(ContractOf(one, 2), ContractOf(two, 2)), "none");
}

TEST(Contract, AnInvalidContractIsRefused) {
  const std::string bytes = WriteContract(Contract(kSumW + kSumB));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(ReadContract(std::string_view(bytes).substr(0, size)).ok()) << size;
  for (const char* bad : {"9999999999:a", "1:2", "1:20:10:9999999991:0", "1:20:10:1:x", ":"})
    EXPECT_EQ(ReadContract(bad).status().id(), "E-rendezvous-message") << bad;
}

TEST(Contract, AHugeContractFitsTheStore) {
  CollectiveContract contract{.ranks = 2, .rings = {}, .job_facts = {}, .ops = {}};
  contract.ops.assign(100'000, std::string(40, 'x'));
  contract.rings[0].assign(1000, {.op = "c_allreduce_sum"});
  const std::string bytes = WriteContract(contract);
  EXPECT_LE(bytes.size(), kValueBytesMax);
  EXPECT_EQ(ReadContract(bytes)->rings[0].size(), 1000u);
}

TEST(AgreeOnContract, AllRanksReportTheSameLine) {
  Job job(3);
  const std::vector<CollectiveContract> contracts = {ContractOf(ProgramOf(kSumW + kSumB), 3),
                                                     ContractOf(ProgramOf(kSumW + kSumB), 3),
                                                     ContractOf(ProgramOf(kSumB + kSumW), 3)};
  std::vector<std::future<Status>> ends;
  for (int rank = 0; rank < 3; ++rank) {
    ends.push_back(job.Start(rank, [&contracts](Store& store) -> Status {
      PENSTOCK_RETURN_IF_ERROR(AgreeOnContract(store, "startup", contracts[0]));
      const Status agreed = AgreeOnContract(store, "main", contracts[static_cast<std::size_t>(store.rank())]);
      PENSTOCK_RETURN_IF_ERROR(store.Barrier("end"));
      return agreed;
    }));
  }
  for (std::future<Status>& end : ends) {
    EXPECT_EQ(
        end.get().ToString(),
        "rank 2's collective 0 is c_allreduce_sum of b@GRAD f32[200] (train.py:32 in model), rank 0's is "
        "c_allreduce_sum of w@GRAD f32[784, 200] (train.py:31 in model)   [E-rendezvous-contract]");
  }
}

}  // namespace
}  // namespace penstock::rendezvous
