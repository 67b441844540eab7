#include "framework/text/job_facts.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

std::string Told(std::string_view here, std::string_view there) {
  const auto difference = FirstJobDifference(here, there);
  return difference ? difference->here + " | " + difference->there : "";
}

TEST(JobFacts, EqualJobsAndProgramsWithoutFactsDoNotDiffer) {
  EXPECT_EQ(Told("has seed 1\n", "has seed 1\n"), "");
  EXPECT_EQ(Told("", "has seed 1\n"), "");
  EXPECT_EQ(Told("has seed 1\n", ""), "");
}

TEST(JobFacts, ReportsTheFirstDifferenceOfBothSides) {
  EXPECT_EQ(Told("has seed 1\nupdates b with sgd\nupdates w with adam\ntrains by 3 ops\n",
                 "has seed 1\nupdates b with sgd\nupdates w with sgd\ntrains by 4 ops\n"),
            "updates w with adam | updates w with sgd");
}

TEST(JobFacts, LinesAreComparedWithinTheirPart) {
  EXPECT_EQ(
      Told("updates b, w with sgd\nhas seed 1\n", "updates b with sgd\nupdates w with adam\nhas seed 2\n"),
      "updates b, w with sgd | updates b with sgd");
  EXPECT_EQ(Told("updates b with sgd\nhas seed 1\n", "updates b with sgd\nupdates w with sgd\nhas seed 2\n"),
            "updates nothing more | updates w with sgd");
  EXPECT_EQ(Told("has seed 1\n", "has seed 1\nschedules it\n"), "schedules nothing | schedules it");
}

// A peer's text is reported in one line of bounded length.
TEST(JobFacts, ReportsAPeersTextInOneShortLine) {
  const std::string told = Told("has seed 1\n", "has \x1b[2J" + std::string(100000, 'x') + "\n");
  EXPECT_LT(told.size(), 500u);
  EXPECT_EQ(told.find('\x1b'), std::string::npos);
}

TEST(JobFacts, ADifferentOrderOfPartsIsADifference) {
  EXPECT_NE(Told("has seed 1\nworks\n", "works\nhas seed 1\n"), "");
}

}  // namespace
}  // namespace penstock
