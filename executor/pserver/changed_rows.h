// Which rows of a table each trainer has not been told of since they were updated: what geo-SGD's trainers
// ask for.
//
//   ChangedRows changed(table_rows, trainers);
//   changed.Note({3, 1});        // updated, whoever sent it
//   changed.Take(0, 1);          // {1, 3}: trainer 0's question of version 1
//   changed.Note({2});
//   changed.Take(0, 1);          // {1, 2, 3}: it was repeated; which answer counts, nobody here knows
//   changed.Take(0, 2);          // {2}
//
// So whichever answer a trainer takes has all rows up to the values that it has, and the next one what is
// missing. Memory: a bit for each row and trainer, and the rows that a trainer was told of last. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace penstock::pserver {

class ChangedRows {
 public:
  ChangedRows(std::int64_t rows, int trainers);

  // Each within the table.
  void Note(std::span<const std::int64_t> rows);
  // Ascending, each once: those noted since the trainer's first question of a lower version.
  std::vector<std::int64_t> Take(int trainer, std::uint64_t version);

 private:
  using Bits = std::vector<std::uint64_t>;  // 64 rows each
  struct Trainer {
    Bits noted;                      // since its last first question
    std::vector<std::int64_t> told;  // in answer to that
    std::uint64_t told_before = 0;   // the next version that it may ask for
  };
  static std::vector<std::int64_t> ListOf(const Bits& bits);

  std::vector<Trainer> trainers_;
};

}  // namespace penstock::pserver
