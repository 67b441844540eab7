// Variables of a checkpoint, read from whichever parts hold their rows.
#include "executor/checkpoint/reader.h"

#include <gtest/gtest.h>

#include "executor/checkpoint/export.h"
#include "executor/checkpoint/writer.h"
#include "tests/support/faulty_disk.h"

namespace penstock::test {
namespace {

using checkpoint::Manifest;
using checkpoint::Reader;
using checkpoint::Value;
using checkpoint::ValueKind;
using checkpoint::Writer;

// Rows [begin, end) of a variable whose element i of row r is 10 r + i.
Value Rows(std::string name, const std::string& whole, Dim begin, Dim end) {
  Tensor rows(DType::kFp32, {end - begin, 2});
  for (Dim i = 0; i < rows.count(); ++i)
    rows.Data<float>()[i] = static_cast<float>((begin + i / 2) * 10 + i % 2);
  Value value{.entry = {.name = std::move(name),
                        .of = whole,
                        .whole = whole,
                        .row_begin = begin,
                        .type = StrCat("f32[", end - begin, ", 2]")},
              .value = {}};
  value.value.As<Tensor>() = std::move(rows);
  return value;
}

Value Scalar(std::string name, float is) {
  Value value{.entry = {.name = std::move(name),
                        .kind = ValueKind::kState,
                        .of = "w",
                        .row_begin = 0,
                        .type = "f32[1]"},
              .value = {}};
  Tensor tensor(DType::kFp32, {1});
  tensor.Data<float>()[0] = is;
  value.value.As<Tensor>() = std::move(tensor);
  return value;
}

// A table's rows, each with its own id as value.
Value Table(const std::vector<std::int64_t>& ids) {
  Tensor rows(DType::kFp32, {static_cast<Dim>(ids.size()), 1});
  for (std::size_t i = 0; i < ids.size(); ++i) rows.Data<float>()[i] = static_cast<float>(ids[i]);
  Value value{.entry = {.name = "t",
                        .of = "t",
                        .row_begin = {},
                        .rows = true,
                        .type = StrCat("f32[", ids.size(), ", 1]")},
              .value = {}};
  value.value.As<SelectedRows>() = {.rows = ids, .height = 100, .value = std::move(rows)};
  return value;
}

void Write(Disk& disk, const std::vector<std::vector<Value>>& parts) {
  Writer writer(disk, {.folder = "ckpt", .keep = 2});
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const Manifest head{
        .step = 5, .server = static_cast<int>(part), .servers = static_cast<int>(parts.size()), .values = {}};
    ASSERT_TRUE(writer.Write(head, parts[part]).ok());
  }
}

Reader Open(Disk& disk) {
  return Reader::Make(disk, checkpoint::FindCheckpoints(disk, "ckpt")->front()).value();
}

Reader::Need NeedOf(Dim begin, Dim end, int own_part = -1) {
  return {.name = "w.block0",
          .whole = "w",
          .row_begin = begin,
          .type = DType::kFp32,
          .shape = {end - begin, 2},
          .own_part = own_part};
}

std::vector<float> Floats(const Tensor& tensor) {
  return {tensor.Data<float>(), tensor.Data<float>() + tensor.count()};
}

TEST(CheckpointReader, RowsComeFromThePartsThatHoldThem) {
  FaultyDisk disk;
  Write(disk, {{Rows("w.block1", "w", 2, 5)}, {Rows("w.block0", "w", 0, 2), Rows("w.block2", "w", 5, 6)}});
  const Reader reader = Open(disk);
  EXPECT_EQ(reader.Find("w")->shape, Shape({6, 2}));
  for (Dim begin = 0; begin < 6; ++begin) {
    for (Dim end = begin + 1; end <= 6; ++end) {
      const auto rows = reader.ReadRows(NeedOf(begin, end));
      ASSERT_TRUE(rows.ok()) << rows.status().ToString();
      EXPECT_EQ(Floats(*rows), Floats(*Rows("w", "w", begin, end).value.If<Tensor>())) << begin << " " << end;
    }
  }
  const auto whole = reader.ReadWhole("w");
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(Floats(*whole->If<Tensor>()), Floats(*Rows("w", "w", 0, 6).value.If<Tensor>()));
  EXPECT_FALSE(reader.Has({.whole = "v", .shape = {1}}));
  EXPECT_TRUE(reader.Has({.whole = "w", .shape = {1}}));
}

TEST(CheckpointReader, OnlyTheNeededValuesAreRead) {
  FaultyDisk disk;
  Write(disk, {{Rows("w.block0", "w", 0, 2)}, {Rows("w.block1", "w", 2, 5)}});
  disk.Damage("ckpt/step-5/part-1-of-2.values", 40);
  const Reader reader = Open(disk);
  EXPECT_TRUE(reader.ReadRows(NeedOf(0, 2)).ok());
  EXPECT_EQ(reader.ReadRows(NeedOf(1, 3)).status().id(), "E-checkpoint-damaged");
}

TEST(CheckpointReader, WhatDoesNotFitIsAnError) {
  FaultyDisk disk;
  Write(disk, {{Rows("w.block0", "w", 0, 2), Scalar("power", 1)},
               {Rows("w.block1", "w", 3, 5), Scalar("power", 2)}});
  const Reader reader = Open(disk);
  EXPECT_EQ(reader.ReadRows(NeedOf(1, 4)).status().message(),
            "ckpt/step-5 is a checkpoint of another job: it lacks row 2 of w, and w.block0 has rows [1, 4)");
  EXPECT_EQ(reader.ReadRows(NeedOf(4, 6)).status().id(), "E-checkpoint-differs");
  Reader::Need wide = NeedOf(0, 2);
  wide.shape = {2, 3};
  EXPECT_EQ(reader.ReadRows(wide).status().message(),
            "ckpt/step-5 is a checkpoint of another job: its w is f32[5, 2], here w.block0 is f32[2, 3]");
  Reader::Need short_one = NeedOf(0, 2);
  short_one.whole_rows = 4;
  EXPECT_EQ(reader.ReadRows(short_one).status().message(),
            "ckpt/step-5 is a checkpoint of another job: its w is f32[5, 2], here it is f32[4, 2]");
  const Reader::Need power{.name = "power", .whole = "power", .type = DType::kFp32, .shape = {1}};
  EXPECT_EQ(reader.ReadRows(power).status().message(),
            "ckpt/step-5: pservers 0 and 1 have different values of power");
  Reader::Need own = power;
  own.own_part = 1;
  EXPECT_EQ(Floats(*reader.ReadRows(own)), std::vector<float>{2});
}

TEST(CheckpointReader, WithoutRecordedRowsThePartOfTheServerCounts) {
  FaultyDisk disk;
  std::vector<Value> slices = {Rows("w", "", 0, 2), Rows("w", "", 2, 4)};
  for (Value& slice : slices) slice.entry.row_begin.reset();
  Write(disk, {{slices[0]}, {slices[1]}});
  const Reader reader = Open(disk);
  Reader::Need need = NeedOf(0, 2, 1);
  need.name = "w";
  EXPECT_EQ(Floats(*reader.ReadRows(need)), Floats(*slices[1].value.If<Tensor>()));
  need.own_part = -1;
  EXPECT_EQ(
      reader.ReadRows(need).status().message(),
      "ckpt/step-5 is a checkpoint of another job: its pservers do not record which rows of w they have, "
      "so it needs 2 pservers again");
}

TEST(CheckpointReader, ATablesRowsAreFoundById) {
  FaultyDisk disk;
  Write(disk, {{Table({0, 4, 10})}, {Table({3, 7})}, {Table({})}});
  const Reader reader = Open(disk);
  EXPECT_EQ(reader.Find("t")->shape, Shape({5, 1}));
  const auto all = reader.ReadWhole("t");
  ASSERT_TRUE(all.ok()) << all.status().ToString();
  const SelectedRows& rows = *all->If<SelectedRows>();
  EXPECT_EQ(rows.rows, (std::vector<std::int64_t>{0, 3, 4, 7, 10}));
  EXPECT_EQ(rows.height, 100);
  EXPECT_EQ(Floats(rows.value), (std::vector<float>{0, 3, 4, 7, 10}));
  const auto odd = reader.ReadTable("t", -1, [](std::int64_t id) { return id % 2 == 1; });
  EXPECT_EQ(odd->rows, (std::vector<std::int64_t>{3, 7}));
  // A part whose rows are all wanted is enough; otherwise all parts are read.
  const auto above = [](std::int64_t least) { return [least](std::int64_t id) { return id >= least; }; };
  EXPECT_EQ(reader.ReadTable("t", 1, above(3))->rows, (std::vector<std::int64_t>{3, 7}));
  EXPECT_EQ(reader.ReadTable("t", 1, above(4))->rows, (std::vector<std::int64_t>{4, 7, 10}));
  EXPECT_EQ(reader.ReadTable("t", 2, above(10))->rows, (std::vector<std::int64_t>{10}));
}

TEST(CheckpointReader, ATableWhoseRowsMissUpdatesIsNotExported) {
  FaultyDisk disk;
  Value history = Table({1});
  history.entry.name = "t@VERSIONS";
  history.entry.kind = ValueKind::kHistory;
  Write(disk, {{Table({1}), history}});
  const Reader reader = Open(disk);
  EXPECT_EQ(checkpoint::ExportFluid(disk, reader, "out").id(), "E-checkpoint-history");
  EXPECT_EQ(checkpoint::ExportNumpy(disk, reader, "out").message(),
            "ckpt/step-5: rows of t miss updates, which only a pserver makes up for");
  EXPECT_FALSE(disk.Exists("out"));
}

TEST(CheckpointReader, ARowOnTwoPserversIsAnError) {
  FaultyDisk disk;
  Write(disk, {{Table({1, 2})}, {Table({2})}});
  EXPECT_EQ(Open(disk).ReadWhole("t").status().message(),
            "ckpt/step-5: more than one pserver has row 2 of t");
}

}  // namespace
}  // namespace penstock::test
