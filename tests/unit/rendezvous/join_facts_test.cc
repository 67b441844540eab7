// Who the ranks of a job are, from programs as text and from environments as maps.
#include "executor/collective/rendezvous/join_facts.h"

#include <gtest/gtest.h>

#include <map>

#include "framework/text/parser.h"

namespace penstock::rendezvous {
namespace {

using Texts = std::vector<std::string>;

Result<std::optional<JoinFacts>> FactsOf(const std::string& ops) {
  return FactsOfProgram(ParseText(StrCat("program\nblock 0 {\n", ops, "\n}\n"), "startup.ir").value());
}
Result<std::optional<JoinFacts>> FactsIn(const std::map<std::string, std::string>& variables) {
  return FactsOfEnvironment([&](const char* name) {
    const auto at = variables.find(name);
    return at == variables.end() ? std::string() : at->second;
  });
}
// "ring/0 [0, 1] as 1; ring/0/outer ..."
std::string Show(const Membership& job) {
  Texts rings;
  for (const Ring& ring : job.rings)
    rings.push_back(StrCat(ring.Key(), " [", Join(ring.members, ", "), "] as ", ring.rank));
  return Join(rings, "; ");
}
std::string Rings(const JoinFacts& facts) {
  const Result<Membership> job = MakeMembership(facts);
  return job.ok() ? Show(*job) : job.status().ToString();
}

TEST(JoinFacts, GenNcclIdNamesAllRanksAndRings) {
  const auto facts =
      FactsOf("(NCCLID=NCCLID) = gen_nccl_id() {trainers=[\"a:1\", \"b:1\"], trainer_id=1, nccl_comm_num=2}");
  ASSERT_TRUE(facts.ok()) << facts.status().ToString();
  EXPECT_EQ((*facts)->addresses, (Texts{"a:1", "b:1"}));
  EXPECT_EQ(Rings(**facts), "ring/0 [0, 1] as 1; ring/1 [0, 1] as 1");
}

TEST(JoinFacts, EachRingMayBeMadeByItsOwnOps) {
  const std::string ids =
      "nccl_id_0 = c_gen_nccl_id() {rank=1, endpoint=\"b:1\", other_endpoints=[\"a:1\", \"c:1\"]}\n"
      "nccl_id_1 = c_gen_nccl_id() {rank=1, endpoint=\"b:1\", other_endpoints=[\"a:1\", \"c:1\"]}\n";
  const auto facts = FactsOf(ids +
                             "c_comm_init(X=nccl_id_0) {nranks=3, rank=1}\n"
                             "c_comm_init(X=nccl_id_1) {nranks=3, rank=1, ring_id=1}");
  ASSERT_TRUE(facts.ok()) << facts.status().ToString();
  EXPECT_EQ((*facts)->addresses, (Texts{"a:1", "b:1", "c:1"}));
  EXPECT_EQ(Rings(**facts), "ring/0 [0, 1, 2] as 1; ring/1 [0, 1, 2] as 1");
  EXPECT_EQ(FactsOf(ids + "c_comm_init(X=nccl_id_0) {nranks=2, rank=1}").status().message(),
            "c_comm_init is for rank 1 of 2, its id for rank 1 of 3");
  EXPECT_EQ(FactsOf(ids + "c_comm_init(X=nccl_id_7) {nranks=3, rank=1}").status().message(),
            "c_comm_init: no c_gen_nccl_id before it makes the id \"nccl_id_7\"");
  EXPECT_EQ(FactsOf(ids + "c_comm_init(X=nccl_id_0) {nranks=3, rank=1}\n"
                          "c_comm_init(X=nccl_id_1) {nranks=3, rank=1}")
                .status()
                .message(),
            "c_comm_init makes ring 0 twice");
  EXPECT_EQ(FactsOf(ids + "nccl_id_2 = c_gen_nccl_id() {rank=0, endpoint=\"b:1\", other_endpoints=[\"a:1\"]}")
                .status()
                .message(),
            "c_gen_nccl_id joins rank 0 of b:1,a:1, and another ring rank 1 of a:1,b:1,c:1");
}

TEST(JoinFacts, RanksMayBeDevicesOfOneProcess) {
  const auto facts = FactsOf("c_comm_init_all() {devices=[]:ints, ring_id=0}");
  ASSERT_TRUE(facts.ok()) << facts.status().ToString();
  EXPECT_TRUE((*facts)->of_devices);
  EXPECT_EQ(Rings(**facts), "ring/0 [0] as 0");
}

TEST(JoinFacts, AProgramThatJoinsNobodySaysNothing) {
  EXPECT_FALSE(FactsOf("w = fill_constant() {value=1.0}")->has_value());
  EXPECT_FALSE(FactsIn({{"PADDLE_TRAINERS_NUM", "2"}})->has_value());
}

TEST(JoinFacts, BadRanksOfAProgramAreNamed) {
  const auto message = [](const std::string& trainers, int rank) {
    return FactsOf(
               StrCat("(NCCLID=NCCLID) = gen_nccl_id() {trainers=[", trainers, "], trainer_id=", rank, "}"))
        .status()
        .ToString();
  };
  EXPECT_EQ(message("\"a:1\", \"b:1\"", 2),
            "gen_nccl_id: rank 2 is out of range; there are 2 ranks   [E-rendezvous-facts]");
  EXPECT_EQ(message("\"a:1\", \"b:1\", \"a:1\"", 0),
            "gen_nccl_id: address \"a:1\" is of ranks 0 and 2   [E-rendezvous-facts]");
  EXPECT_EQ(message("\"a:1\", \"b\"", 0),
            "gen_nccl_id: address \"b\" of rank 1 is not host:port   [E-rendezvous-facts]");
  EXPECT_EQ(
      FactsOf("x = c_gen_nccl_id() {rank=2, endpoint=\"b:1\", other_endpoints=[\"a:1\"]}").status().message(),
      "c_gen_nccl_id: rank 2 is out of range; there are 2 ranks");
}

TEST(JoinFacts, TheLaunchersEnvironmentNamesTheRanks) {
  const auto facts = FactsIn({{"PADDLE_TRAINER_ENDPOINTS", "a:1, b:1"},
                              {"PADDLE_CURRENT_ENDPOINT", "b:1"},
                              {"PADDLE_TRAINER_ID", "1"},
                              {"PADDLE_TRAINERS_NUM", "2"}});
  ASSERT_TRUE(facts.ok()) << facts.status().ToString();
  EXPECT_EQ((*facts)->addresses, (Texts{"a:1", "b:1"}));
  EXPECT_EQ((*facts)->rank, 1);
  const auto by_address =
      FactsIn({{"PADDLE_TRAINER_ENDPOINTS", "a:1,b:1"}, {"PADDLE_CURRENT_ENDPOINT", "b:1"}});
  EXPECT_EQ((*by_address)->rank, 1);
}

TEST(JoinFacts, ContradictionsOfTheEnvironmentAreNamed) {
  const auto message = [](std::map<std::string, std::string> variables) {
    variables["PADDLE_TRAINER_ENDPOINTS"] = "a:1,b:1";
    return FactsIn(variables).status().message();
  };
  EXPECT_EQ(message({}), "neither PADDLE_TRAINER_ID nor PADDLE_CURRENT_ENDPOINT is set");
  EXPECT_EQ(message({{"PADDLE_CURRENT_ENDPOINT", "c:1"}}),
            "PADDLE_CURRENT_ENDPOINT \"c:1\" is not in PADDLE_TRAINER_ENDPOINTS \"a:1,b:1\"");
  EXPECT_EQ(message({{"PADDLE_CURRENT_ENDPOINT", "b:1"}, {"PADDLE_TRAINER_ID", "0"}}),
            "PADDLE_TRAINER_ID is 0, but PADDLE_CURRENT_ENDPOINT \"b:1\" is the address of rank 1");
  EXPECT_EQ(message({{"PADDLE_TRAINER_ID", "one"}}), "PADDLE_TRAINER_ID is \"one\", which is no number");
  EXPECT_EQ(message({{"PADDLE_TRAINER_ID", "2"}}),
            "PADDLE_TRAINER_ENDPOINTS: rank 2 is out of range; there are 2 ranks");
  EXPECT_EQ(message({{"PADDLE_TRAINER_ID", "0"}, {"PADDLE_TRAINERS_NUM", "3"}}),
            "PADDLE_TRAINERS_NUM is 3, but PADDLE_TRAINER_ENDPOINTS names 2 ranks");
}

TEST(Rings, OfAHierarchyAreFlatInnerAndForFirstRanksOuter) {
  JoinFacts facts{
      .addresses = {"a:1", "a:2", "b:1", "b:2"}, .rank = 2, .hierarchical = true, .group_ranks = 2};
  EXPECT_EQ(Rings(facts), "ring/0 [0, 1, 2, 3] as 2; ring/0/inner/1 [2, 3] as 0; ring/0/outer [0, 2] as 1");
  facts.rank = 3;
  EXPECT_EQ(Rings(facts), "ring/0 [0, 1, 2, 3] as 3; ring/0/inner/1 [2, 3] as 1");
}

TEST(Rings, WithoutASizeGroupsAreHosts) {
  JoinFacts facts{.addresses = {"a:1", "b:1", "a:2"}, .rank = 2, .hierarchical = true};
  EXPECT_EQ(Rings(facts), "ring/0 [0, 1, 2] as 2; ring/0/inner/0 [0, 2] as 1");
  facts.rank = 1;
  EXPECT_EQ(Rings(facts), "ring/0 [0, 1, 2] as 1; ring/0/inner/1 [1] as 0; ring/0/outer [0, 1] as 1");
}

TEST(Rings, GroupsMustUseUpTheRanks) {
  JoinFacts facts{.addresses = {"a:1", "a:2", "b:1"}, .hierarchical = true, .group_ranks = 2};
  EXPECT_EQ(Rings(facts),
            "3 ranks do not make several groups of 2 (hierarchical_allreduce_inter_nranks)"
            "   [E-rendezvous-groups]");
  facts.group_ranks = 3;
  EXPECT_EQ(Rings(facts),
            "3 ranks do not make several groups of 3 (hierarchical_allreduce_inter_nranks)"
            "   [E-rendezvous-groups]");
}

}  // namespace
}  // namespace penstock::rendezvous
