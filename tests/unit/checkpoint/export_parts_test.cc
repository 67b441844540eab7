// Exports of tables in parts, from bases and changes of several pservers.
#include "executor/checkpoint/export_parts.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "executor/checkpoint/writer.h"
#include "tests/support/faulty_disk.h"

namespace penstock::test {
namespace {

using checkpoint::ArrayFormat;
using checkpoint::ExportParts;
using checkpoint::PartsOptions;
using checkpoint::Reader;
using checkpoint::Value;

constexpr int kExporters = 2;

using RowValues = std::map<std::int64_t, float>;

// A job that trains a table t with the state m = t + 0.5 in both columns, and a variable w.
class ExportedJob {
 public:
  explicit ExportedJob(unsigned seed) : random_(seed) {
    for (int server = 0; server < kExporters; ++server)
      writers_.push_back(std::make_unique<checkpoint::Writer>(
          disk, checkpoint::WriterOptions{.folder = "ckpt", .keep = 99}));
  }
  void Save(std::uint64_t step) {
    const bool changes = !tables.empty();
    const RowValues before = changes ? tables.rbegin()->second : RowValues();
    RowValues table = before;
    for (int i = 0; i < (changes ? 6 : 600); ++i) table[Id()] = static_cast<float>(random_() % 1000);
    for (int i = 0; changes && i < 3; ++i) table.erase(Id());
    for (int server = 0; server < kExporters; ++server) Write(step, server, before, table, changes);
    tables[step] = std::move(table);
  }

  FaultyDisk disk;
  std::map<std::uint64_t, RowValues> tables;  // by step

 private:
  std::int64_t Id() { return static_cast<std::int64_t>(random_() % 800) - 100; }
  static Value ValueOf(const char* name, checkpoint::ValueKind kind, bool changes) {
    Value value;
    value.entry = {.name = name, .kind = kind, .of = "t", .row_begin = {}, .rows = true, .type = ""};
    value.saved_as = changes ? Value::Rows::kChanges : Value::Rows::kBase;
    return value;
  }
  void Write(std::uint64_t step, int server, const RowValues& before, const RowValues& after, bool changes) {
    std::vector<std::pair<std::int64_t, float>> rows;
    std::vector<std::int64_t> gone;
    Dim all = 0;
    const auto is_own = [&](std::int64_t id) { return (id & 1) == server; };
    for (const auto& [id, value] : after) {
      if (!is_own(id)) continue;
      ++all;
      const auto old = before.find(id);
      if (!changes || old == before.end() || old->second != value) rows.emplace_back(id, value);
    }
    for (const auto& [id, value] : before)
      if (is_own(id) && !after.contains(id)) gone.push_back(id);
    std::ranges::shuffle(rows, random_);
    const checkpoint::Manifest head{.step = step, .server = server, .servers = kExporters, .values = {}};
    checkpoint::Writer& writer = *writers_[static_cast<std::size_t>(server)];
    for (std::size_t begin = 0; begin == 0 || begin < rows.size(); begin += 7) {
      Value t = ValueOf("t", checkpoint::ValueKind::kParam, changes);
      Value m = ValueOf("m", checkpoint::ValueKind::kState, changes);
      const std::size_t count = std::min<std::size_t>(7, rows.size() - begin);
      for (auto [value, shift] : {std::pair(&t, 0.0f), std::pair(&m, 0.5f)}) {
        auto& portion = value->value.As<SelectedRows>();
        portion.value = Tensor(DType::kFp32, {static_cast<Dim>(count), 2});
        for (std::size_t i = 0; i < count; ++i) {
          portion.rows.push_back(rows[begin + i].first);
          std::fill_n(portion.value.Data<float>() + 2 * i, 2, rows[begin + i].second + shift);
        }
        value->rows_all = begin == 0 ? all : 0;
        if (begin == 0) value->gone = gone;
        ASSERT_TRUE(writer.Append(head, *value).ok());
      }
    }
    std::vector<Value> values(server == 0 ? 1 : 0);
    for (Value& w : values) {
      w.entry = {.name = "w", .of = "w", .row_begin = 0, .type = "f32[3]"};
      w.value.As<Tensor>() = Tensor(DType::kFp32, {3});
      std::fill_n(w.value.As<Tensor>().Data<float>(), 3, static_cast<float>(step));
    }
    const Status written = writer.Write(head, values);
    ASSERT_TRUE(written.ok()) << written.ToString();
  }

  std::mt19937_64 random_;
  std::vector<std::unique_ptr<checkpoint::Writer>> writers_;
};

Status Export(ExportedJob& job, std::uint64_t step, const PartsOptions& options) {
  const auto found = checkpoint::FindCheckpoints(job.disk, "ckpt").value();
  const auto one = std::ranges::find(found, step, &checkpoint::Found::step);
  EXPECT_TRUE(one != found.end() && one->whole());
  const Reader reader = Reader::Make(job.disk, *one).value();
  return ExportParts(job.disk, reader, "out", options);
}

// The elements of a safetensors file.
template <typename T>
std::vector<T> ElementsOf(const std::string& bytes, const std::string& name) {
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data(), 8);
  EXPECT_EQ(size % 8, 0u);
  const auto json = nlohmann::json::parse(bytes.substr(8, size));
  const auto& offsets = json.at(name).at("data_offsets");
  const std::string elements = bytes.substr(8 + size + offsets[0].get<std::size_t>(),
                                            offsets[1].get<std::size_t>() - offsets[0].get<std::size_t>());
  std::vector<T> all(elements.size() / sizeof(T));
  if (!all.empty()) std::memcpy(all.data(), elements.data(), elements.size());
  std::size_t count = 1;
  for (const auto& extent : json.at(name).at("shape")) count *= extent.get<std::size_t>();
  EXPECT_EQ(all.size(), count);
  return all;
}

// The elements of a NumPy file.
template <typename T>
std::vector<T> ElementsOfNumpy(const std::string& bytes) {
  const std::size_t head =
      10 + static_cast<unsigned char>(bytes[8]) + 256u * static_cast<unsigned char>(bytes[9]);
  std::vector<T> all((bytes.size() - head) / sizeof(T));
  if (!all.empty()) std::memcpy(all.data(), bytes.data() + head, all.size() * sizeof(T));
  return all;
}

// The rows of all parts, from the value or from the state.
struct Exported {
  RowValues value, state;
  std::vector<std::int64_t> gone;
  std::size_t parts = 0;
};

Exported ReadBack(Disk& disk, bool numpy) {
  Exported all;
  const std::vector<std::string> files = disk.List("out").value();
  for (const std::string& file : files) {
    const std::string bytes = disk.ReadWhole("out/" + file).value();
    if (file.starts_with("t.gone"))
      all.gone = numpy ? ElementsOfNumpy<std::int64_t>(bytes) : ElementsOf<std::int64_t>(bytes, "t.gone");
    if (!file.starts_with("t.part-") || (numpy && file.find(".ids") != std::string::npos)) continue;
    const std::string stem = "out/t" + file.substr(1, file.find('.', 7) - 1);
    const auto ids = numpy ? ElementsOfNumpy<std::int64_t>(disk.ReadWhole(stem + ".ids.npy").value())
                           : ElementsOf<std::int64_t>(bytes, "t.ids");
    const auto value = numpy ? ElementsOfNumpy<float>(bytes) : ElementsOf<float>(bytes, "t");
    const auto state = numpy ? ElementsOfNumpy<float>(disk.ReadWhole("out/m" + file.substr(1)).value())
                             : ElementsOf<float>(bytes, "m");
    EXPECT_TRUE(std::ranges::is_sorted(ids));
    EXPECT_EQ(value.size(), 2 * ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      EXPECT_TRUE(all.value.emplace(ids[i], value[2 * i + 1]).second) << "row " << ids[i] << " twice";
      all.state.emplace(ids[i], state[2 * i]);
    }
    ++all.parts;
  }
  return all;
}

TEST(ExportParts, EachRowIsInOnePartWithItsLastValue) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    for (const ArrayFormat format : {ArrayFormat::kSafetensors, ArrayFormat::kNumpy}) {
      ExportedJob job(seed);
      for (const std::uint64_t step : {5U, 10U, 15U, 20U}) job.Save(step);
      const Status exported = Export(job, 20, {.format = format, .part_bytes = 2000});
      ASSERT_TRUE(exported.ok()) << exported.ToString();
      const Exported all = ReadBack(job.disk, format == ArrayFormat::kNumpy);
      EXPECT_EQ(all.value, job.tables[20]) << seed;
      EXPECT_GT(all.parts, 3u);
      for (const auto& [id, value] : all.state) EXPECT_EQ(value, all.value.at(id) + 0.5f);
    }
  }
}

TEST(ExportParts, SinceAStepHasWhatChangedAfterIt) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    for (const std::uint64_t since : {5U, 10U, 15U, 20U}) {
      ExportedJob job(seed);
      for (const std::uint64_t step : {5U, 10U, 15U, 20U}) job.Save(step);
      const bool numpy = seed % 2 == 0;
      const Status exported = Export(job, 20,
                                     {.format = numpy ? ArrayFormat::kNumpy : ArrayFormat::kSafetensors,
                                      .part_bytes = 100,
                                      .since = since});
      ASSERT_TRUE(exported.ok()) << exported.ToString();
      const Exported changes = ReadBack(job.disk, numpy);
      RowValues table = job.tables[since];
      EXPECT_LT(changes.value.size(), table.size() / 2);
      for (const std::int64_t id : changes.gone) {
        EXPECT_FALSE(changes.value.contains(id));
        table.erase(id);
      }
      for (const auto& [id, value] : changes.value) table[id] = value;
      EXPECT_EQ(table, job.tables[20]) << seed << " " << since;
    }
  }
}

TEST(ExportParts, SinceAStepOfNoCheckpointIsAnError) {
  ExportedJob job(1);
  for (const std::uint64_t step : {5U, 10U}) job.Save(step);
  const Status none = Export(job, 10, {.since = 7});
  EXPECT_EQ(none.id(), "E-checkpoint-since");
  EXPECT_EQ(
      none.message(),
      "ckpt/step-10 does not tell which rows of t have changed since step 7: pserver 0 has saved rows at "
      "step 5, 10");
}

TEST(ExportParts, VariablesAreInOneFileAndStatesMayBeLeftOut) {
  ExportedJob job(1);
  job.Save(5);
  ASSERT_TRUE(Export(job, 5, {.states = false}).ok());
  EXPECT_EQ(job.disk.List("out").value(),
            (std::vector<std::string>{"t.part-0.safetensors", "variables.safetensors"}));
  EXPECT_EQ(ElementsOf<float>(job.disk.ReadWhole("out/variables.safetensors").value(), "w"),
            (std::vector<float>{5, 5, 5}));
  const std::string part = job.disk.ReadWhole("out/t.part-0.safetensors").value();
  EXPECT_EQ(part.find("\"m\""), std::string::npos);
  EXPECT_EQ(Export(job, 5, {}).id(), "E-checkpoint-target");
}

TEST(ExportParts, ADamagedRecordIsAnError) {
  ExportedJob job(1);
  for (const std::uint64_t step : {5U, 10U}) job.Save(step);
  job.disk.Damage("ckpt/step-10/part-1-of-2.rows-5", 60);
  EXPECT_EQ(Export(job, 10, {}).id(), "E-checkpoint-damaged");
}

}  // namespace
}  // namespace penstock::test
