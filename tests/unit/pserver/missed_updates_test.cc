// Rows of a table that miss updates of an optimizer which changes all rows: they get what they missed when
// they are read or updated next, and a checkpoint keeps what they still miss.
#include <cmath>
#include <numeric>
#include <random>

#include "executor/pserver/checkpoints.h"
#include "tests/support/faulty_disk.h"
#include "tests/unit/pserver/saved_table.h"

namespace penstock::test {
namespace {

constexpr int kSteps = 1000;

// Whether row `id` is in the gradient of a step: the rows miss all steps from the second on, many, few, or
// none.
bool Listed(std::int64_t id, int step, std::mt19937_64& random) {
  switch (id) {
    case 0:
      return true;
    case 1:
      return step == 0;
    case 2:
      return step == 0 || step == 999;
    case 3:
      return step % 5 == 0;
    case 4:
      return step % 7 == 0;
    case 5:
      return step % 150 == 3;
    case 6:
      return step % 400 == 1;
    default:
      return random() % static_cast<std::uint64_t>(2 * id) == 0;
  }
}

// The same gradients for any type, in f32.
template <typename T>
RowGradient GradientOf(int step, std::mt19937_64& random) {
  RowGradient gradient;
  std::vector<T> values;
  for (std::int64_t id = 0; id < 40; ++id) {
    if (!Listed(id, step, random)) continue;
    gradient.ids.push_back(id);
    // Rows differ in the size of their gradients, down to where epsilon matters.
    const double size = std::pow(10.0, -static_cast<double>(id % 6));
    for (Dim i = 0; i < kWidth; ++i)
      values.push_back(
          static_cast<T>(static_cast<float>(size * (static_cast<double>(random() % 2001) / 997 - 1))));
  }
  gradient.values.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return gradient;
}

template <typename T>
void SetRate(Scope& scope, int step, bool schedule) {
  const double rate = schedule ? 0.02 * std::pow(0.97, step % 300) : 0.01;
  Variable* const lr = scope.Find("lr");  // adadelta has none
  if (lr != nullptr) lr->As<Tensor>().Data<T>()[0] = static_cast<T>(static_cast<float>(rate));
}

template <typename T>
std::vector<double> Doubles(const Tensor& tensor) {
  return {tensor.Data<T>(), tensor.Data<T>() + tensor.count()};
}

std::vector<std::int64_t> AllIds() {
  std::vector<std::int64_t> ids(40);
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

// The values that lookups read, after 300 steps and at the end.
template <typename T>
std::vector<double> Values(const Optimizer& optimizer, bool by_row, bool schedule) {
  TableServer server(RolesOf(optimizer, std::is_same_v<T, float> ? "f32" : "f64", 1), by_row);
  server.store();
  std::mt19937_64 random(3);
  std::vector<double> values;
  for (int step = 0; step < kSteps; ++step) {
    SetRate<T>(server.scope(), step, schedule);
    server.Step({GradientOf<T>(step, random)});
    if (step != 300 && step != kSteps - 1) continue;
    const std::vector<double> now = Doubles<T>(server.Read(AllIds()));
    values.insert(values.end(), now.begin(), now.end());
  }
  return values;
}

// The largest difference in a row, relative to the row's largest value.
double Difference(const std::vector<double>& values, const std::vector<double>& expected) {
  double most = 0;
  for (std::size_t row = 0; row < expected.size(); row += kWidth) {
    double largest = 0, difference = 0;
    for (std::size_t i = row; i < row + kWidth; ++i) {
      largest = std::max(largest, std::abs(expected[i]));
      difference = std::max(difference, std::abs(values[i] - expected[i]));
      if (!std::isfinite(values[i])) return INFINITY;
    }
    if (largest > 0) most = std::max(most, difference / largest);
  }
  return most;
}

// The block on columns, in double precision, is the dense update.
TEST(MissedUpdates, EqualADenseUpdateAfterAThousandSteps) {
  for (const Optimizer& optimizer : TableOptimizers()) {
    if (!optimizer.moves) continue;
    for (const bool schedule : {false, true}) {
      SCOPED_TRACE(StrCat(optimizer.name, schedule ? " with a schedule" : ""));
      const std::vector<double> dense = Values<double>(optimizer, false, schedule);
      EXPECT_LT(Difference(Values<double>(optimizer, true, schedule), dense), 1e-9);
      const std::vector<double> rows = Values<float>(optimizer, true, schedule);
      if (optimizer.exact) {  // of numbers whose own rounding is larger
        EXPECT_EQ(rows, Values<float>(optimizer, false, schedule));
      } else {
        EXPECT_LT(Difference(rows, dense), 1e-5);
      }
    }
  }
}

class Job {
 public:
  explicit Job(const Optimizer& optimizer) : server(RolesOf(optimizer, "f32", 1), true) {}
  void Train(
      int begin, int end, const std::function<void()>& after_step = [] {}) {
    server.store();
    for (int step = begin; step < end; ++step) {
      SetRate<float>(server.scope(), step, true);
      std::mt19937_64 random(static_cast<std::uint64_t>(step));
      server.Step({GradientOf<float>(step, random)});
      after_step();
    }
  }
  // The table as it lies.
  std::map<std::string, std::string> Stored() {
    const pserver::TableCopy copy = server.store().CopyTable(0);
    std::map<std::string, std::string> bytes = {{"t", BytesOf(copy.rows.value) + TextOf(copy.rows.rows)}};
    for (const auto& [name, tensor] : copy.state) bytes[name] = BytesOf(tensor);
    return bytes;
  }
  TableServer server;
};

TEST(MissedUpdates, ReadsAndCopiesChangeNoStoredRow) {
  for (const Optimizer& optimizer : TableOptimizers()) {
    if (!optimizer.moves) continue;
    SCOPED_TRACE(optimizer.name);
    Job quiet(optimizer), busy(optimizer);
    quiet.Train(0, 60);
    busy.Train(0, 60, [&] {
      const Tensor read = busy.server.Read(AllIds());
      const auto saved = busy.server.store().CopyForSave(0);
      ASSERT_TRUE(saved.has_value());
      for (std::size_t i = 0; i < saved->rows.rows.size(); ++i) {
        const std::size_t row = static_cast<std::size_t>(saved->rows.rows[i]) * kWidth;
        EXPECT_TRUE(std::equal(read.Data<float>() + row, read.Data<float>() + row + kWidth,
                               saved->rows.value.Data<float>() + i * kWidth))
            << "a save has what a lookup reads";
      }
      busy.server.store().CopyTable(0);
      EXPECT_TRUE(busy.server.store().PublishTables().ok());
    });
    EXPECT_EQ(busy.Stored(), quiet.Stored());
  }
}

Optimizer Named(const std::string& name) {
  const std::vector<Optimizer> all = TableOptimizers();
  return *std::ranges::find(all, name, &Optimizer::name);
}

std::unique_ptr<pserver::Checkpoints> CheckpointsOf(Disk& disk, const Job& job,
                                                    const roles::PserverFacts& facts,
                                                    std::vector<std::string> servers,
                                                    std::optional<std::uint64_t> resume) {
  return pserver::Checkpoints::Make(
             disk, {.folder = "ckpt", .every = 30, .resume = resume, .servers = std::move(servers)}, facts,
             job.server.program(), 0)
      .value();
}

TEST(MissedUpdates, ATableContinuesFromACheckpointWithItsBytes) {
  for (const Optimizer& optimizer : TableOptimizers()) {
    if (!optimizer.moves) continue;
    SCOPED_TRACE(optimizer.name);
    FaultyDisk disk;
    Job whole(optimizer), first(optimizer), second(optimizer);
    whole.Train(0, 80);
    first.Train(0, 30);
    {
      const auto checkpoints = CheckpointsOf(disk, first, first.server.facts(), {"a:1"}, {});
      WriteRows(first.server, *checkpoints, 30);
      ASSERT_TRUE(checkpoints->Write(30, checkpoints->Take()).ok());
      const auto found = checkpoint::FindCheckpoints(disk, "ckpt").value();
      EXPECT_EQ(std::ranges::count(found.back().parts[0].values, checkpoint::ValueKind::kHistory,
                                   &checkpoint::ValueEntry::kind),
                2);
    }
    const auto checkpoints = CheckpointsOf(disk, second, second.server.facts(), {"a:1"}, 30);
    const auto restored = checkpoints->Restore(second.server.scope());
    ASSERT_TRUE(restored.ok()) << restored.status().ToString();
    EXPECT_EQ(second.Stored(), first.Stored());
    second.Train(30, 80);
    EXPECT_EQ(second.Stored(), whole.Stored());
    EXPECT_EQ(second.server.Published(), whole.server.Published());
  }
}

// To momentum, a gradient without rows is no step, and a server may get one where another gets rows.
TEST(MissedUpdates, ServersContinueWithHistoriesOfDifferentLengths) {
  const Optimizer momentum = Named("momentum");
  const std::vector<std::vector<std::vector<std::int64_t>>> ids = {{{0, 2}, {2}, {0}}, {{1}, {}, {}}};
  FaultyDisk disk;
  const auto checkpoints = [&](const Job& job, int server, std::optional<std::uint64_t> resume) {
    roles::PserverFacts facts = job.server.facts();
    facts.address = server == 0 ? "a:1" : "b:1";
    facts.number = server;
    return CheckpointsOf(disk, job, facts, {"a:1", "b:1"}, resume);
  };
  Job first(momentum), second(momentum);
  const auto writers = {checkpoints(first, 0, {}), checkpoints(second, 1, {})};
  std::vector<std::map<std::string, std::string>> stored;
  for (const auto& writer : writers) {
    Job& job = stored.empty() ? first : second;
    for (const std::vector<std::int64_t>& step : ids[stored.size()]) {
      const std::vector<float> values(step.size() * kWidth, 0.5f);
      const auto* bytes = reinterpret_cast<const char*>(values.data());
      job.server.Step({{step, {bytes, values.size() * sizeof(float)}}});
    }
    WriteRows(job.server, *writer, 30);
    ASSERT_TRUE(writer->Write(30, writer->Take()).ok());
    stored.push_back(job.Stored());
  }
  const std::string history = pserver::ChunkStore::HistoryOf("t");
  ASSERT_NE(stored[0].at(history).size(), stored[1].at(history).size());
  for (int server = 0; server < 2; ++server) {
    Job job(momentum);
    const auto restored = checkpoints(job, server, 30)->Restore(job.server.scope());
    ASSERT_TRUE(restored.ok()) << restored.status().ToString();
    EXPECT_EQ(job.Stored(), stored[static_cast<std::size_t>(server)]);
  }
}

TEST(MissedUpdates, AProgramWhoseRowsMissNothingRefusesSuchACheckpoint) {
  Job adam(Named("adam")), lazy(Named("lazy adam"));
  adam.Train(0, 3);
  const pserver::TableCopy copy = adam.server.store().CopyTable(0);
  Scope& scope = lazy.server.scope();
  scope.Find("t")->As<SelectedRows>().rows = copy.rows.rows;
  scope.Find("t")->As<SelectedRows>().value = copy.rows.value;
  scope.FindOrCreate(pserver::ChunkStore::VersionsOf("t"))->As<SelectedRows>() = {
      .rows = copy.rows.rows, .height = 100, .value = copy.state.back().second};
  scope.FindOrCreate(pserver::ChunkStore::HistoryOf("t"))->As<Tensor>() = copy.state.front().second;
  const Status made = lazy.server.Make();
  EXPECT_EQ(made.id(), "E-server-shape");
  EXPECT_EQ(made.message(), "t has 10 rows; its optimizer does not continue updates that rows missed");
}

}  // namespace
}  // namespace penstock::test
