// Instances in memory, packed: a few large chunks of bytes and one pointer per instance.
//
//   Records records;
//   records.Add(record);                // from Parser
//   records.Shuffle(seed);              // moves pointers; the same order on every machine
//   Batch batch = MakeBatch(format, records.Slice(0, 32));
//
// Layout of a record: u32 total bytes, u32 bytes of the id, a u32 count for each slot, the slots' numbers
// (f32 or i64, not aligned), the id. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/dataset/slots.h"
#include "framework/base/status.h"
#include "framework/runtime/batch_queue.h"

namespace penstock::dataset {

// Fluid treats numbers of smaller magnitude as zero.
inline constexpr float kFluidsZero = 1e-6F;

// Writes a word of a record's head: 0 the total bytes, 1 the bytes of the id, 2 + i the count of slot i.
void PutWord(std::string& record, std::size_t word, std::size_t value);

// The bytes of one record. Does not own them.
class RecordView {
 public:
  explicit RecordView(const std::byte* data) : data_(data) {}
  std::string_view bytes() const { return {reinterpret_cast<const char*>(data_), Word(0)}; }
  std::uint32_t id_bytes() const { return Word(1); }
  std::uint32_t count(std::size_t slot) const { return Word(2 + slot); }
  std::string_view id() const { return bytes().substr(Word(0) - id_bytes()); }
  // The numbers of the first slot; those of the other slots follow.
  const std::byte* numbers(std::size_t slots) const { return data_ + HeadBytes(slots); }

  static constexpr std::size_t HeadBytes(std::size_t slots) { return (2 + slots) * sizeof(std::uint32_t); }
  static constexpr std::size_t NumberBytes(const Slot& slot) { return slot.is_float ? 4 : 8; }

 private:
  std::uint32_t Word(std::size_t i) const;
  const std::byte* data_;
};

class Records {
 public:
  void Add(std::string_view record);
  void Append(Records&& other);  // leaves `other` empty

  std::size_t size() const { return index_.size(); }
  RecordView operator[](std::size_t i) const { return RecordView(index_[i]); }
  // Records [begin, end).
  std::span<const std::byte* const> Slice(std::size_t begin, std::size_t end) const {
    return std::span(index_).subspan(begin, end - begin);
  }
  void Shuffle(std::uint64_t seed);

  // Returns the concatenated records whose hash, mixed with `salt`, is `part` modulo `parts`. The hash covers
  // the id if there is one, else all bytes.
  std::string Pack(std::size_t part, std::size_t parts, std::uint64_t salt) const;
  // Adds the records that a peer packed. kDataLoss E-dataset-packed: `packed` is not a sequence of records of
  // this format; nothing is added.
  Status Unpack(const Format& format, std::string_view packed);

 private:
  static constexpr std::size_t kChunkBytesMin = std::size_t{1} << 12, kChunkBytesMax = std::size_t{1} << 20;

  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::size_t chunk_bytes_ = 0;  // size of the last chunk, not counting chunks made for one large record
  std::size_t free_ = 0;         // free bytes at the end of the last chunk
  std::byte* next_ = nullptr;
  std::vector<const std::byte*> index_;
};

// One tensor per used slot: [n, extents...] for a dense slot, else [numbers, 1] with offsets.
Batch MakeBatch(const Format& format, std::span<const std::byte* const> records);

}  // namespace penstock::dataset
