// The reference for geo-SGD, on one thread: a server adds the deltas it receives, and a trainer moves by the
// deltas of the others. Rows are those of one chunk, numbered from its first.
//
//   GeoTrainer trainer(start, width, trainers);
//   trainer.now()[3] += 0.5f;                               // a local update
//   const GeoDelta delta = trainer.Send({0, 1});            // the delta of rows 0 and 1
//   trainer.Land({0, 1}, versions.back());                  // receives them from the server
#pragma once

#include <cstdint>
#include <set>
#include <vector>

namespace penstock::test {

struct GeoDelta {
  std::vector<std::int64_t> rows;
  std::vector<float> values;
};

// The server's rows before the first delta, and after each.
std::vector<std::vector<float>> GeoVersions(const std::vector<float>& first, std::size_t width,
                                            const std::vector<GeoDelta>& deltas);

class GeoTrainer {
 public:
  GeoTrainer(const std::vector<float>& start, std::size_t width, int trainers)
      : now_(start), old_(start), width_(width), share_(1.0f / static_cast<float>(trainers)) {}

  std::vector<float>& now() { return now_; }
  GeoDelta Send(const std::set<std::int64_t>& rows);
  void Land(const std::set<std::int64_t>& rows, const std::vector<float>& server);

 private:
  std::vector<float> now_, old_;
  std::size_t width_;
  float share_;
};

}  // namespace penstock::test
