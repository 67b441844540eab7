// Tables whose rows enter and are evicted by a policy, compared with a map that evicts at once.
#include "executor/table/row_life.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "tests/unit/table/trained_table.h"

namespace penstock::table {
namespace {

// The same rules on a map, where each row is judged after each step.
class Model {
 public:
  explicit Model(std::string_view policy)
      : policy_(ParseRowPolicy(policy).value()), entry_(policy_), eviction_(policy_) {}

  void Update(const std::vector<std::vector<std::int64_t>>& ids) {
    ++version_;
    std::map<std::int64_t, int> listed;
    for (const auto& list : ids) {
      for (const std::int64_t id : list) ++listed[id];
    }
    for (const auto& [id, times] : listed) {
      if (!rows_.contains(id) && entry_.any()) {
        RowHeader& candidate = candidates_[id];
        candidate.version = version_;
        if (!entry_.Enters(id, ++candidate.count)) {
          rejected_ += static_cast<std::uint64_t>(times);
          continue;
        }
        candidates_.erase(id);
      }
      if (!rows_.contains(id)) {
        ++entered_;
        rows_[id].value = Initial(id);
      }
      ModelRow& row = rows_[id];
      row.header.shows = row.header.count == 0 ? 1 : eviction_.ShowsAfter(row.header, version_);
      row.header.version = version_;
      ++row.header.count;
      row.value -= static_cast<float>(times);
    }
    std::erase_if(rows_, [&](const auto& row) { return eviction_.IsGone(row.second.header, version_); });
    std::erase_if(candidates_, [&](const auto& row) { return eviction_.IsForgotten(row.second, version_); });
  }
  float Read(std::int64_t id) const { return rows_.contains(id) ? rows_.at(id).value : Initial(id); }
  std::map<std::int64_t, float> Published() const {
    std::map<std::int64_t, float> all;
    for (const auto& [id, row] : rows_) all[id] = row.value;
    return all;
  }
  std::uint64_t entered() const { return entered_; }
  std::uint64_t rejected() const { return rejected_; }
  std::size_t candidate_count() const { return candidates_.size(); }

 private:
  struct ModelRow {
    RowHeader header;
    float value = 0;
  };
  const RowPolicy policy_;
  const EntryRule entry_;
  const EvictionRule eviction_;
  std::uint64_t version_ = 0, entered_ = 0, rejected_ = 0;
  std::map<std::int64_t, ModelRow> rows_;
  std::map<std::int64_t, RowHeader> candidates_;
};

std::vector<std::vector<std::int64_t>> RandomIds(std::mt19937_64& random, int step) {
  std::vector<std::vector<std::int64_t>> ids(2);
  for (auto& list : ids) {
    list.resize(random() % 60);
    // Some ids often, most rarely, and other ones as time goes by.
    for (std::int64_t& id : list)
      id = random() % 3 == 0 ? static_cast<std::int64_t>(random() % 20)
                             : static_cast<std::int64_t>(random() % 700) - 200 + step;
  }
  return ids;
}

class RowLifeModel : public testing::TestWithParam<std::tuple<const char*, Layout>> {};

TEST_P(RowLifeModel, TablesHaveTheRowsOfTheModelWheneverTheySweep) {
  const auto [policy, layout] = GetParam();
  for (unsigned sweeps : {0u, 1u, 5u}) {  // slices after a step, at most
    std::mt19937_64 random(7);
    Trained trained(policy, layout);
    Model model(policy);
    for (int step = 0; step < 400; ++step) {
      const auto ids = RandomIds(random, step);
      trained.Update(ids);
      model.Update(ids);
      for (unsigned i = 0; i < sweeps && trained.table().Sweep(); ++i) {
      }
      for (int i = 0; i < 20; ++i) {
        const auto id = static_cast<std::int64_t>(random() % 700) - 200 + step;
        ASSERT_EQ(trained.Read(id), model.Read(id)) << policy << " step " << step << " id " << id;
      }
      if (step % 50 == 0) {
        ASSERT_EQ(trained.Published(), model.Published()) << policy << " step " << step;
      }
    }
    EXPECT_EQ(trained.Published(), model.Published()) << policy;
    EXPECT_EQ(trained.table().counts().entered, model.entered()) << policy;
    EXPECT_EQ(trained.table().counts().rejected, model.rejected()) << policy;
    const std::size_t rows = model.Published().size();
    EXPECT_GT(model.entered(), 0u);
    if (ParseRowPolicy(policy)->has_eviction()) {
      EXPECT_LT(rows, model.entered()) << "some were evicted";
      if (sweeps > 0) {
        EXPECT_LT(trained.table().row_count(), static_cast<Dim>(model.entered()));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Policies, RowLifeModel,
    testing::Combine(testing::Values("entry count 3", "entry probability 0.25", "evict unseen 20",
                                     "evict count 3 after 8", "evict shows 1.5 decay 0.7 every 9",
                                     "entry count 2, evict unseen 15",
                                     "entry probability 0.5, evict count 4 after 6",
                                     "entry count 2, evict unseen 40, evict count 3 after 10, evict shows 2 "
                                     "decay 0.5 every 16"),
                     testing::Values(Layout::kRows, Layout::kColumns)));

TEST(RowLife, ARowThatEntersAgainBeginsAgain) {
  Trained trained("entry count 2, evict unseen 3", Layout::kRows);
  for (int step = 0; step < 3; ++step) trained.Update({{7}});
  EXPECT_EQ(trained.Read(7), Initial(7) - 2);
  for (int step = 0; step < 3; ++step) trained.Update({{}});
  EXPECT_EQ(trained.Read(7), Initial(7) - 2);
  trained.Update({{}});
  EXPECT_EQ(trained.Read(7), Initial(7)) << "evicted";
  trained.Update({{7}});
  EXPECT_EQ(trained.Read(7), Initial(7)) << "it has not entered yet";
  trained.Update({{7, 7}});
  EXPECT_EQ(trained.Read(7), Initial(7) - 2);
  EXPECT_EQ(trained.table().counts().entered, 2u);
  EXPECT_EQ(trained.table().counts().rejected, 2u);
}

TEST(RowLife, ATableContinuesFromACheckpointAsIfItHadNotEnded) {
  for (const char* policy : {"entry count 3", "evict count 3 after 8, entry probability 0.5",
                             "entry count 2, evict shows 1.5 decay 0.7 every 9, evict unseen 15",
                             "budget_mb 1", "entry count 2, budget_mb 1"}) {
    for (const int end : {1, 40, 97}) {
      std::mt19937_64 random(31);
      Trained whole(policy, Layout::kRows, kWide), restarted(policy, Layout::kRows, kWide);
      for (int step = 0; step < 160; ++step) {
        std::vector<std::vector<std::int64_t>> ids(2);
        for (auto& list : ids) {
          list.resize(random() % 12);
          for (std::int64_t& id : list) id = static_cast<std::int64_t>(random() % 90) + step / 4;
        }
        for (Trained* one : {&whole, &restarted}) one->Update(ids);
        if (step % 5 == 0) whole.SweepAll();
        if (step == end) restarted.Restart();
      }
      EXPECT_EQ(whole.Published(), restarted.Published()) << policy << ", ended after " << end;
    }
  }
}

TEST(RowLife, ACheckpointOfOtherRowsIsRefused) {
  Trained trained("evict unseen 9", Layout::kRows);
  trained.Update({{1, 2, 3}});
  const LifeCopy life = trained.table().CopyLife();
  LifeCopy other = life;
  other.headers.rows[1] = 7;
  const Status absent = Trained("evict unseen 9", Layout::kRows).table().RestoreLife(life);
  EXPECT_EQ(absent.id(), "E-server-shape");
  EXPECT_EQ(trained.table().RestoreLife(other).id(), "E-server-shape");
  other = life;
  other.headers.value = Tensor(DType::kInt64, {3, 2});
  EXPECT_EQ(trained.table().RestoreLife(other).id(), "E-server-shape");
  EXPECT_TRUE(trained.table().RestoreLife(life).ok());
}

TEST(RowLife, ACopyListsOnlyRowsThatAreNotEvicted) {
  Trained trained("evict unseen 1", Layout::kRows);
  trained.Update({{1, 2, 3}});
  trained.Update({{2}});
  trained.Update({{9}});
  RowCopy copy = trained.table().BeginCopy();
  EXPECT_TRUE(trained.table().CopyRows(copy, 100));
  copy.Sort();
  EXPECT_EQ(copy.rows.rows, (std::vector<std::int64_t>{2, 9}));
  EXPECT_EQ(copy.rows.value.shape()[0], 2);
}

TEST(RowLife, RowsOfAFileHaveTheirTime) {
  Variable variable;
  variable.As<SelectedRows>() = {.rows = {4, 5}, .value = Tensor(DType::kFp32, {2, 1})};
  std::fill_n(variable.As<SelectedRows>().value.Data<float>(), 2, 8.0f);
  RowTable table = RowTable::Make({10, 1}, {{"t", &variable}}, Layout::kRows,
                                  ParseRowPolicy("entry count 2, evict unseen 2").value())
                       .value();
  table.UseRule(std::make_shared<Subtract>(), {0});
  SelectedRows gradient{.rows = {4}, .value = Tensor(DType::kFp32, {1, 1})};
  for (int step = 0; step < 4; ++step) {
    gradient.value.Data<float>()[0] = 1;
    SelectedRows* const pointer = &gradient;
    table.Update({.gradients = {&pointer, 1}});
  }
  float values[2];
  table.Read(std::vector<std::int64_t>{4, 5}, -1, reinterpret_cast<std::byte*>(values));
  EXPECT_EQ(values[0], 4) << "it has entered";
  EXPECT_EQ(values[1], 0) << "no step listed it";
}

}  // namespace
}  // namespace penstock::table
