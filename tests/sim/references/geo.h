// What geo-SGD means, in one thread: a server adds what comes, and a trainer moves by what others have sent.
// Rows of one chunk, numbered from its first.
//
//   GeoTrainer trainer(start, width, trainers);
//   trainer.now()[3] += 0.5f;                               // it optimizes by itself
//   const GeoDelta delta = trainer.Send({0, 1});            // of rows 0 and 1
//   trainer.Land({0, 1}, versions.back());                  // and gets them
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
