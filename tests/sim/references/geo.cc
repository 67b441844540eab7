#include "tests/sim/references/geo.h"

namespace penstock::test {

std::vector<std::vector<float>> GeoVersions(const std::vector<float>& first, std::size_t width,
                                            const std::vector<GeoDelta>& deltas) {
  std::vector<std::vector<float>> versions = {first};
  for (const GeoDelta& delta : deltas) {
    std::vector<float> next = versions.back();
    for (std::size_t i = 0; i < delta.values.size(); ++i)
      next[static_cast<std::size_t>(delta.rows[i / width]) * width + i % width] += delta.values[i];
    versions.push_back(std::move(next));
  }
  return versions;
}

GeoDelta GeoTrainer::Send(const std::set<std::int64_t>& rows) {
  GeoDelta delta{.rows = {rows.begin(), rows.end()}, .values = {}};
  for (const std::int64_t row : rows) {
    for (std::size_t i = static_cast<std::size_t>(row) * width_;
         i < static_cast<std::size_t>(row + 1) * width_; ++i) {
      delta.values.push_back((now_[i] - old_[i]) * share_);
      old_[i] += delta.values.back();
    }
  }
  return delta;
}

void GeoTrainer::Land(const std::set<std::int64_t>& rows, const std::vector<float>& server) {
  for (const std::int64_t row : rows) {
    for (std::size_t i = static_cast<std::size_t>(row) * width_;
         i < static_cast<std::size_t>(row + 1) * width_; ++i) {
      if (server[i] != old_[i]) now_[i] += server[i] - old_[i];
      old_[i] = server[i];
    }
  }
}

}  // namespace penstock::test
