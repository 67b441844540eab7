#include "tests/sim/geo_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

namespace penstock::test {
namespace {

bool SameDelta(const GeoDelta& a, const GeoDelta& b) { return a.rows == b.rows && Same(a.values, b.values); }

std::set<std::int64_t> AllRows(std::size_t count) {
  std::set<std::int64_t> rows;
  for (std::size_t row = 0; row < count; ++row) rows.insert(rows.end(), static_cast<std::int64_t>(row));
  return rows;
}

// One chunk of a parameter, which begins at row `begin` of it.
class ChunkCheck {
 public:
  ChunkCheck(std::vector<GeoJob*> starts, const communicator::GeoVariable& variable, std::string piece,
             Dim begin, Dim begin_in_piece)
      : starts_(std::move(starts)),
        variable_(variable),
        piece_(std::move(piece)),
        begin_(begin),
        begin_in_piece_(begin_in_piece) {
    const Shape shape = GeoJob::ShapeOf(variable.name);
    width_ = static_cast<std::size_t>(shape.rank() > 1 ? shape.RowWidth() : 1);
  }

  void Run() {
    for (GeoJob* job : starts_) AddStart(*job);
    if (testing::Test::HasFailure()) return;
    const std::vector<GeoDelta>& all = histories_.back().deltas;
    taken_.assign(all.size(), false);
    for (std::size_t i = 0; i < all.size(); ++i) taken_[i] = all[i].rows.empty();
    empty_ = std::count(taken_.begin(), taken_.end(), true);
    for (int t = 0; t < starts_.front()->setup().trainers && !testing::Test::HasFailure(); ++t) Follow(t);
    EXPECT_EQ(std::count(taken_.begin(), taken_.end(), false), 0) << "deltas that nobody sent";
    if (starts_.size() == 1) {
      EXPECT_EQ(empty_, 0) << "empty deltas that nobody sent";
    }
    EXPECT_TRUE(Same(starts_.back()->RowsOnServer(piece_, begin_in_piece_, first_.size()),
                     histories_.back().versions.back()));
  }

 private:
  // What happened to the chunk until the end of one start: what that continued from, and what came then.
  struct History {
    std::size_t restored = 0;  // deltas
    std::vector<GeoDelta> deltas;
    std::vector<std::vector<float>> versions;
  };

  void AddStart(GeoJob& job) {
    const auto& chunks = job.chunks(piece_);
    const auto chunk = chunks.find(begin_in_piece_);
    History history;
    if (histories_.empty()) {
      first_ = chunk->second.first;
    } else {
      const History& before = histories_.back();
      const std::vector<float> value = job.RestoredRows(piece_, begin_in_piece_, first_.size());
      const auto found = std::find_if(before.versions.rbegin(), before.versions.rend(),
                                      [&](const auto& version) { return Same(version, value); });
      ASSERT_NE(found, before.versions.rend()) << "the server began with another value";
      history.restored = static_cast<std::size_t>(before.versions.rend() - found) - 1;
      history.deltas.assign(before.deltas.begin(),
                            before.deltas.begin() + static_cast<std::ptrdiff_t>(history.restored));
    }
    if (chunk != chunks.end())
      history.deltas.insert(history.deltas.end(), chunk->second.deltas.begin(), chunk->second.deltas.end());
    history.versions = GeoVersions(first_, width_, history.deltas);
    histories_.push_back(std::move(history));
  }

  std::vector<float> Slice(const ToyValues& values) const {
    const auto first = values.at(variable_.name).begin() + begin_ * static_cast<Dim>(width_);
    return {first, first + static_cast<std::ptrdiff_t>(first_.size())};
  }
  bool Exchanges(std::size_t steps) const {
    return steps % static_cast<std::size_t>(starts_.front()->setup().push_every) == 0;
  }

  void Follow(int t) {
    GeoTrainer reference(Slice(starts_.front()->trainer(t).start), width_, starts_.front()->setup().trainers);
    EXPECT_NE(std::find_if(histories_.front().versions.begin(), histories_.front().versions.end(),
                           [&](const auto& version) { return Same(version, reference.now()); }),
              histories_.front().versions.end());
    sent_.clear();
    for (std::size_t start = 0; start < starts_.size() && !testing::Test::HasFailure(); ++start)
      FollowIn(start, t, reference);
    TakeAll(t);
  }

  // Through one start of the job, until the step with which the next one continues.
  void FollowIn(std::size_t start, int t, GeoTrainer& reference) {
    const GeoJob::Trainer& trainer = starts_[start]->trainer(t);
    const bool is_last = start + 1 == starts_.size();
    const std::size_t first = trainer.first_step;
    const std::size_t end =
        is_last ? first + trainer.after.size() : starts_[start + 1]->trainer(t).first_step;
    ASSERT_LE(end, first + trainer.after.size()) << "trainer " << t << " continues after a step that it lost";
    if (start > 0) {
      EXPECT_TRUE(Same(reference.now(), Slice(trainer.begun))) << "trainer " << t << " in its new process";
    }
    landed_ = histories_[start].restored;
    lands_all_ = start > 0;
    std::set<std::int64_t> touched;
    for (std::size_t step = first; step < end; ++step) {
      Touch(t, step, reference, touched);
      const std::vector<float> seen = Slice(trainer.after[step - first]);
      if (Exchanges(step + 1)) {
        sent_.push_back(reference.Send(touched));
        touched.clear();
        if (!Land(histories_[start], reference, seen))
          ADD_FAILURE() << "trainer " << t << " got no version in step " << step;
      }
      EXPECT_TRUE(Same(reference.now(), seen)) << "trainer " << t << " after step " << step;
      if (testing::Test::HasFailure()) return;
    }
    if (is_last && !Exchanges(end)) sent_.push_back(reference.Send(touched));
  }

  void Touch(int t, std::size_t step, GeoTrainer& reference, std::set<std::int64_t>& touched) const {
    const auto count = static_cast<std::int64_t>(first_.size() / width_);
    const auto ids = GeoJob::TrainStep(variable_.name, variable_.rows, t, step, begin_, reference.now());
    if (!variable_.rows) touched = AllRows(static_cast<std::size_t>(count));
    for (const std::int64_t id : ids) {
      if (id >= begin_ && id < begin_ + count) touched.insert(id - begin_);
    }
  }

  // After how many deltas the server has all that the trainer has sent; nullopt: one is missing.
  std::optional<std::size_t> HasSent(const std::vector<GeoDelta>& deltas) const {
    std::size_t at = 0;
    for (const GeoDelta& sent : sent_) {
      if (sent.rows.empty()) continue;
      while (at < deltas.size() && !SameDelta(deltas[at], sent)) ++at;
      if (at++ == deltas.size()) return std::nullopt;
    }
    return at;
  }

  // The server has received each as the next delta of this trainer, and counted it for no other. Empty deltas
  // are all alike.
  void TakeAll(int t) {
    const std::vector<GeoDelta>& all = histories_.back().deltas;
    std::size_t at = 0;
    for (std::size_t i = 0; i < sent_.size(); ++i) {
      if (sent_[i].rows.empty()) {
        --empty_;
        continue;
      }
      while (at < all.size() && (taken_[at] || !SameDelta(all[at], sent_[i]))) ++at;
      ASSERT_LT(at, all.size()) << "the delta of trainer " << t << " in exchange " << i << " did not come";
      taken_[at++] = true;
    }
  }

  // A version that contains the trainer's deltas. Of a table, it gets the rows of all deltas since the last
  // one; all rows, where a server begins again.
  bool Land(const History& history, GeoTrainer& reference, const std::vector<float>& seen) {
    const std::optional<std::size_t> sent = HasSent(history.deltas);
    if (!sent) return false;
    std::set<std::int64_t> rows;
    if (lands_all_) rows = AllRows(first_.size() / width_);
    for (std::size_t v = landed_; v < history.versions.size(); ++v) {
      if (v > landed_) rows.insert(history.deltas[v - 1].rows.begin(), history.deltas[v - 1].rows.end());
      if (v < *sent) continue;
      GeoTrainer moved = reference;
      moved.Land(rows, history.versions[v]);
      if (!Same(moved.now(), seen)) continue;
      reference = moved;
      landed_ = v;
      lands_all_ = false;
      return true;
    }
    return false;
  }

  const std::vector<GeoJob*> starts_;
  const communicator::GeoVariable& variable_;
  const std::string piece_;
  const Dim begin_, begin_in_piece_;
  std::size_t width_ = 1;
  std::vector<float> first_;
  std::vector<History> histories_;  // by start
  std::vector<bool> taken_;         // deltas of the last
  std::ptrdiff_t empty_ = 0;
  // For the current trainer: its deltas, and the version that contains the values it received.
  std::vector<GeoDelta> sent_;
  std::size_t landed_ = 0;
  bool lands_all_ = false;
};

}  // namespace

void CheckGeo(const std::vector<GeoJob*>& starts) {
  GeoJob& first = *starts.front();
  for (const communicator::GeoVariable& variable : first.settings().variables) {
    Dim begin = 0;
    for (const communicator::GeoVariable::Piece& piece : variable.pieces) {
      SCOPED_TRACE(piece.name);
      ASSERT_FALSE(first.chunks(piece.name).empty());
      for (const auto& [row, chunk] : first.chunks(piece.name)) {
        ChunkCheck(starts, variable, piece.name, begin + row, row).Run();
        if (testing::Test::HasFailure()) return;
      }
      begin += piece.rows;
    }
  }
}

}  // namespace penstock::test
