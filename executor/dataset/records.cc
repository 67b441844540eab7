#include "executor/dataset/records.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "executor/dataset/sequence.h"
#include "framework/base/hash.h"

namespace penstock::dataset {
namespace {

std::size_t PartOf(const RecordView& record, std::size_t parts, std::uint64_t salt) {
  const std::string_view key = record.id_bytes() > 0 ? record.id() : record.bytes();
  return static_cast<std::size_t>(Sequence(Fnv1a64(key) ^ salt).Next() % parts);
}

std::uint32_t WordAt(std::string_view bytes, std::size_t word) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + word * sizeof(value), sizeof(value));
  return value;
}

// Returns the size of the record at the front of `bytes`, or 0 if there is no valid record.
std::size_t FrontRecordBytes(const Format& format, std::string_view bytes) {
  const std::size_t slots = format.slots.size();
  std::uint64_t size = RecordView::HeadBytes(slots);
  if (bytes.size() < size) return 0;
  size += WordAt(bytes, 1);
  for (std::size_t i = 0; i < slots; ++i) {
    const std::uint64_t count = WordAt(bytes, 2 + i);
    const Slot& slot = format.slots[i];
    if (slot.used && slot.dense && count != static_cast<std::uint64_t>(slot.width())) return 0;
    size += count * RecordView::NumberBytes(slot);
  }
  return size == WordAt(bytes, 0) && size <= bytes.size() ? static_cast<std::size_t>(size) : 0;
}

// Builds the tensor of one slot from the numbers of all records.
class SlotColumn {
 public:
  SlotColumn(const Format& format, std::span<const std::byte* const> records, std::size_t slot)
      : slot_(format.slots[slot]) {
    if (!slot_.dense) {
      offsets_.reserve(records.size() + 1);
      offsets_.push_back(0);
      for (const std::byte* record : records)
        offsets_.push_back(offsets_.back() + std::max<std::uint64_t>(RecordView(record).count(slot), 1));
    }
    const Dim rows = static_cast<Dim>(slot_.dense ? records.size() : offsets_.back());
    const Shape shape = slot_.dense ? Concat({rows}, slot_.extents) : Shape({rows, 1});
    tensor_ = Tensor(slot_.is_float ? DType::kFp32 : DType::kInt64, shape);
    out_ = tensor_.raw();
  }

  void Add(const std::byte* numbers, std::uint32_t count) {
    const std::size_t each = RecordView::NumberBytes(slot_);
    if (count == 0) {  // all numbers were zeros and were dropped
      std::memset(out_, 0, each);
      out_ += each;
      return;
    }
    std::memcpy(out_, numbers, count * each);
    out_ += count * each;
  }

  Tensor Finish() {
    if (!slot_.dense) tensor_.set_lod({std::move(offsets_)});
    return std::move(tensor_);
  }

 private:
  const Slot& slot_;
  LoDLevel offsets_;
  Tensor tensor_;
  std::byte* out_ = nullptr;
};

}  // namespace

void PutWord(std::string& record, std::size_t word, std::size_t value) {
  const auto narrow = static_cast<std::uint32_t>(value);
  std::memcpy(record.data() + word * sizeof(narrow), &narrow, sizeof(narrow));
}

std::uint32_t RecordView::Word(std::size_t i) const {
  std::uint32_t value = 0;
  std::memcpy(&value, data_ + i * sizeof(value), sizeof(value));
  return value;
}

void Records::Add(std::string_view record) {
  if (record.size() > free_) {
    chunk_bytes_ = std::min(std::max(2 * chunk_bytes_, kChunkBytesMin), kChunkBytesMax);
    free_ = std::max(chunk_bytes_, record.size());
    chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(free_));
    next_ = chunks_.back().get();
  }
  std::memcpy(next_, record.data(), record.size());
  index_.push_back(next_);
  next_ += record.size();
  free_ -= record.size();
}

void Records::Append(Records&& other) {
  index_.insert(index_.end(), other.index_.begin(), other.index_.end());
  // Only the last chunk has free space: this object's last chunk must stay last.
  chunks_.insert(chunks_.begin(), std::make_move_iterator(other.chunks_.begin()),
                 std::make_move_iterator(other.chunks_.end()));
  other = Records();
}

void Records::Shuffle(std::uint64_t seed) {
  Sequence random(seed);
  for (std::size_t i = index_.size(); i > 1; --i) std::swap(index_[i - 1], index_[random.Next() % i]);
}

std::string Records::Pack(std::size_t part, std::size_t parts, std::uint64_t salt) const {
  std::string packed;
  for (const std::byte* at : index_) {
    const RecordView record(at);
    if (PartOf(record, parts, salt) == part) packed += record.bytes();
  }
  return packed;
}

Status Records::Unpack(const Format& format, std::string_view packed) {
  std::size_t good = 0;
  while (good < packed.size()) {
    const std::size_t bytes = FrontRecordBytes(format, packed.substr(good));
    if (bytes == 0) {
      return DataLoss("E-dataset-packed",
                      "dataset: what a trainer sent is no instance of these slots from byte ", good, " of ",
                      packed.size(), " on; do all trainers read the same slots?");
    }
    good += bytes;
  }
  while (!packed.empty()) {
    const std::string_view record = packed.substr(0, WordAt(packed, 0));
    Add(record);
    packed.remove_prefix(record.size());
  }
  return OkStatus();
}

Batch MakeBatch(const Format& format, std::span<const std::byte* const> records) {
  const std::size_t slots = format.slots.size();
  // Per record: the numbers of the next slot.
  std::vector<const std::byte*> numbers;
  numbers.reserve(records.size());
  for (const std::byte* record : records) numbers.push_back(RecordView(record).numbers(slots));
  Batch batch;
  for (std::size_t i = 0; i < slots; ++i) {
    const Slot& slot = format.slots[i];
    if (!slot.used) continue;  // records do not contain its numbers
    SlotColumn column(format, records, i);
    for (std::size_t r = 0; r < records.size(); ++r) {
      const std::uint32_t count = RecordView(records[r]).count(i);
      column.Add(numbers[r], count);
      numbers[r] += count * RecordView::NumberBytes(slot);
    }
    batch.push_back(column.Finish());
  }
  return batch;
}

}  // namespace penstock::dataset
