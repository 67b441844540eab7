// Tracks which updated rows of a table each trainer has not been told of: the rows that geo-SGD's trainers
// request.
//
//   ChangedRows changed(table_rows, trainers);
//   changed.Note(rows);          // {3, 1}, updated by any trainer
//   changed.Take(0, 1);          // {1, 3}: trainer 0's request of version 1
//   changed.Note(more_rows);     // {2}
//   changed.Take(0, 1);          // {1, 2, 3}: repeated; the trainer may use either answer
//   changed.Take(0, 2);          // {2}
//
// Whichever answer a trainer uses thus has all rows up to the values it contains, and the next answer has the
// missing rows. Memory: one bit per row and trainer, and the rows that each trainer was told last. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace penstock::pserver {

class ChangedRows {
 public:
  ChangedRows(std::int64_t rows, int trainers);

  // Row numbers must be within the table.
  void Note(std::span<const std::int64_t> rows);
  void NoteAll();  // every row of the table
  // The rows noted since the trainer's first request of a lower version, ascending, each once.
  std::vector<std::int64_t> Take(int trainer, std::uint64_t version);

 private:
  using Bits = std::vector<std::uint64_t>;  // 64 rows each
  struct Trainer {
    Bits noted;                      // since its latest version's first request
    std::vector<std::int64_t> told;  // in answer to that
    std::uint64_t told_before = 0;   // the next version that it may request
  };
  static std::vector<std::int64_t> ListOf(const Bits& bits);

  std::int64_t rows_;
  std::vector<Trainer> trainers_;
};

}  // namespace penstock::pserver
