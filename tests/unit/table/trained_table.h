// A table with a policy of rows, for tests: one column that updates subtract gradients from.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/table/row_table.h"

namespace penstock::table {

using Layout = RowTable::Layout;

// Subtracts the gradient.
class Subtract : public RowRule {
 public:
  bool PrepareRows(const KernelSetup&) override { return true; }
  void Update(const RowStep& step, std::span<const RowOfStep> rows) const override {
    for (const RowOfStep& row : rows) {
      for (Dim i = 0; i < step.width; ++i) row.Column<float>(step, 0)[i] -= row.Gradient<float>()[i];
    }
  }
};

inline float Initial(std::int64_t id) { return static_cast<float>(id % 1000) + 0.5f; }

class LifeStart : public RowStart {
 public:
  void Make(std::int64_t row, std::int64_t width, std::byte* out) const override {
    std::fill_n(reinterpret_cast<float*>(out), width, Initial(row));
  }
};

// A table of one column, updated as a pserver does.
class Trained {
 public:
  // `disk`: of a policy with cold_dir.
  Trained(std::string_view policy, Layout layout, Dim width = 2, Disk* disk = nullptr)
      : policy_(policy), layout_(layout), width_(width), disk_(disk) {
    auto& rows = variable_.As<SelectedRows>();
    rows.value = Tensor(DType::kFp32, {0, width});
    rows.start = std::make_shared<LifeStart>();
    table_ = Make();
  }

  // Continues as a server that is started from a checkpoint.
  void Restart() {
    const LifeCopy life = table_->CopyLife();
    EXPECT_TRUE(table_->Publish().ok());
    table_ = Make();
    ASSERT_TRUE(table_->RestoreLife(life).ok());
  }

  // Each id's gradient is 1 everywhere. One gradient for each list, as from several trainers.
  void Update(const std::vector<std::vector<std::int64_t>>& ids) {
    std::vector<SelectedRows> gradients(ids.size());
    std::vector<SelectedRows*> pointers;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      gradients[i].rows = ids[i];
      gradients[i].value = Tensor(DType::kFp32, {static_cast<Dim>(ids[i].size()), width_});
      std::fill_n(gradients[i].value.Data<float>(), gradients[i].value.count(), 1.0f);
      pointers.push_back(&gradients[i]);
    }
    for (const auto& list : ids) ASSERT_TRUE(table_->Fetch(list).ok());
    if (layout_ == Layout::kRows) {
      table_->Update({.gradients = pointers});
      return;
    }
    table_->Admit(pointers);
    for (const SelectedRows* gradient : pointers) table_->Require(gradient->rows);
    for (const SelectedRows* gradient : pointers) {
      for (const std::int64_t id : gradient->rows) {
        float* const row = table_->column(0).Data<float>() + table_->PositionOf(id) * width_;
        for (Dim i = 0; i < width_; ++i) row[i] -= 1;
      }
    }
    table_->EndUpdate();
  }
  float Read(std::int64_t id) {
    std::vector<float> row(static_cast<std::size_t>(width_));
    EXPECT_TRUE(table_->Fetch(std::vector<std::int64_t>{id}).ok());
    table_->Read(std::vector<std::int64_t>{id}, -1, reinterpret_cast<std::byte*>(row.data()));
    EXPECT_EQ(row.front(), row.back());
    return row.front();
  }
  std::map<std::int64_t, float> Published() {
    EXPECT_TRUE(table_->Publish().ok());
    const auto& rows = variable_.As<SelectedRows>();
    std::map<std::int64_t, float> all;
    for (std::size_t i = 0; i < rows.rows.size(); ++i)
      all[rows.rows[i]] = rows.value.Data<float>()[i * static_cast<std::size_t>(width_)];
    return all;
  }
  void SweepAll() {
    while (table_->Sweep()) {
    }
  }
  RowTable& table() { return *table_; }

 private:
  std::optional<RowTable> Make() {
    const RowPolicy policy = policy_.empty() ? RowPolicy() : ParseRowPolicy(policy_).value();
    RowTable table =
        RowTable::Make({1000, width_}, {{"t", &variable_}}, layout_, policy, {.disk = disk_, .name = "t"})
            .value();
    if (layout_ == Layout::kRows) table.UseRule(std::make_shared<Subtract>(), {0});
    return table;
  }

  const std::string policy_;
  const Layout layout_;
  const Dim width_;
  Disk* const disk_;
  Variable variable_;
  std::optional<RowTable> table_;
};

// A row of 4,096 floats; 1 MB holds 63 of them.
constexpr Dim kWide = 4096;

}  // namespace penstock::table
