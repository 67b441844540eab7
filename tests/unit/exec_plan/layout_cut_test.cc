#include "executor/plan/layout_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

namespace penstock::exec {
namespace {

TEST(LayoutCut, WeighsOpsAgainstCopies) {
  for (const double copy : {9.0, 25.0}) {
    LayoutCut cut;
    const int conv = cut.AddOp(120, 80);
    cut.AddValue(LayoutCut::kPlain, {conv}, copy);
    cut.AddValue(conv, {LayoutCut::kPlain}, copy);
    EXPECT_EQ(cut.Choose(), std::vector<bool>{copy == 9.0}) << copy;
  }
}

TEST(LayoutCut, ReadersShareOneCopy) {
  LayoutCut cut;
  const int first = cut.AddOp(10, 4), second = cut.AddOp(10, 4);
  cut.AddValue(LayoutCut::kPlain, {first, second}, 11);
  EXPECT_EQ(cut.Choose(), (std::vector<bool>{true, true}));
}

TEST(LayoutCut, PrefersPlainOpsOnTies) {
  LayoutCut cut;
  cut.AddOp(5, 5);
  const int conv = cut.AddOp(8, 4);
  cut.AddValue(LayoutCut::kPlain, {conv}, 4);
  EXPECT_EQ(cut.Choose(), (std::vector<bool>{false, false}));
}

// A random graph of ops in order, each with one result.
struct Random {
  struct Result {
    int writer;
    std::vector<int> readers;
    double copy;
  };
  std::vector<double> plain, last;
  std::vector<Result> results;

  explicit Random(std::mt19937& bits) {
    const auto below = [&](int n) { return static_cast<int>(bits() % static_cast<unsigned>(n)); };
    const int ops = 1 + below(9);
    for (int i = 0; i < ops; ++i) {
      plain.push_back(below(30));
      last.push_back(below(30));
    }
    for (int writer = LayoutCut::kPlain; writer < ops; ++writer) {
      Result result{writer, {}, static_cast<double>(below(20))};
      for (int reader = writer + 1; reader < ops; ++reader) {
        if (below(3) == 0) result.readers.push_back(reader);
      }
      if (below(3) == 0) result.readers.push_back(LayoutCut::kPlain);
      results.push_back(result);
    }
  }

  double Cost(const std::vector<bool>& chosen) const {
    const auto is_last = [&](int op) {
      return op != LayoutCut::kPlain && chosen[static_cast<std::size_t>(op)];
    };
    double sum = 0;
    for (std::size_t i = 0; i < plain.size(); ++i) sum += chosen[i] ? last[i] : plain[i];
    for (const Result& r : results) {
      const bool written = is_last(r.writer);
      const auto other = [&](int reader) { return is_last(reader) != written; };
      if (std::ranges::any_of(r.readers, other)) sum += r.copy;
    }
    return sum;
  }
};

TEST(LayoutCut, FindsTheOptimum) {
  std::mt19937 bits(1);
  for (int round = 0; round < 400; ++round) {
    const Random graph(bits);
    LayoutCut cut;
    for (std::size_t i = 0; i < graph.plain.size(); ++i) cut.AddOp(graph.plain[i], graph.last[i]);
    for (const Random::Result& r : graph.results) cut.AddValue(r.writer, r.readers, r.copy);
    double best = std::numeric_limits<double>::infinity();
    for (unsigned choice = 0; choice < 1u << graph.plain.size(); ++choice) {
      std::vector<bool> chosen;
      for (std::size_t i = 0; i < graph.plain.size(); ++i) chosen.push_back((choice >> i & 1) != 0);
      best = std::min(best, graph.Cost(chosen));
    }
    ASSERT_EQ(graph.Cost(cut.Choose()), best) << "round " << round;
  }
}

TEST(LayoutCut, HandlesLongChains) {
  LayoutCut cut;
  int before = LayoutCut::kPlain;
  for (int i = 0; i < 20000; ++i) {
    const int op = cut.AddOp(2, 1);
    cut.AddValue(before, {op}, 10);
    before = op;
  }
  const std::vector<bool> chosen = cut.Choose();
  EXPECT_TRUE(std::ranges::all_of(chosen, [](bool last) { return last; }));
}

}  // namespace
}  // namespace penstock::exec
