// The ranks of a job, as derived from environment variables, given as maps.
#include "executor/collective/rendezvous/join_facts.h"

#include <gtest/gtest.h>

#include <map>

namespace penstock::rendezvous {
namespace {

using Texts = std::vector<std::string>;

Result<std::optional<JoinFacts>> FactsIn(const std::map<std::string, std::string>& variables) {
  return FactsOfEnvironment([&](const char* name) {
    const auto at = variables.find(name);
    return at == variables.end() ? std::string() : at->second;
  });
}
TEST(JoinFacts, AnEnvironmentWithoutAddressesIsEmpty) {
  EXPECT_FALSE(FactsIn({{"PADDLE_TRAINERS_NUM", "2"}})->has_value());
}

TEST(JoinFacts, InvalidRanksAreReported) {
  EXPECT_TRUE(CheckFacts("a job", {.addresses = {"a:1", "b:1"}, .rank = 1}).ok());
  const auto message = [](const Texts& addresses, int rank) {
    return CheckFacts("a job", {.addresses = addresses, .rank = rank}).ToString();
  };
  EXPECT_EQ(message({}, 0), "a job names no ranks   [E-rendezvous-facts]");
  EXPECT_EQ(message({"a:1", "b:1"}, 2),
            "a job: rank 2 is out of range; there are 2 ranks   [E-rendezvous-facts]");
  EXPECT_EQ(message({"a:1", "b:1", "a:1"}, 0),
            "a job: address \"a:1\" is of ranks 0 and 2   [E-rendezvous-facts]");
  EXPECT_EQ(message({"a:1", "b"}, 0),
            "a job: address \"b\" of rank 1 is not host:port   [E-rendezvous-facts]");
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

TEST(JoinFacts, ContradictionsOfTheEnvironmentAreReported) {
  const auto message = [](std::map<std::string, std::string> variables) {
    variables["PADDLE_TRAINER_ENDPOINTS"] = "a:1,b:1";
    return FactsIn(variables).status().message();
  };
  EXPECT_EQ(message({}), "neither PADDLE_TRAINER_ID nor PADDLE_CURRENT_ENDPOINT is set");
  EXPECT_EQ(message({{"PADDLE_CURRENT_ENDPOINT", "c:1"}}),
            "PADDLE_CURRENT_ENDPOINT \"c:1\" is not in PADDLE_TRAINER_ENDPOINTS \"a:1,b:1\"");
  EXPECT_EQ(message({{"PADDLE_CURRENT_ENDPOINT", "b:1"}, {"PADDLE_TRAINER_ID", "0"}}),
            "PADDLE_TRAINER_ID is 0, but PADDLE_CURRENT_ENDPOINT \"b:1\" is the address of rank 1");
  EXPECT_EQ(message({{"PADDLE_TRAINER_ID", "one"}}),
            "the environment variable PADDLE_TRAINER_ID is \"one\"; it takes an integer from 0 to 1000000");
  EXPECT_EQ(message({{"PADDLE_TRAINER_ID", "0"}, {"PADDLE_TRAINERS_NUM", "0"}}),
            "the environment variable PADDLE_TRAINERS_NUM is \"0\"; it takes an integer from 1 to 1000000");
  EXPECT_EQ(message({{"PADDLE_TRAINER_ID", "2"}}),
            "PADDLE_TRAINER_ENDPOINTS: rank 2 is out of range; there are 2 ranks");
  EXPECT_EQ(message({{"PADDLE_TRAINER_ID", "0"}, {"PADDLE_TRAINERS_NUM", "3"}}),
            "PADDLE_TRAINERS_NUM is 3, but PADDLE_TRAINER_ENDPOINTS names 2 ranks");
}

TEST(Groups, AreOfConsecutiveRanks) {
  const auto groups = GroupRanks(4, 2);
  ASSERT_TRUE(groups.ok()) << groups.status().ToString();
  EXPECT_EQ(*groups, (std::vector<std::vector<int>>{{0, 1}, {2, 3}}));
}

TEST(Groups, MustCoverAllRanks) {
  for (const int size : {2, 3, 0}) {
    EXPECT_EQ(GroupRanks(3, size).status().ToString(),
              StrCat("3 ranks do not make several groups of ", size,
                     " (hierarchical_allreduce_inter_nranks)   [E-rendezvous-groups]"));
  }
}

}  // namespace
}  // namespace penstock::rendezvous
