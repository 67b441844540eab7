// Properties of the output of `penstock plan`: every line of arithmetic is correct, and the dot output is a
// valid graph.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <set>

#include "tests/property/cost/role_jobs.h"
#include "tools/plan/numbers.h"
#include "tools/plan/rate.h"
#include "tools/plan/report.h"

namespace penstock {
namespace {

// "2 x 3.5 + max(0, 1,200 - 4) / 8": numbers with commas between digits, + - x /, max of any number.
class Formula {
 public:
  explicit Formula(std::string_view text) : rest_(text) {}
  double Value() {
    const double value = Sum();
    EXPECT_EQ(rest_, "");
    return value;
  }

 private:
  bool Take(std::string_view token) {
    while (!rest_.empty() && rest_[0] == ' ') rest_.remove_prefix(1);
    if (!StartsWith(rest_, token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  double Sum() {
    double value = Product();
    for (;;) {
      if (Take("+ ")) {
        value += Product();
      } else if (Take("- ")) {
        value -= Product();
      } else {
        return value;
      }
    }
  }
  double Product() {
    double value = Factor();
    for (;;) {
      if (Take("x ")) {
        value *= Factor();
      } else if (Take("/ ")) {
        value /= Factor();
      } else {
        return value;
      }
    }
  }
  double Factor() {
    if (Take("max(")) {
      double value = Sum();
      while (Take(", ")) value = std::max(value, Sum());
      EXPECT_TRUE(Take(")"));
      return value;
    }
    Take("");
    std::string digits;
    while (!rest_.empty() && (std::isdigit(static_cast<unsigned char>(rest_[0])) || rest_[0] == '.' ||
                              (rest_[0] == ',' && rest_.size() > 1 && rest_[1] != ' '))) {
      if (rest_[0] != ',') digits += rest_[0];
      rest_.remove_prefix(1);
    }
    double value = NAN;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  }

  std::string_view rest_;
};

tools::JobReport ReportOf(const test::CostedJob& source, const tools::JobQuestion& question) {
  Result<cost::Job> job = source.Read();
  PENSTOCK_CHECK(job.ok(), StrCat(source.name, ": ", job.status().ToString()));
  Result<tools::JobReport> report = tools::MakeJobReport(*std::move(job), question);
  PENSTOCK_CHECK(report.ok(), StrCat(source.name, ": ", report.status().ToString()));
  return *std::move(report);
}

TEST(PrintedArithmetic, IsCorrectInEachLine) {
  int lines = 0;
  for (const test::CostedJob& source : test::CorpusJobs()) {
    const tools::JobReport report = ReportOf(
        source, {.cost = {.rows_per_step = 1000},
                 .network = cost::Network{.bits_per_second = 2.5e9, .step_ms = 12.5, .message_us = 30}});
    for (const std::string& line : Split(tools::ReportArithmetic(report), '\n')) {
      const std::size_t first = line.find(" = "), last = line.rfind(" = ");
      if (first == std::string::npos) continue;
      ASSERT_LT(first, last) << line;
      const double formula = Formula(std::string_view(line).substr(first + 3, last - first - 3)).Value();
      const double result = Formula(std::string_view(line).substr(last + 3)).Value();
      EXPECT_NEAR(formula, result, 0.006) << source.name << ": " << line;
      ++lines;
    }
  }
  EXPECT_GE(lines, 200);
}

// Parses the used subset of Graphviz's language: digraph, subgraphs, attributes, nodes, edges, plain and
// quoted names.
class DotReader {
 public:
  explicit DotReader(std::string_view text) : rest_(text) {}

  bool Read() {
    const bool read = Word() == "digraph" && !Word().empty() && Take("{") && Statements() && Take("}");
    Space();
    return read && rest_.empty() && std::includes(nodes.begin(), nodes.end(), named.begin(), named.end());
  }
  std::set<std::string> nodes, named;  // declared; named by edges
  int clusters = 0, edges = 0;
  std::vector<std::string> labels;

 private:
  void Space() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_[0]))) rest_.remove_prefix(1);
  }
  bool Take(std::string_view token) {
    Space();
    if (!StartsWith(rest_, token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  std::string Word() {
    Space();
    if (Take("\"")) return Quoted();
    std::string out;
    while (!rest_.empty() && (std::isalnum(static_cast<unsigned char>(rest_[0])) || rest_[0] == '_')) {
      out += rest_[0];
      rest_.remove_prefix(1);
    }
    return out;
  }
  std::string Quoted() {
    std::string out;
    while (!rest_.empty() && rest_[0] != '"') {
      if (rest_[0] == '\\' && rest_.size() > 1) {
        out += rest_[0];
        rest_.remove_prefix(1);
      }
      EXPECT_GE(static_cast<unsigned char>(rest_[0]), ' ');
      out += rest_[0];
      rest_.remove_prefix(1);
    }
    EXPECT_TRUE(Take("\""));
    return out;
  }
  bool Statements() {
    for (;;) {
      Space();
      if (rest_.empty() || rest_[0] == '}') return true;
      if (!Statement()) return false;
    }
  }
  bool Attributes() {
    if (!Take("[")) return true;
    while (!Take("]")) {
      const std::string key = Word();
      if (key.empty() || !Take("=")) return false;
      const std::string value = Word();
      if (key == "label") labels.push_back(value);
      Take(",");
    }
    return true;
  }
  bool Statement() {
    const std::string word = Word();
    if (word.empty()) return false;
    if (word == "subgraph") {
      ++clusters;
      return StartsWith(Word(), "cluster_") && Take("{") && Statements() && Take("}");
    }
    if (Take("=")) return !Word().empty() && Take(";");
    if (Take("->")) {
      named.insert(word);
      named.insert(Word());
      ++edges;
      return Attributes() && Take(";");
    }
    if (word != "node") nodes.insert(word);
    return Attributes() && Take(";");
  }

  std::string_view rest_;
};

TEST(PrintedPicture, IsValidGraphvizWithEveryRole) {
  for (const test::CostedJob& source : test::CorpusJobs()) {
    const tools::JobReport report = ReportOf(source, {});
    const std::string text = tools::ReportDot(report);
    DotReader dot(text);
    EXPECT_TRUE(dot.Read()) << source.name << "\n" << text;
    EXPECT_EQ(dot.clusters, report.job.pservers.empty() ? 1 : 2) << source.name;
    EXPECT_EQ(dot.nodes.size(), static_cast<std::size_t>(report.job.trainers) + report.job.pservers.size());
  }
}

TEST(PrintedPicture, MergesManyTrainersIntoOneNode) {
  cost::Job job;
  job.trainers = 1000;
  job.pservers = {"a \"quoted\\address\"\n"};
  job.pserver_memory.emplace_back();
  job.present.emplace_back();
  job.present[0].messages.push_back({.pserver = 0, .bytes = 12});
  const Result<tools::JobReport> report = tools::MakeJobReport(job, {});
  ASSERT_TRUE(report.ok());
  const std::string text = tools::ReportDot(*report);
  DotReader dot(text);
  EXPECT_TRUE(dot.Read()) << text;
  EXPECT_EQ(dot.nodes.size(), 2U);
  EXPECT_EQ(dot.edges, 1);
  EXPECT_NE(text.find("each of 1,000 trainers"), std::string::npos);
}

TEST(PrintedNumbers, HaveSeparatorsAndUnits) {
  EXPECT_EQ(tools::Grouped(0), "0");
  EXPECT_EQ(tools::Grouped(999), "999");
  EXPECT_EQ(tools::Grouped(1234567), "1,234,567");
  EXPECT_EQ(tools::Grouped(-123456), "-123,456");
  EXPECT_EQ(tools::Plain(1e10), "10,000,000,000");
  EXPECT_EQ(tools::Plain(0.25), "0.25");
  EXPECT_EQ(tools::Size(1), "1 byte");
  EXPECT_EQ(tools::Size(999), "999 bytes");
  EXPECT_EQ(tools::Size(999'999), "1.0 MB");
  EXPECT_EQ(tools::Size(6'400'000'000'000), "6.4 TB");
}

TEST(Rates, AcceptCommonUnits) {
  for (const char* text : {"10Gbit", "10 Gbit/s", "10000Mbit", "1.25GB", "1250MB/s", "10000000000bit"}) {
    const Result<double> rate = tools::ParseRate(text);
    ASSERT_TRUE(rate.ok()) << text;
    EXPECT_DOUBLE_EQ(*rate, 1e10) << text;
  }
  for (const char* text :
       {"", "10", "Gbit", "-1Gbit", "0Gbit", "10Xbit", "nanGbit", "infGbit", "1e400bit", "10Gbit x"}) {
    EXPECT_EQ(tools::ParseRate(text).status().id(), "E-net") << text;
  }
}

}  // namespace
}  // namespace penstock
