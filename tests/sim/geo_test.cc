// Geo-SGD under any network faults: every update of a server is a delta that a trainer sent, applied once;
// and after each step, every trainer has the values that the reference computes from the versions that it
// received. A delta is therefore what the trainer changed, and a trainer receives each row of a table that
// any trainer has changed, once per change.
//
// To run one seed:  sim_geo with PENSTOCK_SIM_SEED=17
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "tests/sim/geo_job.h"
#include "tests/sim/seeds.h"

namespace penstock::test {
namespace {

bool Same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::set<std::int64_t> AllRows(std::size_t count) {
  std::set<std::int64_t> rows;
  for (std::size_t row = 0; row < count; ++row) rows.insert(rows.end(), static_cast<std::int64_t>(row));
  return rows;
}

// One chunk of a parameter, which begins at row `begin` of it.
class ChunkCheck {
 public:
  ChunkCheck(GeoJob& job, const communicator::GeoVariable& variable, const std::string& piece, Dim begin,
             Dim begin_in_piece, const GeoJob::Chunk& chunk)
      : job_(job),
        variable_(variable),
        piece_(piece),
        begin_(begin),
        begin_in_piece_(begin_in_piece),
        chunk_(chunk) {
    const Shape shape = GeoJob::ShapeOf(variable.name);
    width_ = static_cast<std::size_t>(shape.rank() > 1 ? shape.RowWidth() : 1);
  }

  void Run() {
    versions_ = GeoVersions(chunk_.first, width_, chunk_.deltas);
    for (const GeoDelta& delta : chunk_.deltas) taken_.push_back(delta.rows.empty());
    empty_ = std::count(taken_.begin(), taken_.end(), true);
    for (int t = 0; t < job_.setup().trainers && !testing::Test::HasFailure(); ++t) Follow(t);
    EXPECT_EQ(std::count(taken_.begin(), taken_.end(), false), 0) << "deltas that nobody sent";
    EXPECT_EQ(empty_, 0) << "empty deltas that nobody sent";
    EXPECT_TRUE(Same(job_.RowsOnServer(piece_, begin_in_piece_, chunk_.first.size()), versions_.back()));
  }

 private:
  std::vector<float> Slice(const ToyValues& values) const {
    const auto first = values.at(variable_.name).begin() + begin_ * static_cast<Dim>(width_);
    return {first, first + static_cast<std::ptrdiff_t>(chunk_.first.size())};
  }

  void Follow(int t) {
    const GeoJob::Trainer& trainer = job_.trainer(t);
    GeoTrainer reference(Slice(trainer.start), width_, job_.setup().trainers);
    EXPECT_NE(std::find_if(versions_.begin(), versions_.end(),
                           [&](const auto& version) { return Same(version, reference.now()); }),
              versions_.end());
    landed_ = sent_ = 0;
    std::set<std::int64_t> touched;
    for (std::size_t step = 0; step < trainer.after.size(); ++step) {
      Touch(t, step, reference, touched);
      const std::vector<float> seen = Slice(trainer.after[step]);
      if ((step + 1) % static_cast<std::size_t>(job_.setup().push_every) == 0) {
        Send(t, step, reference.Send(touched));
        touched.clear();
        if (!Land(reference, seen)) ADD_FAILURE() << "trainer " << t << " got no version in step " << step;
      }
      EXPECT_TRUE(Same(reference.now(), seen)) << "trainer " << t << " after step " << step;
      if (testing::Test::HasFailure()) return;
    }
    if (trainer.after.size() % static_cast<std::size_t>(job_.setup().push_every) != 0)
      Send(t, trainer.after.size(), reference.Send(touched));
  }

  void Touch(int t, std::size_t step, GeoTrainer& reference, std::set<std::int64_t>& touched) const {
    const auto count = static_cast<std::int64_t>(chunk_.first.size() / width_);
    const auto ids = GeoJob::TrainStep(variable_.name, variable_.rows, t, step, begin_, reference.now());
    if (!variable_.rows) touched = AllRows(static_cast<std::size_t>(count));
    for (const std::int64_t id : ids) {
      if (id >= begin_ && id < begin_ + count) touched.insert(id - begin_);
    }
  }

  // The server has received it as the next delta of this trainer, and counted it for no other. Empty deltas
  // are all alike.
  void Send(int t, std::size_t step, const GeoDelta& delta) {
    if (delta.rows.empty()) {
      --empty_;
      return;
    }
    for (std::size_t i = sent_; i < chunk_.deltas.size(); ++i) {
      if (taken_[i] || chunk_.deltas[i].rows != delta.rows || !Same(chunk_.deltas[i].values, delta.values))
        continue;
      taken_[i] = true;
      sent_ = i + 1;
      return;
    }
    ADD_FAILURE() << "the delta of trainer " << t << " of step " << step << " did not come";
  }

  // A version that contains the trainer's deltas. Of a table, it gets the rows of all deltas since the last
  // one.
  bool Land(GeoTrainer& reference, const std::vector<float>& seen) {
    std::set<std::int64_t> rows;
    for (std::size_t v = landed_; v < versions_.size(); ++v) {
      if (v > landed_) rows.insert(chunk_.deltas[v - 1].rows.begin(), chunk_.deltas[v - 1].rows.end());
      if (v < sent_) continue;
      GeoTrainer moved = reference;
      moved.Land(rows, versions_[v]);
      if (!Same(moved.now(), seen)) continue;
      reference = moved;
      landed_ = v;
      return true;
    }
    return false;
  }

  GeoJob& job_;
  const communicator::GeoVariable& variable_;
  const std::string& piece_;
  const Dim begin_, begin_in_piece_;
  const GeoJob::Chunk& chunk_;
  std::size_t width_ = 1;
  std::vector<std::vector<float>> versions_;
  std::vector<bool> taken_;  // deltas
  std::ptrdiff_t empty_ = 0;
  // For the current trainer: the versions that contain the values it received, and its deltas.
  std::size_t landed_ = 0, sent_ = 0;
};

void RunSeed(std::uint64_t seed) {
  SCOPED_TRACE(StrCat("seed ", seed, ": run it alone with PENSTOCK_SIM_SEED=", seed));
  GeoSetup setup{.trainers = 2 + static_cast<int>(seed % 3 == 2),
                 .push_every = 1 + static_cast<int>(seed % 4)};
  setup.steps = {5, seed % 2 == 0 ? 5 : 2, 4};  // some have fewer batches
  GeoJob job(setup, seed, FaultsOf(seed));
  const Status status = job.Run();
  ASSERT_TRUE(status.ok()) << status.ToString();
  for (const communicator::GeoVariable& variable : job.settings().variables) {
    Dim begin = 0;
    for (const communicator::GeoVariable::Piece& piece : variable.pieces) {
      SCOPED_TRACE(piece.name);
      ASSERT_FALSE(job.chunks(piece.name).empty());
      for (const auto& [row, chunk] : job.chunks(piece.name))
        ChunkCheck(job, variable, piece.name, begin + row, row, chunk).Run();
      begin += piece.rows;
    }
  }
}

TEST(Geo, EverySeedAddsEachDeltaOnce) {
  if (const char* seed = std::getenv("PENSTOCK_SIM_SEED")) return RunSeed(std::strtoull(seed, nullptr, 10));
  for (std::uint64_t seed = 0; seed < SeedCount() && !testing::Test::HasFailure(); ++seed) RunSeed(seed);
}

TEST(Geo, ALoneTrainerEqualsOneMachineExactly) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    GeoJob job({.trainers = 1, .push_every = 1 + static_cast<int>(seed % 3), .steps = {7}}, seed,
               FaultsOf(seed));
    const Status status = job.Run();
    ASSERT_TRUE(status.ok()) << status.ToString();
    ToyValues alone = job.trainer(0).start;
    for (std::size_t step = 0; step < 7; ++step) {
      for (const communicator::GeoVariable& variable : job.settings().variables) {
        GeoJob::TrainStep(variable.name, variable.rows, 0, step, 0, alone[variable.name]);
        EXPECT_TRUE(Same(job.trainer(0).after[step].at(variable.name), alone[variable.name]))
            << variable.name << " after step " << step;
      }
    }
  }
}

}  // namespace
}  // namespace penstock::test
